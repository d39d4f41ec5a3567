"""What both notations have in common: values with their place in the text.

A tree says where things are. It holds the text, so that a value is read only when it is asked for.
"""

from collections.abc import Callable
from enum import Enum
from typing import Any

from subluminal.errors import InvalidInput, Problem

MAX_DEPTH = 200
"""Deeper than any configuration, and well below what Python's stack carries."""


class Kind(Enum):
    """What a value is made of."""

    TABLE = "table"
    LIST = "list"
    SCALAR = "scalar"


class Node:
    """One value. `start` and `end` are -1 for a TOML table that has no brackets of its own."""

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
        """The value as it is written."""
        return self.text[self.start : self.end]

    @property
    def scalar(self) -> Any:
        """A scalar's value; None for what is not one."""
        return self._read(self.raw) if self.kind is Kind.SCALAR else None

    @property
    def string(self) -> str | None:
        """The value if it is text."""
        value = self.scalar
        return value if isinstance(value, str) else None

    def member(self, name: str) -> "Member | None":
        """The last member of that name: the one that every client's parser takes."""
        return next((m for m in reversed(self.members) if m.name == name), None)

    def get(self, name: str) -> "Node | None":
        """The value of a member."""
        member = self.member(name)
        return member.node if member else None

    def value(self) -> Any:
        """The whole value as plain Python data."""
        if self.kind is Kind.TABLE:
            return {member.name: member.node.value() for member in self.members}
        if self.kind is Kind.LIST:
            return [item.value() for item in self.items]
        return self.scalar


class Member:
    """A name and its value. TOML names may be dotted: `last` is where the last part starts."""

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
        """whether it stands between braces, among commas"""

    def raw_name(self) -> str:
        """The name as it is written, quotes included."""
        return self.node.text[self.last : self.end]


def place_of(text: str, offset: int) -> tuple[int, int]:
    """Line and column of an offset, counted from 1."""
    line = text.count("\n", 0, offset) + 1
    return line, offset - (text.rfind("\n", 0, offset) + 1) + 1


def wrong(text: str, offset: int, message: str) -> InvalidInput:
    """An error at a place; the caller's caller knows the file's name."""
    line, column = place_of(text, offset)
    return InvalidInput([Problem(message, line=line, column=column)])
