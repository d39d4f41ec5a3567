"""Reads a shell line: finds its commands, redirections and directories.

Theory of operation. tree-sitter parses the line; this module walks the tree and knows every kind of
node that it passes. An unknown node, a parse error, or text that no node covers makes the call
opaque. Each statement is read with the directories in which it may run, and returns two sets: the
directories after success and after failure, so that `cd a && b` and `cd a; b` are told apart.
"""

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from subluminal.core.targets.commands import Commands
from subluminal.core.targets.found import MAX_DEPTH, MAX_LINE_BYTES, Directories, Found
from subluminal.core.targets.plain_line import (
    PlainCommand,
    is_plain_command,
    plain_commands,
    plain_words,
)
from subluminal.core.targets.redirections import REDIRECTIONS, Redirections
from subluminal.core.targets.tree import EXPANSIONS, WORDS, new_parser
from subluminal.core.targets.words import Word

if TYPE_CHECKING:
    from tree_sitter import Node

_ODD = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\u0085\u2028\u2029]")
_STREAM_NAME = re.compile(r"\{[A-Za-z_][A-Za-z0-9_]*\}[<>]")
"""`{fd}>file`: to the shell a name for the stream, to the parser a word."""
_INTEGER = re.compile(r"-?[0-9]+|\$[?#]|\"\$[?#]\"")
_ELEMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\[[0-9]+\]")
_ARITHMETIC_TESTS = frozenset(("-eq", "-ne", "-lt", "-le", "-gt", "-ge"))
_SHELL_OPERATORS = frozenset(("<", ">", "<<", ">>", "&&", "||", "(", ")", ";", "|", "&"))
_MAX_DIRECTORIES = 8
_MAX_PIPES = 400
"""Most `|` of one line: the time that the parser needs grows with their square."""


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
    elif depth > MAX_DEPTH:
        found.opaque("commands are nested too deeply")
    elif text.count("|") > _MAX_PIPES:
        found.opaque("too many pipes")
    elif _ODD.search(text):
        found.opaque("the line contains control characters")
    elif _STREAM_NAME.search(text):
        found.opaque("a stream with a name is not read")
    else:
        return _read(text, data, found, directories, depth)
    return None


def _read(
    text: str, data: bytes, found: Found, directories: Directories, depth: int
) -> Directories:
    line = _Line(data, found, depth)
    commands = plain_commands(text)
    if commands is not None:
        return line.plain(commands, directories)
    root = new_parser().parse(data).root_node
    if root.has_error:
        line.not_parsed()
    try:
        return line.statements(root, directories).either
    except RecursionError:
        found.opaque("commands are nested too deeply")
        return None


def _union(one: Directories, other: Directories) -> Directories:
    if one is None or other is None:
        return None
    if one == other:
        return one
    both = tuple(dict.fromkeys(one + other))
    return both if len(both) <= _MAX_DIRECTORIES else None


class _Line(Redirections):
    """One parsed line."""

    def __init__(self, data: bytes, found: Found, depth: int) -> None:
        super().__init__(data, found)
        self._depth = depth
        self._levels = 0
        self._commands = Commands(found, self._nested)

    def _nested(self, text: str, directories: Directories, depth: int) -> Directories:
        return read_line(text, self.found, directories, depth + 1)

    def plain(self, commands: list[PlainCommand], directories: Directories) -> Directories:
        """Reads the commands of a plain line."""
        after = After(directories, directories)
        for command in commands:
            after = self._then(after, command.operator, partial(self._plain, command))
        return after.either

    def _plain(self, command: PlainCommand, directories: Directories) -> After:
        after = self._argv(command.words, directories)
        for file, access in command.files:
            self.found.path(file, access, directories)
            self.found.changes = self.found.changes or access == "write"
        return after

    def _argv(self, words: list[str], directories: Directories) -> After:
        return After(*self._commands.argv(words, directories, self._depth))

    def _then(self, after: After, operator: str, read: Callable[[Directories], After]) -> After:
        """Reads what follows an operator: `&&`, `||`, or another that does not look at success."""
        if operator == "&&":
            then = read(after.ok)
            return After(then.ok, _union(after.failed, then.failed))
        if operator == "||":
            then = read(after.failed)
            return After(_union(after.ok, then.ok), then.failed)
        return read(after.either)

    # Statements

    def statements(self, node: "Node", directories: Directories) -> After:
        """Reads the statements below a node, one after the other."""
        after = After(directories, directories)
        globs, beside = self.found.globs, False
        for child in self.children(node):
            if child.is_named:
                after = self._statement(child, after.either)
            beside = beside or child.type == "&"
        if beside:
            self._check_globs(globs)
        return after

    def substitution(self, node: "Node", directories: Directories) -> None:
        """Reads the commands of `$(…)` or `<(…)`."""
        self.statements(node, directories)

    def _statement(self, node: "Node", directories: Directories) -> After:
        reader = _READERS.get(node.type)
        if reader is None or self._levels > MAX_DEPTH:
            self.unknown(node)
            return After(None, None)
        self._levels += 1
        after = reader(self, node, directories)
        self._levels -= 1
        return after

    def _comment(self, _node: "Node", directories: Directories) -> After:
        return After(directories, directories)

    def _list(self, node: "Node", directories: Directories) -> After:
        after = After(directories, directories)
        operator = ""
        for child in self.children(node):
            if child.is_named:
                after = self._then(after, operator, partial(self._statement, child))
            else:
                operator = child.type
        return after

    def _pipeline(self, node: "Node", directories: Directories) -> After:
        where, last = directories, directories
        globs = self.found.globs
        for child in self.children(node):
            if child.is_named:
                last = self._statement(child, where).either
                if _holds_list(child):
                    # The parser takes `cd a && b > c | d` as `(cd a && b > c) | d`.
                    where = _union(where, last)
        self._check_globs(globs)
        # Some shells run the last part of a pipeline themselves.
        either = _union(where, last)
        return After(either, either)

    def _check_globs(self, before: int) -> None:
        """Notes globs in commands that run again, or beside others that may make files."""
        if self.found.changes and self.found.globs != before:
            self.found.opaque("a glob may match files that the line makes")

    def _subshell(self, node: "Node", directories: Directories) -> After:
        self.statements(node, directories)
        return After(directories, directories)

    def _group(self, node: "Node", directories: Directories) -> After:
        children = self.children(node)
        if children and children[0].type == "((":
            self.arithmetic(node)
            return After(directories, directories)
        return self.statements(node, directories)

    def _if(self, node: "Node", directories: Directories) -> After:
        """Reads conditions and bodies in order: what follows may run in any directory so far."""
        after: Directories = directories
        for child in self.children(node):
            if child.type in ("elif_clause", "else_clause"):
                after = _union(after, self._if(child, after).either)
            elif child.is_named:
                after = _union(after, self._statement(child, after).either)
        return After(after, after)

    def _loop(self, node: "Node", directories: Directories) -> After:
        body: Directories = directories
        globs = self.found.globs
        for _ in range(2):  # a second round shows whether the body moves to other directories
            before = body
            for child in self.children(node):
                if child.type in WORDS:
                    self.words([child], body)
                elif child.type == "variable_name":
                    self._commands.check_name(self.text(child))
                elif child.type == "do_group":
                    body = _union(body, self.statements(child, body).either)
                elif child.is_named:
                    body = _union(body, self._statement(child, body).either)
            self._check_globs(globs)
            if body == before:
                return After(body, body)
        self.found.opaque("a loop changes its directory")
        return After(None, None)

    def _case(self, node: "Node", directories: Directories) -> After:
        after: Directories = directories
        for child in self.children(node):
            parts = self.children(child) if child.type == "case_item" else [child]
            for part in parts:
                if part.type in WORDS:
                    self.words([part], after)
                elif part.is_named:
                    after = _union(after, self._statement(part, after).either)
        return After(after, after)

    def _negated(self, node: "Node", directories: Directories) -> After:
        either = self.statements(node, directories).either
        return After(either, either)

    def _test(self, node: "Node", directories: Directories) -> After:
        children = self.children(node)
        is_single = bool(children) and children[0].type == "["
        if is_single and not _SHELL_OPERATORS.isdisjoint(_operators(node)):
            # To the parser `>` compares two texts here; to the shell it is a redirection.
            self.found.opaque("an operator in `[ … ]` is not read")
        if is_single and (len(children) > 3 or _has_bare_expansion(node)):
            # The words of an expansion may be `-v` and a name, which is evaluated.
            self.found.opaque("an expansion in `[ … ]` is not quoted")
        texts = {self.text(child) for child in children}
        if not texts.isdisjoint(("-v", "-R")):
            self.found.opaque("a test of a variable may run commands")
        compared = [self.text(child) for child in children if child.type != "test_operator"]
        if not texts.isdisjoint(_ARITHMETIC_TESTS) and not all(map(_INTEGER.fullmatch, compared)):
            self.found.opaque("arithmetic may run commands")
        for child in children:
            if child.type in WORDS:
                self.words([child], directories)
            elif child.type.endswith("_expression"):
                self._test(child, directories)
            elif child.is_named:
                self.unknown(child)
        return After(directories, directories)

    # Commands

    def _command(self, node: "Node", directories: Directories) -> After:
        return self._simple(node, [], directories)

    def _simple(self, node: "Node", more: "list[Node]", directories: Directories) -> After:
        """Reads a command. `more` are its words behind a redirection."""
        text = self.text(node)
        if not more and is_plain_command(text):
            return self._argv(plain_words(text), directories)
        nodes: list[Node] = []
        for child in self.children(node):
            kind = child.type
            if kind == "command_name" or kind in WORDS or kind in ("==", "=~", "=", "!="):
                nodes.append(child)
            elif kind == "variable_assignment":
                self._assignment(child, directories)
            elif kind == "file_redirect":
                nodes += self.redirect(child, directories)
            elif kind == "herestring_redirect":
                self.here_string(child, directories)
            else:
                self.unknown(child)
        nodes += more
        if not nodes:
            return After(directories, directories)
        words = self.words(nodes, directories)
        after = After(*self._commands.simple(words, directories, self._depth))
        self.found.changes = self.found.changes or self._writes(node.children)
        return after

    def _redirected(self, node: "Node", directories: Directories) -> After:
        children = self.children(node)
        body = next((child for child in children if child.type not in REDIRECTIONS), None)
        if body is None or body.type == "command":
            more, rest = self._redirections(children, body, directories)
            after = After(directories, directories)
            if body is not None:
                after = self._simple(body, more, directories)
            self.found.changes = self.found.changes or self._writes(children)
        else:
            globs = self.found.globs
            # The parser takes `cd a && b > c` as `(cd a && b) > c`: the file may be in a or not.
            after = self._statement(body, directories)
            where = _union(directories, after.either)
            more, rest = self._redirections(children, body, where)
            if more:
                self.not_parsed()
            self.found.changes = self.found.changes or self._writes(children)
            self._check_globs(globs)
        for each in rest:
            after = self._statement(each, after.either)
        return after

    def _redirections(
        self, nodes: "list[Node]", body: "Node | None", directories: Directories
    ) -> "tuple[list[Node], list[Node]]":
        """Reads redirections. Returns further words of the command, and further statements."""
        more: list[Node] = []
        rest: list[Node] = []
        for node in nodes:
            if node.type == "file_redirect":
                more += self.redirect(node, directories)
            elif node.type == "heredoc_redirect":
                rest += self.heredoc(node, directories)
            elif node.type == "herestring_redirect":
                self.here_string(node, directories)
            elif node is not body:
                self.unknown(node)
        return more, rest

    def _writes(self, nodes: "list[Node]") -> bool:
        return any(">" in self.text(node) for node in nodes if node.type in REDIRECTIONS)

    def _lone_redirect(self, node: "Node", directories: Directories) -> After:
        if self.redirect(node, directories):
            self.not_parsed()
        self.found.changes = True
        return After(directories, directories)

    # Assignments

    def _assignments(self, node: "Node", directories: Directories) -> After:
        for child in self.children(node):
            if child.is_named:
                self._assignment(child, directories)
        return After(directories, directories)

    def _assignment(self, node: "Node", directories: Directories) -> After:
        values: list[Node] = []
        name = ""
        for child in self.children(node):
            if child.type in ("variable_name", "subscript"):
                name = self.text(child)
            elif child.type == "array":
                self._array(child, directories)
            elif child.type in WORDS:
                values.append(child)
            elif child.is_named:
                self.unknown(child)
        if "[" in name and not _ELEMENT.fullmatch(name):
            self.found.opaque("a subscript may run commands")
        words = self.words(values, directories) if values else []
        value = words[0] if len(words) == 1 else None
        self._commands.assign(name.partition("[")[0], value, directories, self._depth)
        return After(directories, directories)

    def _array(self, node: "Node", directories: Directories) -> None:
        for child in self.children(node):
            if child.type in WORDS:
                self.words([child], directories)
            elif child.is_named:
                self.unknown(child)

    def _declaration(self, node: "Node", directories: Directories) -> After:
        words: list[Word] = []
        for child in self.children(node):
            if child.type == "variable_assignment":
                self._assignment(child, directories)
            elif child.type == "variable_name":
                words.append(Word((self.text(child),)))
            elif child.type in WORDS:
                words += self.words([child], directories)
            elif child.is_named:
                self.unknown(child)
        self._commands.declare(words)
        return After(directories, directories)


def _has_bare_expansion(node: "Node") -> bool:
    """Whether a test has an expansion outside of quotes. `$?` and `$#` are numbers."""
    for child in node.children:
        if child.type in EXPANSIONS and child.text not in (b"$?", b"$#"):
            return True
        if child.type not in ("string", "raw_string") and _has_bare_expansion(child):
            return True
    return False


def _operators(node: "Node") -> "Iterator[str]":
    """Yields the operators of a test, without those in its words."""
    for child in node.children:
        if not child.is_named:
            yield child.type
        elif child.type not in WORDS:
            yield from _operators(child)


def _holds_list(node: "Node") -> bool:
    if node.type in ("redirected_statement", "negated_command"):
        return any(map(_holds_list, node.children))
    return node.type == "list"


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
    "comment": _Line._comment,
}
"""Every kind of statement that is read."""
