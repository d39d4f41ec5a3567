"""The tree that both parsers return: values, and where they are in the text.

Nodes hold spans of the text. A scalar is decoded only when it is asked for.
"""

from collections.abc import Callable
from enum import Enum
from typing import Any

from subluminal.errors import InvalidInput, Problem

MAX_DEPTH = 200
"""Deepest nesting that is accepted; well below the limit of Python's stack."""


class Kind(Enum):
    """The type of a value."""

    TABLE = "table"
    LIST = "list"
    SCALAR = "scalar"


class Node:
    """One value. `start` and `end` are -1 for a TOML table without brackets of its own."""

    __slots__ = ("_read", "end", "items", "kind", "members", "start", "text")

    def __init__(
        self, kind: Kind, text: str, start: int = -1, end: int = -1, read: Any = None
    ) -> None:
        self.kind = kind
        self.text = text
        self.start = start
        self.end = end
        self.members: list[Member] = []
        self.items: list[Node] = []
        self._read: Callable[[str], Any] = read

    @property
    def raw(self) -> str:
        """The text of the value."""
        return self.text[self.start : self.end]

    @property
    def scalar(self) -> Any:
        """The value of a scalar; None for a table or a list."""
        return self._read(self.raw) if self.kind is Kind.SCALAR else None

    @property
    def string(self) -> str | None:
        """The value if it is a string, else None."""
        value = self.scalar
        return value if isinstance(value, str) else None

    def member(self, name: str) -> "Member | None":
        """Returns the last member of a name, which is the one that every client's parser uses."""
        return next((m for m in reversed(self.members) if m.name == name), None)

    def get(self, name: str) -> "Node | None":
        """Returns the value of a member; None if there is no such member."""
        member = self.member(name)
        return member.node if member else None

    def value(self) -> Any:
        """Returns the whole value as plain Python data."""
        if self.kind is Kind.TABLE:
            return {member.name: member.node.value() for member in self.members}
        if self.kind is Kind.LIST:
            return [item.value() for item in self.items]
        return self.scalar


class Member:
    """A name and its value. `last` is where the last part of a dotted TOML name starts."""

    __slots__ = ("end", "inline", "last", "name", "node", "start")

    def __init__(
        self, name: str, node: Node, start: int, last: int, end: int, *, inline: bool
    ) -> None:
        self.name = name
        self.node = node
        self.start = start
        self.last = last
        self.end = end
        self.inline = inline
        """True between braces, where members are separated by commas"""

    def raw_name(self) -> str:
        """Returns the text of the name, with its quotes."""
        return self.node.text[self.last : self.end]


def place_of(text: str, offset: int) -> tuple[int, int]:
    """Returns line and column of an offset, counted from 1."""
    line = text.count("\n", 0, offset) + 1
    return line, offset - (text.rfind("\n", 0, offset) + 1) + 1


def wrong(text: str, offset: int, message: str) -> InvalidInput:
    """The error for a problem at an offset. The file's name is added by `document.parse`."""
    line, column = place_of(text, offset)
    return InvalidInput([Problem(message, line=line, column=column)])
