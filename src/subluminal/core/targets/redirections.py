"""Reads redirections: the paths behind `>` and `<`, here-strings and here-documents."""

import re
from typing import TYPE_CHECKING

from subluminal.contracts.targets import Access
from subluminal.core.targets.expansions import Expansions
from subluminal.core.targets.found import Directories
from subluminal.core.targets.tree import WORDS, expansions_in
from subluminal.core.targets.words import read_word

if TYPE_CHECKING:
    from tree_sitter import Node

REDIRECTIONS = frozenset(("file_redirect", "heredoc_redirect", "herestring_redirect"))
_ACCESS: dict[str, Access] = {
    "<": "read",
    **dict.fromkeys((">", ">>", ">|", "&>", "&>>", ">&"), "write"),
}
_COPIES = frozenset((">&", "<&"))
_CLOSES = frozenset((">&-", "<&-"))
_STREAM = re.compile("[0-9]+-?")
_EXPANSION = re.compile(r"(?<!\\)(?:\\\\)*[$`][A-Za-z_({`]")


class Redirections(Expansions):
    """The redirections of one line."""

    def redirect(self, node: "Node", directories: Directories) -> "list[Node]":
        """Adds the path of a redirection. Returns the words behind it: the command's arguments."""
        operator, words = self._parts(node)
        if operator in _CLOSES:
            return words
        if not words:
            self.not_parsed()
            return words
        length = _first_word(words)
        target = self.word(words[:length], directories)
        rest = words[length:]
        if not target.known or target.globs or len(target.texts) != 1:
            self.found.opaque(f"the file behind `{operator}` cannot be told")
            return rest
        if operator in _COPIES and _STREAM.fullmatch(target.texts[0]):
            return rest
        access = _ACCESS.get(operator)
        if access is None:
            self.found.opaque(f"`{operator}` is not read")
        else:
            self.found.path(target.texts[0], access, directories)
        return rest

    def _parts(self, node: "Node") -> "tuple[str, list[Node]]":
        operator = ""
        words: list[Node] = []
        for child in self.children(node):
            if child.type in WORDS:
                words.append(child)
            elif not child.is_named:
                operator = child.type
            elif child.type != "file_descriptor":
                self.unknown(child)
        return operator, words

    def here_string(self, node: "Node", directories: Directories) -> None:
        """Reads the commands in the text behind `<<<`."""
        words = [child for child in self.children(node) if child.type in WORDS]
        if words:
            self.words(words, directories)

    def heredoc(self, node: "Node", directories: Directories) -> "list[Node]":
        """Reads a here-document. Returns what else is on its first line: statements."""
        rest: list[Node] = []
        if self.in_substitution:
            # bash writes the command anew before it reads it, and loses line ends.
            self.found.opaque("a here-document inside of `$(…)` is not read")
        for child in self.children(node):
            if child.type == "heredoc_body":
                for each in expansions_in(child, below=True):
                    self.value(each, directories)
                self._check_end(node, child)
            elif child.type == "file_redirect":
                if self.redirect(child, directories):
                    self.not_parsed()
            elif child.is_named and child.type not in ("heredoc_start", "heredoc_end"):
                rest.append(child)
        return rest

    def _check_end(self, node: "Node", body: "Node") -> None:
        """Compares where the parser ends a here-document with where the shell does.

        The shell ends it at the first line that is the end word.
        """
        start = next(self.text(each) for each in node.children if each.type == "heredoc_start")
        word = read_word(start, home="")
        end = word.texts[0] if word.known and len(word.texts) == 1 else None
        tabs = node.children[0].type == "<<-"
        text = self.text(body)
        lines = [line.lstrip("\t") if tabs else line for line in text.split("\n")]
        closing = next((self.text(c) for c in node.children if c.type == "heredoc_end"), None)
        if closing is not None and tabs:
            closing = closing.lstrip("\t")
        if end is None or end in lines or closing != end:
            self.found.opaque("the end of a here-document cannot be told")
        elif start == end and not any(expansions_in(body, below=True)) and _EXPANSION.search(text):
            self.found.opaque("a here-document contains expansions that are not read")


def _first_word(words: "list[Node]") -> int:
    """Returns the number of nodes that are the first word: no blank is between them."""
    for number in range(1, len(words)):
        if words[number].start_byte != words[number - 1].end_byte:
            return number
    return len(words)
