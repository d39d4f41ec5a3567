"""Reads the words of a line and the expansions in them, down to the commands in `$(…)`."""

import re
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from subluminal.core.targets.found import Directories
from subluminal.core.targets.tree import Tree, expansions_in
from subluminal.core.targets.words import Expansion, Word, read_word

if TYPE_CHECKING:
    from tree_sitter import Node

# Expansions that cannot run commands. A subscript, an offset, `${x@P}` and `${!x}` can: their text
# is evaluated again.
_SAFE_EXPANSION = re.compile(
    r"\$\{#?(?:[A-Za-z_][A-Za-z0-9_]*|[0-9@*#?$!-])"
    r"(?:(?::?[-+]|##?|%%?|//?|\^\^?|,,?)[^$`\[\]{}\\'\"]*)?\}"
)
_VARIABLE = re.compile(r"\$(?:[A-Za-z_][A-Za-z0-9_]*|[0-9@*#?$!-])")
_NUMBERS = re.compile(r"[0-9\s+*/%()<>=!&|^~?:-]*")
_HEREDOC = ["<<", "heredoc_start", "heredoc_body", "heredoc_end"]


class Expansions(Tree, ABC):
    """The words of one line."""

    in_substitution = False
    """whether the commands of `$(…)` are being read"""

    @abstractmethod
    def substitution(self, node: "Node", directories: Directories) -> None:
        """Reads the commands of `$(…)` or `<(…)`."""

    def words(self, nodes: "list[Node]", directories: Directories) -> list[Word]:
        """Reads words. Nodes without a blank between them are one word."""
        found: list[Word] = []
        group: list[Node] = []
        for node in nodes:
            if group and group[-1].end_byte != node.start_byte:
                found.append(self.word(group, directories))
                group = []
            group.append(node)
        found.append(self.word(group, directories))
        return found

    def word(self, nodes: "list[Node]", directories: Directories) -> Word:
        """Reads one word, which may consist of several nodes."""
        start, end = nodes[0].start_byte, nodes[-1].end_byte
        data = self.data[start:end]
        text = data.decode("utf-8", "surrogatepass")
        if b"$" not in data and b"`" not in data and b"(" not in data:
            return read_word(text, home=self.found.home)
        expansions = []
        for node in nodes:
            for each in expansions_in(node):
                # Offsets count characters, not bytes.
                first = len(self.data[start : each.start_byte].decode("utf-8", "surrogatepass"))
                value = self.value(each, directories)
                expansions.append(Expansion(first, first + len(self.text(each)), value))
        return read_word(text, expansions, home=self.found.home)

    def value(self, node: "Node", directories: Directories) -> str | None:
        """Returns the value of an expansion, if it is known, and reads the commands in it."""
        if node.type == "simple_expansion":
            return self._variable(self.text(node), directories)
        if node.type in ("expansion", "arithmetic_expansion"):
            return self._braced(node, directories)
        literal = self._heredoc_value(node)
        was_inside, self.in_substitution = self.in_substitution, literal is None
        self.substitution(node, directories)
        self.in_substitution = was_inside
        # bash passes the name of an open file instead of `<(…)`; which one does not matter.
        return "/dev/fd/63" if node.type == "process_substitution" else literal

    def _variable(self, text: str, directories: Directories) -> str | None:
        if not _VARIABLE.fullmatch(text):
            self.not_parsed()  # the parser takes `A=$ cat` as `A=$cat`
        if text == "$HOME":
            return self.found.home
        if text == "$PWD" and directories is not None and len(directories) == 1:
            return directories[0]
        return None

    def _braced(self, node: "Node", directories: Directories) -> str | None:
        text = self.text(node)
        if text == "${HOME}":
            return self.found.home
        if node.type == "arithmetic_expansion":
            self.arithmetic(node)
        elif not _SAFE_EXPANSION.fullmatch(text):
            self.found.opaque(f"`{text}` may run commands")
        for each in expansions_in(node, below=True):
            self.value(each, directories)
        return None

    def arithmetic(self, node: "Node") -> None:
        """Reads arithmetic. The text of a variable is evaluated, so it can run commands."""
        text = self.text(node).removeprefix("$").removeprefix("((").removesuffix("))")
        if not _NUMBERS.fullmatch(text):
            self.found.opaque("arithmetic with variables may run commands")

    def _heredoc_value(self, node: "Node") -> str | None:
        """Returns the text of `$(cat <<'END' …)`, with which agents write commit messages."""
        parts = [child for child in node.children if child.is_named]
        if node.type != "command_substitution" or len(parts) != 1:
            return None
        body = [child for child in parts[0].children if child.is_named]
        if parts[0].type != "redirected_statement" or len(body) != 2:
            return None
        command, heredoc = body
        if self.text(command) != "cat" or heredoc.type != "heredoc_redirect":
            return None
        if [child.type for child in heredoc.children] != _HEREDOC:
            return None
        start, text = self.text(heredoc.children[1]), self.text(heredoc.children[2])
        is_raw = len(start) > 2 and start[0] == start[-1] == "'"
        if not is_raw and re.search(r"[$`\\]", text):
            return None
        return text.rstrip("\n")
