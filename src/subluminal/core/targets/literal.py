"""Reads lines that say exactly what runs: simple commands of literal words.

Between them `;`, `&&`, `||` and `|` may stand, behind them `2>&1` and redirections of `/dev/null`.
Everything else that a shell knows makes the line not literal: expansions, globs, braces, `~`,
assignments, other redirections, `&`, line ends, comments, compound commands.
"""

from typing import TYPE_CHECKING

from subluminal.core.targets.expansions import Expansions
from subluminal.core.targets.found import MAX_LINE_BYTES, Directories, Found
from subluminal.core.targets.plain_line import plain_commands
from subluminal.core.targets.tree import new_parser

if TYPE_CHECKING:
    from tree_sitter import Node

_JOINED = {
    "program": frozenset((";",)),
    "list": frozenset(("&&", "||")),
    "pipeline": frozenset(("|",)),
    "redirected_statement": frozenset[str](),
}
"""Kinds of nodes that hold statements, with the operators between them."""
_LITERAL = frozenset(("word", "number", "string", "raw_string", "concatenation"))
_INSIDE = _LITERAL | frozenset(("string_content", '"'))
_NULL = "/dev/null"
_TO_NULL = frozenset((">", ">>", "&>", "&>>", "<"))
_MAX_PIPES = 400


def literal_commands(text: str) -> list[list[str]] | None:
    """Returns the words of every command of a literal line, quotes removed; None for others."""
    data = text.encode("utf-8", "surrogatepass")
    if len(data) > MAX_LINE_BYTES or text.count("|") > _MAX_PIPES or not text.isprintable():
        return None
    plain = plain_commands(text)
    if plain is not None:
        is_literal = all(file == _NULL for command in plain for file, _ in command.files)
        return [command.words for command in plain] if is_literal else None
    root = new_parser().parse(data).root_node
    if root.has_error:
        return None
    line = _LiteralLine(data)
    try:
        line.statements(root)
    except (_NotLiteral, RecursionError):
        return None
    return None if line.found.targets([]).opaque else line.commands


class _NotLiteral(Exception):
    """The line has something else."""


class _LiteralLine(Expansions):
    """One parsed line, if it is literal."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data, Found("/", "", looks=False))
        self.commands: list[list[str]] = []

    def substitution(self, node: "Node", directories: Directories) -> None:
        """Refuses commands in words."""
        raise _NotLiteral

    def statements(self, node: "Node") -> None:
        """Reads the statements below a node."""
        operators = _JOINED[node.type]
        for child in self.children(node):
            if child.type == "command":
                self.commands.append(self._words(self._parts(child)))
            elif child.type == "file_redirect":
                self._redirect(child)
            elif child.type in _JOINED:
                self.statements(child)
            elif child.type not in operators:
                raise _NotLiteral

    def _parts(self, command: "Node") -> "list[Node]":
        parts: list[Node] = []
        for child in self.children(command):
            parts += self.children(child) if child.type == "command_name" else [child]
        return parts

    def _words(self, nodes: "list[Node]") -> list[str]:
        if not nodes or not all(map(_is_literal, nodes)):
            raise _NotLiteral
        words = self.words(nodes, None)
        if any(not word.known or word.globs or len(word.texts) != 1 for word in words):
            raise _NotLiteral
        return [word.texts[0] for word in words]

    def _redirect(self, node: "Node") -> None:
        """Accepts `2>&1`, and any stream from or to `/dev/null`."""
        parts = self.children(node)
        stream = self.text(parts[0]) if parts[0].type == "file_descriptor" else ""
        operator, *words = parts[1:] if stream else parts
        target = self._words(words)
        is_copy = (stream, operator.type, target) == ("2", ">&", ["1"])
        if not is_copy and (operator.type not in _TO_NULL or target != [_NULL]):
            raise _NotLiteral


def _is_literal(node: "Node") -> bool:
    if node.type not in _LITERAL:
        return False
    return all(child.type in _INSIDE and _is_inside(child) for child in node.children)


def _is_inside(node: "Node") -> bool:
    return node.type not in ("string", "concatenation") or _is_literal(node)
