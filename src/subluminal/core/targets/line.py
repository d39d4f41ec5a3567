"""Reads a shell line: finds its commands, redirections and directories.

Theory of operation. tree-sitter parses the line; this module walks the tree and knows every kind of
node that it passes. An unknown node, a parse error, or text that no node covers makes the call
opaque. Each statement is read with the directories in which it may run, and returns two sets: the
directories after success and after failure, so that `cd a && b` and `cd a; b` are told apart.
"""

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from subluminal.contracts.targets import Access
from subluminal.core.targets.commands import Commands
from subluminal.core.targets.found import MAX_DEPTH, MAX_LINE_BYTES, Directories, Found
from subluminal.core.targets.programs import RESERVED
from subluminal.core.targets.words import Expansion, Word, read_word

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

# A backslash before the end of a line joins the two lines; between words there must be a blank too.
_GAP = re.compile(rb"[ \t\n]*|(?:\\\n)*[ \t\n](?:[ \t\n]|\\\n)*")
# Most commands consist of words without expansions, and most lines of such commands. They are split
# without a look at the parser's nodes, or without the parser.
_FIRST = r"[A-Za-z0-9_./+-]+"
_WORD = r"[A-Za-z0-9_./:@%+,-][A-Za-z0-9_./:=@%+,-]*"
_QUOTED = r"""'[^'\n]+'|"[^"\\$`\n]+\""""
_PLAIN_COMMAND = re.compile(rf"{_FIRST}(?:[ \t]+(?:{_WORD}|{_QUOTED}))*", re.ASCII)
_PLAIN_LINE = re.compile(
    rf"{_PLAIN_COMMAND.pattern}(?:[ \t]*(?:&&|\|\||;|\|)[ \t]*{_PLAIN_COMMAND.pattern})*", re.ASCII
)
_PLAIN_WORD = re.compile(r"""([^\s"';&|]+)|'([^']+)'|"([^"]+)"|(&&|\|\|?|;)""")
_ODD = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\u0085\u2028\u2029]")
_SAFE_EXPANSION = re.compile(
    r"\$\{#?(?:[A-Za-z_][A-Za-z0-9_]*|[0-9@*#?$!-])"
    r"(?:(?::?[-+]|##?|%%?|//?|\^\^?|,,?)[^$`\[\]{}\\'\"]*)?\}"
)
_NUMBERS = re.compile(r"[0-9\s+*/%()<>=!&|^~?:-]*")
_INTEGER = re.compile(r"-?[0-9]+|\$[?#]|\"\$[?#]\"")
_ARITHMETIC_TESTS = frozenset(("-eq", "-ne", "-lt", "-le", "-gt", "-ge"))
_MAX_DIRECTORIES = 8
_MOVES = frozenset(("cd", "command", "builtin", "time", "exec", "pushd", "popd"))
"""Commands that may change the directory of the shell."""

_WORDS = frozenset(
    "word number string raw_string ansi_c_string translated_string concatenation brace_expression"
    " simple_expansion expansion command_substitution process_substitution arithmetic_expansion"
    " extglob_pattern regex test_operator special_variable_name".split()
)
_EXPANSIONS = frozenset(
    "simple_expansion expansion command_substitution process_substitution"
    " arithmetic_expansion".split()
)
_REDIRECTS = frozenset(("file_redirect", "heredoc_redirect", "herestring_redirect"))
_READS = frozenset(("<",))
_WRITES = frozenset((">", ">>", ">|", "&>", "&>>"))
_COPIES = frozenset((">&", "<&"))
_CLOSES = frozenset((">&-", "<&-"))


class After(NamedTuple):
    """The directories after a statement."""

    ok: Directories
    failed: Directories

    @property
    def either(self) -> Directories:
        return _union(self.ok, self.failed)


def read_line(text: str, found: Found, directories: Directories, depth: int = 0) -> Directories:
    """Adds the targets of a line. Returns the directories after it."""
    data = text.encode("utf-8", "surrogatepass")
    if len(data) > MAX_LINE_BYTES:
        found.opaque(f"a line of more than {MAX_LINE_BYTES} bytes")
        return None
    if depth > MAX_DEPTH:
        found.opaque("commands are nested too deeply")
        return None
    if _ODD.search(text):
        found.opaque("the line contains control characters")
        return None
    line = _Line(data, found, depth)
    if _PLAIN_LINE.fullmatch(text):
        commands = _plain_commands(text)
        if commands is not None:
            return line.plain(commands, directories)
    root = _parser().parse(data).root_node
    if root.has_error:
        found.opaque("the line cannot be parsed")
    return line.statements(root, directories).either


def _plain_commands(text: str) -> list[tuple[str, list[str]]] | None:
    """Splits a plain line into commands, each with the operator before it.

    None if the line has to be parsed: it has a reserved word, or `cd` in a pipeline.
    """
    found: list[tuple[str, list[str]]] = [("", [])]
    for word, raw, quoted, operator in _PLAIN_WORD.findall(text):
        if operator:
            found.append((operator, []))
        else:
            found[-1][1].append(word or raw or quoted)
    programs = {words[0] for _, words in found}
    if not programs.isdisjoint(RESERVED):
        return None
    pipes = any(operator == "|" for operator, _ in found)
    return None if pipes and not programs.isdisjoint(_MOVES) else found


@cache
def _language() -> object:
    import tree_sitter
    import tree_sitter_bash

    return tree_sitter.Language(tree_sitter_bash.language())


def _parser() -> "Parser":
    import tree_sitter

    # A parser must not be shared by threads, and costs next to nothing.
    return tree_sitter.Parser(_language())  # type: ignore[arg-type]


def _union(one: Directories, other: Directories) -> Directories:
    if one is None or other is None:
        return None
    if one == other:
        return one
    both = tuple(dict.fromkeys(one + other))
    return both if len(both) <= _MAX_DIRECTORIES else None


class _Line:
    """One parsed line."""

    def __init__(self, data: bytes, found: Found, depth: int) -> None:
        self._data = data
        self._found = found
        self._depth = depth
        self._commands = Commands(found, self._nested)
        self._levels = 0

    def plain(self, commands: list[tuple[str, list[str]]], directories: Directories) -> Directories:
        """Reads the commands of a plain line, each with the operator before it."""
        ok, failed = directories, directories
        for operator, words in commands:
            if operator == "&&":
                then = self._commands.argv(words, ok, self._depth)
                ok, failed = then[0], _union(failed, then[1])
            elif operator == "||":
                then = self._commands.argv(words, failed, self._depth)
                ok, failed = _union(ok, then[0]), then[1]
            else:
                ok, failed = self._commands.argv(words, _union(ok, failed), self._depth)
        return _union(ok, failed)

    # Statements

    def statements(self, node: "Node", directories: Directories) -> After:
        """Reads the statements below a node, one after the other."""
        after = After(directories, directories)
        for child in self._children(node):
            if child.is_named:
                after = self._statement(child, after.either)
        return after

    def _statement(self, node: "Node", directories: Directories) -> After:
        reader = _READERS.get(node.type)
        if reader is None or self._levels > MAX_DEPTH:
            self._unknown(node)
            return After(None, None)
        self._levels += 1
        after = reader(self, node, directories)
        self._levels -= 1
        return after

    def _unknown(self, node: "Node") -> None:
        told = node.type.replace("_", " ")
        self._found.opaque(
            "the line cannot be parsed" if node.is_error else f"a {told} is not read"
        )

    def _children(self, node: "Node") -> "list[Node]":
        """Returns the children of a node. Text between two of them makes the call opaque."""
        children = node.children
        at = node.start_byte
        for child in children:
            start = child.start_byte
            if start != at and _GAP.fullmatch(self._data, at, start) is None:
                self._found.opaque("the line cannot be parsed")
            at = child.end_byte
        if at != node.end_byte and _GAP.fullmatch(self._data, at, node.end_byte) is None:
            self._found.opaque("the line cannot be parsed")
        return children

    def _list(self, node: "Node", directories: Directories) -> After:
        after = After(directories, directories)
        operator = ""
        for child in self._children(node):
            if not child.is_named:
                operator = child.type
            elif operator == "&&":
                then = self._statement(child, after.ok)
                after = After(then.ok, _union(after.failed, then.failed))
            elif operator == "||":
                then = self._statement(child, after.failed)
                after = After(_union(after.ok, then.ok), then.failed)
            else:
                after = self._statement(child, after.either)
        return after

    def _pipeline(self, node: "Node", directories: Directories) -> After:
        where, last = directories, directories
        for child in self._children(node):
            if child.is_named:
                last = self._statement(child, where).either
                if _holds_list(child):
                    # The parser takes `cd a && b > c | d` as `(cd a && b > c) | d`.
                    where = _union(where, last)
        # Some shells run the last part of a pipeline themselves.
        either = _union(where, last)
        return After(either, either)

    def _subshell(self, node: "Node", directories: Directories) -> After:
        self.statements(node, directories)
        return After(directories, directories)

    def _group(self, node: "Node", directories: Directories) -> After:
        children = self._children(node)
        if children and children[0].type == "((":
            self._arithmetic(node)
            return After(directories, directories)
        return self.statements(node, directories)

    def _if(self, node: "Node", directories: Directories) -> After:
        """Reads conditions and bodies in order: what follows may run in any directory so far."""
        after: Directories = directories
        for child in self._children(node):
            if child.type in ("elif_clause", "else_clause"):
                after = _union(after, self._if(child, after).either)
            elif child.is_named:
                after = _union(after, self._statement(child, after).either)
        return After(after, after)

    def _loop(self, node: "Node", directories: Directories) -> After:
        body: Directories = directories
        for _ in range(2):  # a second round shows whether the body moves to other directories
            before = body
            for child in self._children(node):
                if child.type in _WORDS:
                    self._word_texts([child], body)
                elif child.type == "variable_name":
                    self._commands.check_name(self._text(child))
                elif child.type == "do_group":
                    body = _union(body, self.statements(child, body).either)
                elif child.is_named:
                    body = _union(body, self._statement(child, body).either)
            if body == before:
                return After(body, body)
        self._found.opaque("a loop changes its directory")
        return After(None, None)

    def _case(self, node: "Node", directories: Directories) -> After:
        after: Directories = directories
        for child in self._children(node):
            if child.type == "case_item":
                for part in self._children(child):
                    if part.type in _WORDS:
                        self._word_texts([part], after)
                    elif part.is_named:
                        after = _union(after, self._statement(part, after).either)
            elif child.type in _WORDS:
                self._word_texts([child], after)
            elif child.is_named:
                self._unknown(child)
        return After(after, after)

    def _negated(self, node: "Node", directories: Directories) -> After:
        either = self.statements(node, directories).either
        return After(either, either)

    def _test(self, node: "Node", directories: Directories) -> After:
        self._test_part(node, directories)
        return After(directories, directories)

    def _test_part(self, node: "Node", directories: Directories) -> None:
        children = self._children(node)
        operators = {self._text(child) for child in children}
        if not operators.isdisjoint(("-v", "-R")):
            self._found.opaque("a test of a variable may run commands")
        if not _ARITHMETIC_TESTS.isdisjoint(operators) and not all(
            _INTEGER.fullmatch(self._text(child))
            for child in children
            if child.type != "test_operator"
        ):
            self._found.opaque("arithmetic may run commands")
        for child in children:
            if child.type in _WORDS:
                self._word_texts([child], directories)
            elif child.type.endswith("_expression"):
                self._test_part(child, directories)
            elif child.is_named:
                self._unknown(child)

    def _arithmetic(self, node: "Node") -> None:
        text = self._text(node).removeprefix("$").removeprefix("((").removesuffix("))")
        if not _NUMBERS.fullmatch(text):
            self._found.opaque("arithmetic with variables may run commands")

    # Commands and their words

    def _command(self, node: "Node", directories: Directories) -> After:
        return self._simple(node, (), directories)

    def _simple(self, node: "Node", more: "tuple[Node, ...]", directories: Directories) -> After:
        """Reads a command. `more` are its words behind a redirection."""
        text = self._text(node)
        if not more and _PLAIN_COMMAND.fullmatch(text):
            words = [b or c or a for a, b, c, _ in _PLAIN_WORD.findall(text)]
            return After(*self._commands.argv(words, directories, self._depth))
        nodes: list[Node] = []
        for child in self._children(node):
            kind = child.type
            if kind == "command_name" or kind in _WORDS:
                nodes.append(child)
            elif kind == "variable_assignment":
                self._assignment(child, directories)
            elif kind == "file_redirect":
                nodes += self._redirect(child, directories)
            elif kind == "herestring_redirect":
                self._here_string(child, directories)
            elif not child.is_named and kind in ("==", "=~", "=", "!="):
                nodes.append(child)
            elif kind != "comment":
                self._unknown(child)
        nodes += more
        if not nodes:
            return After(directories, directories)
        read = self._word_texts(nodes, directories)
        return After(*self._commands.simple(read, directories, self._depth))

    def _word_texts(self, nodes: "list[Node]", directories: Directories) -> list[Word]:
        """Reads words. Nodes without a blank between them are one word."""
        found: list[Word] = []
        group: list[Node] = []
        for node in nodes:
            if group and group[-1].end_byte != node.start_byte:
                found.append(self._word(group, directories))
                group = []
            group.append(node)
        found.append(self._word(group, directories))
        return found

    def _word(self, nodes: "list[Node]", directories: Directories) -> Word:
        start, end = nodes[0].start_byte, nodes[-1].end_byte
        data = self._data[start:end]
        text = data.decode("utf-8", "surrogatepass")
        if b"$" not in data and b"`" not in data and b"(" not in data:
            return read_word(text, home=self._found.home)
        expansions = []
        for node in nodes:
            for each in _expansions_in(node):
                value = self._value(each, directories)
                # Offsets count characters, not bytes.
                first = len(self._data[start : each.start_byte].decode("utf-8", "replace"))
                last = first + len(self._text(each))
                expansions.append(Expansion(first, last, value))
        return read_word(text, expansions, home=self._found.home)

    def _value(self, node: "Node", directories: Directories) -> str | None:
        """Returns the value of an expansion, if it is known, and reads the commands in it."""
        text = self._text(node)
        if node.type == "simple_expansion":
            if text == "$HOME":
                return self._found.home
            if text == "$PWD" and directories is not None and len(directories) == 1:
                return directories[0]
            return None
        if node.type == "expansion":
            if text == "${HOME}":
                return self._found.home
            if not _SAFE_EXPANSION.fullmatch(text):
                self._found.opaque(f"`{text}` may run commands")
            for each in _expansions_in(node, below=True):
                self._value(each, directories)
            return None
        if node.type == "arithmetic_expansion":
            self._arithmetic(node)
            for each in _expansions_in(node, below=True):
                self._value(each, directories)
            return None
        literal = self._heredoc_value(node)
        if literal is not None:
            return literal
        self._subshell(node, directories)
        return "/dev/fd/63" if node.type == "process_substitution" else None

    def _heredoc_value(self, node: "Node") -> str | None:
        """Returns the text of `$(cat <<'END' …)`, with which agents write commit messages."""
        parts = [child for child in node.children if child.is_named]
        if node.type != "command_substitution" or len(parts) != 1:
            return None
        body = [child for child in parts[0].children if child.is_named]
        if parts[0].type != "redirected_statement" or len(body) != 2:
            return None
        command, heredoc = body
        if self._text(command) != "cat" or heredoc.type != "heredoc_redirect":
            return None
        text = self._literal_heredoc(heredoc)
        return None if text is None else text.rstrip("\n")

    def _literal_heredoc(self, node: "Node") -> str | None:
        kinds = [child.type for child in node.children]
        if kinds != ["<<", "heredoc_start", "heredoc_body", "heredoc_end"]:
            return None
        start, body = self._text(node.children[1]), self._text(node.children[2])
        if not (start[:1] == start[-1:] == "'" and len(start) > 2) and re.search(r"[$`\\]", body):
            return None
        return body

    # Redirections

    def _redirected(self, node: "Node", directories: Directories) -> After:
        children = self._children(node)
        body = next((child for child in children if child.type not in _REDIRECTS), None)
        after, where = After(directories, directories), directories
        if body is not None and body.type != "command":
            # The parser takes `cd a && b > c` as `(cd a && b) > c`: the file may be in either place.
            after = self._statement(body, directories)
            where = _union(directories, after.either)
        more: list[Node] = []
        rest: list[Node] = []
        for child in children:
            if child.type == "file_redirect":
                more += self._redirect(child, where)
            elif child.type == "heredoc_redirect":
                rest += self._heredoc(child, where)
            elif child.type == "herestring_redirect":
                self._here_string(child, where)
            elif child is not body:
                self._unknown(child)
        if body is not None and body.type == "command":
            after = self._simple(body, tuple(more), directories)
        elif more:
            self._found.opaque("the line cannot be parsed")
        for each in rest:
            after = self._statement(each, after.either)
        return after

    def _lone_redirect(self, node: "Node", directories: Directories) -> After:
        if self._redirect(node, directories):
            self._found.opaque("the line cannot be parsed")
        return After(directories, directories)

    def _redirect(self, node: "Node", directories: Directories) -> "list[Node]":
        """Adds the path of a redirection. Returns the words behind it: the command's arguments."""
        operator = ""
        words: list[Node] = []
        for child in self._children(node):
            if child.type in _WORDS:
                words.append(child)
            elif not child.is_named:
                operator = child.type
            elif child.type != "file_descriptor":
                self._unknown(child)
        if operator in _CLOSES:
            return words
        if not words:
            self._found.opaque("the line cannot be parsed")
            return words
        first = [words[0]]
        for word in words[1:]:
            if word.start_byte != first[-1].end_byte:
                break
            first.append(word)
        target = self._word(first, directories)
        access = self._access(operator)
        is_one = target.known and not target.globs and len(target.texts) == 1
        if is_one and operator in _COPIES and re.fullmatch("[0-9]+-?", target.texts[0]):
            return words[len(first) :]
        if access is None or not is_one:
            self._found.opaque(f"the file behind `{operator}` cannot be told")
        else:
            self._found.path(target.texts[0], access, directories)
        return words[len(first) :]

    def _access(self, operator: str) -> Access | None:
        if operator in _READS:
            return "read"
        return "write" if operator in _WRITES or operator == ">&" else None

    def _here_string(self, node: "Node", directories: Directories) -> None:
        words = [child for child in self._children(node) if child.type in _WORDS]
        if words:
            self._word_texts(words, directories)

    def _heredoc(self, node: "Node", directories: Directories) -> "list[Node]":
        """Reads a here-document. Returns the statements that follow on its first line."""
        rest: list[Node] = []
        for child in self._children(node):
            if child.type == "heredoc_body":
                for each in _expansions_in(child, below=True):
                    self._value(each, directories)
                self._check_heredoc(node, child)
            elif child.type == "file_redirect":
                if self._redirect(child, directories):
                    self._found.opaque("the line cannot be parsed")
            elif child.type in _READERS:
                rest.append(child)
            elif child.is_named and child.type not in ("heredoc_start", "heredoc_end"):
                self._unknown(child)
        return rest

    def _check_heredoc(self, node: "Node", body: "Node") -> None:
        """Compares the parser's end of a here-document with the shell's: the first line that is it."""
        start = next(self._text(c) for c in node.children if c.type == "heredoc_start")
        word = read_word(start, home="")
        tabs = node.children[0].type == "<<-"
        if not word.known or len(word.texts) != 1:
            self._found.opaque("the end of a here-document cannot be told")
            return
        end = word.texts[0]
        lines = self._text(body).split("\n")
        if any((line.lstrip("\t") if tabs else line) == end for line in lines):
            self._found.opaque("the end of a here-document cannot be told")
        written = start == end
        if (
            written
            and re.search(r"[$`]", self._text(body))
            and not any(_expansions_in(body, below=True))
        ):
            if re.search(r"(?<!\\)(?:\\\\)*[$`][A-Za-z_({`]", self._text(body)):
                self._found.opaque("a here-document contains expansions")

    # Assignments

    def _assignments(self, node: "Node", directories: Directories) -> After:
        for child in self._children(node):
            if child.is_named:
                self._assignment(child, directories)
        return After(directories, directories)

    def _assignment(self, node: "Node", directories: Directories) -> After:
        values: list[Node] = []
        name = ""
        for child in self._children(node):
            if child.type == "variable_name":
                name = self._text(child)
            elif child.type == "subscript":
                name = self._text(child)
                if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*\[[0-9]+\]", name):
                    self._found.opaque("a subscript may run commands")
            elif child.type == "array":
                for each in self._children(child):
                    if each.is_named and each.type in _WORDS:
                        self._word_texts([each], directories)
                    elif each.is_named:
                        self._unknown(each)
            elif child.type in _WORDS:
                values.append(child)
            elif child.is_named:
                self._unknown(child)
        value = self._word_texts(values, directories) if values else []
        self._commands.assign(name, value[0] if len(value) == 1 else None, directories, self._depth)
        return After(directories, directories)

    def _declaration(self, node: "Node", directories: Directories) -> After:
        words: list[Word] = []
        for child in self._children(node):
            if child.type == "variable_assignment":
                self._assignment(child, directories)
            elif child.type == "variable_name":
                words.append(Word((self._text(child),)))
            elif child.type in _WORDS:
                words += self._word_texts([child], directories)
            elif child.is_named:
                self._unknown(child)
        self._commands.declare(words)
        return After(directories, directories)

    def _nested(self, text: str, directories: Directories, depth: int) -> Directories:
        return read_line(text, self._found, directories, depth + 1)

    def _text(self, node: "Node") -> str:
        return self._data[node.start_byte : node.end_byte].decode("utf-8", "surrogatepass")


def _holds_list(node: "Node") -> bool:
    if node.type in ("redirected_statement", "negated_command"):
        return any(map(_holds_list, node.children))
    return node.type == "list"


def _expansions_in(node: "Node", *, below: bool = False) -> "Iterator[Node]":
    """Yields the outermost expansions in a node."""
    if node.type in _EXPANSIONS and not below:
        yield node
        return
    for child in node.children:
        yield from _expansions_in(child)


_READERS: dict[str, "Callable[[_Line, Node, Directories], After]"] = {
    "command": _Line._command,
    "redirected_statement": _Line._redirected,
    "pipeline": _Line._pipeline,
    "list": _Line._list,
    "subshell": _Line._subshell,
    "compound_statement": _Line._group,
    "if_statement": _Line._if,
    "while_statement": _Line._loop,
    "for_statement": _Line._loop,
    "case_statement": _Line._case,
    "negated_command": _Line._negated,
    "test_command": _Line._test,
    "variable_assignment": _Line._assignment,
    "variable_assignments": _Line._assignments,
    "declaration_command": _Line._declaration,
    "unset_command": _Line._declaration,
    "file_redirect": _Line._lone_redirect,
    "comment": lambda _line, _node, directories: After(directories, directories),
}
"""Every kind of statement that is read."""
