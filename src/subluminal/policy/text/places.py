"""Places: where each value and key is in a file, and problems reported at those places.

`Node` maps a path to a line and column. `problem_of` turns a misfit at a path into a problem at a
place, in words that name the rule and the field.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from subluminal.contracts.shape import Misfit, Path
from subluminal.errors import Problem


class Place(NamedTuple):
    """A line and a column, both counted from 1; 0 if unknown."""

    line: int = 0
    column: int = 0


class Node:
    """The place of a value, and of the values inside it. An alias shares its anchor's node."""

    __slots__ = ("children", "keys", "place")

    def __init__(self, place: Place = Place()) -> None:  # noqa: B008 - a Place is immutable
        self.place = place
        self.children: dict[str | int, Node] = {}
        self.keys: dict[str | int, Place] = {}

    def find(self, path: Sequence[str | int], *, at_key: bool = False) -> Place:
        """Returns the place of a value or its key, else of the closest value that contains it."""
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
        """Returns the node of a value inside this one, as far as the path is known."""
        node = self
        for part in path:
            node = node.children.get(part, node)
        return node


Title = Callable[[Path], tuple[str, Path]]
"""Returns a name for the beginning of a path, such as a rule, and the rest of the path."""

_NO_BOOLEANS = frozenset({"yes", "no", "on", "off"})


def problem_of(
    misfit: Misfit, node: Node, file: str, title: Title, severity: str = "error"
) -> Problem:
    """Returns a misfit as a problem at its place."""
    name, rest = title(misfit.path)
    place = node.find(misfit.path, at_key=misfit.at_key)
    message = name + _sentence(misfit, rest)
    return Problem(message, file, *place, misfit.hint or _boolean_hint(misfit.message), severity)


def _sentence(misfit: Misfit, rest: Path) -> str:
    if misfit.at_key or misfit.message.startswith("missing field"):
        where = path_text(rest[:-1] if misfit.at_key else rest)
        return f"{misfit.message} in `{where}`" if where else misfit.message
    # The message about an unknown rule kind names its field.
    if not rest or misfit.message.startswith("unknown rule"):
        return misfit.message
    return f"`{path_text(rest)}`: {misfit.message}"


def path_text(path: Path) -> str:
    """Writes a path as `effect.suggest.amount` or `rules[2]`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f"{'.' if text else ''}{part[:60]}"
    return text


def _boolean_hint(message: str) -> str | None:
    if message.startswith("expected true or false") and message.endswith("`"):
        word = message.rstrip("`").rpartition("`")[2]
        if word.lower() in _NO_BOOLEANS:
            return f"in YAML 1.2 `{word}` is a string: write `true` or `false`"
    return None
