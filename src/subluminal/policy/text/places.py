"""Where in a file each value and key stands. Knows positions, not what they mean."""

from collections.abc import Sequence
from typing import NamedTuple


class Place(NamedTuple):
    """A line and a column, both counted from 1."""

    line: int = 0
    column: int = 0


class Node:
    """A value's place, and those of what is inside it. An alias shares the node of its anchor."""

    __slots__ = ("children", "keys", "place")

    def __init__(self, place: Place = Place()) -> None:  # noqa: B008 - a Place is immutable
        self.place = place
        self.children: dict[str | int, Node] = {}
        self.keys: dict[str | int, Place] = {}

    def find(self, path: Sequence[str | int], *, at_key: bool = False) -> Place:
        """Returns the place of a value, or of its key; as near as it is known."""
        node = self
        for depth, part in enumerate(path):
            if at_key and depth == len(path) - 1 and part in node.keys:
                return node.keys[part]
            child = node.children.get(part)
            if child is None:
                break
            node = child
        return node.place

    def below(self, *path: str | int) -> "Node":
        """Returns the node of a value inside this one, or this one where it is not known."""
        node = self
        for part in path:
            node = node.children.get(part, node)
        return node
