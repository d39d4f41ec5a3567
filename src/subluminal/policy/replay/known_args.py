"""What a recorded preview still tells of a call's arguments, key by key.

Previews are redacted, then cut. Canonical text has its keys in order, so what stands before the
cut is known, and so is what is missing there; the rest may be anything.
"""

from collections.abc import Callable
from typing import Any

from subluminal.canonical import AmbiguousJSON, parse
from subluminal.contracts.limits import REDACTED, TRUNCATED

Hides = Callable[[str], bool]


class PartialArgs(dict[str, Any]):
    """Arguments of which some keys are hidden. Remembers which of those a policy asked for."""

    __slots__ = ("asked", "hides", "present")

    def __init__(
        self, known: dict[str, Any], hides: Hides, present: frozenset[str] = frozenset()
    ) -> None:
        super().__init__(known)
        self.hides = hides
        self.present = present
        """hidden keys that were there, with some value"""
        self.asked: set[str] = set()

    def get(self, key: str, default: Any = None, /) -> Any:
        self._note(key)
        return super().get(key, default)

    def __contains__(self, key: object) -> bool:
        self._note(str(key))
        return super().__contains__(key)

    def _note(self, key: str) -> None:
        if self.hides(key):
            self.asked.add(key)


def known_args(
    text: str | None, *, truncated: bool, redacted: bool
) -> dict[str, Any] | PartialArgs | None:
    """Reads a preview. None where the shim itself had not read the arguments (Pack 1.10)."""
    if text is None:
        return _unknown()
    if truncated:
        return None if text == TRUNCATED else _before_the_cut(text.partition(REDACTED)[0])
    try:
        value = parse(text.encode("utf-8", "surrogatepass")).value
    except AmbiguousJSON:
        return _unknown()
    if not isinstance(value, dict):
        return _unknown()  # one mark stands for all of it
    return _without_marks(value) if redacted else value


def _unknown() -> PartialArgs:
    return PartialArgs({}, lambda _key: True)


def _without_marks(value: dict[str, Any]) -> PartialArgs:
    known = {key: each for key, each in value.items() if not _is_marked([key, each])}
    marked = frozenset(key for key in value if key not in known)
    if any(REDACTED in key for key in marked):
        return PartialArgs(known, lambda key: key not in known)
    return PartialArgs(known, marked.__contains__, marked)


def _is_marked(value: Any) -> bool:
    if isinstance(value, str):
        return REDACTED in value
    if isinstance(value, list):
        return any(map(_is_marked, value))
    if isinstance(value, dict):
        return any(_is_marked(key) or _is_marked(each) for key, each in value.items())
    return False


def _before_the_cut(text: str) -> PartialArgs:
    known = _whole_members(text)
    keys = list(known)
    if not keys or keys != sorted(keys):  # others may write previews that are not canonical
        return PartialArgs(known, lambda key: key not in known)
    return PartialArgs(known, lambda key: key > keys[-1])


def _whole_members(text: str) -> dict[str, Any]:
    """The members of an object that were whole, each followed by another one."""
    try:
        found: dict[str, Any] = parse(f"{{{text[1 : _end_of_whole(text)]}}}".encode()).value
    except AmbiguousJSON:
        return {}
    return found


def _end_of_whole(text: str) -> int:
    from json import JSONDecoder  # as in canonical.parsing: 13 ms that others do not pay

    read, at, end = JSONDecoder().raw_decode, 1, 1
    try:
        while True:
            at = read(text, at)[1]  # the key
            at = read(text, at + 1)[1]  # the value, behind a colon
            if text[at : at + 1] != ",":
                return end
            end, at = at, at + 1
    except (ValueError, RecursionError):
        return end
