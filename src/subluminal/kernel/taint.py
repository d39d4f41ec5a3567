"""The taint lattice: SYSTEM > TRUSTED > UNTRUSTED, and where a proposal came from.

A level only ever falls: `merge_taint` is the meet of the lattice. Fields of a payload may have
levels of their own (`tainted`). They count in every decision: the level of an envelope is the
lowest of its own and those of its fields (`effective_taint` in envelope.py).
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import Any, Protocol

from msgspec import Struct

from subluminal.canonical import MAX_DEPTH, AmbiguousJSON
from subluminal.contracts.vocabulary import Taint

MAX_VALUES = 1_000_000
"""A payload with more values is refused: a few nested lists can stand for 2^64 of them."""


class Origin(StrEnum):
    """Where a proposal came from: a second axis, beside the level."""

    HUMAN = "Human"
    RETRIEVED = "Retrieved"
    """content of a store, a document or a page that was fed back in"""
    EXTERNAL_API = "ExternalAPI"
    """the result of somebody else's program that was fed back in"""
    LLM = "LLM"
    SYSTEM = "System"


class TaintPolicy(Protocol):
    """The levels that a policy demands.

    A policy may also have `requires_uncontaminated(kind) -> bool`: then that kind is refused if its
    origin is Retrieved or ExternalAPI, whatever its level.
    """

    def minimum_for(self, kind: str, /) -> Taint | str:
        """Returns the lowest level that may propose an intent of this kind."""


class TaintedValue(Struct, frozen=True):
    """A field of a payload with a level of its own. In JSON: an object with both members."""

    value: Any
    taint: Taint


SYSTEM = Taint.SYSTEM  # reading a member of an enum costs as much as the rest of a check
RANK: dict[str, int] = {Taint.UNTRUSTED: 1, Taint.TRUSTED: 2, Taint.SYSTEM: 3}
_CONTAMINATING = frozenset({Origin.RETRIEVED, Origin.EXTERNAL_API})
_WORDS = frozenset({str, bool, type(None)})
_HOLDERS = frozenset({dict, list})
_DOUBLE_INTEGER = 2**53
# Far below the depth at which the C stack or the recursion limit matter to an encoder.
_PLAIN_DEPTH = 64


def taint_rank(level: Taint | str) -> int:
    """Returns the rank of a level: 1 for UNTRUSTED to 3 for SYSTEM. Raises ValueError."""
    return RANK[Taint(level)]


def merge_taint(a: Taint | str, b: Taint | str) -> Taint:
    """Returns the lower of two levels."""
    return Taint(a) if taint_rank(a) <= taint_rank(b) else Taint(b)


def meet_all(levels: Iterable[Taint | str]) -> Taint:
    """Returns the lowest of the levels; SYSTEM if there are none."""
    lowest = Taint.SYSTEM
    for level in levels:
        lowest = merge_taint(lowest, level)
    return lowest


def is_contaminating(origin: Origin | str | None) -> bool:
    """Whether proposals of this origin may carry out what some text told the model to do."""
    return origin in _CONTAMINATING


def can_propose(level: Taint | str, kind: str, policy: TaintPolicy) -> bool:
    """Whether a payload of this level may propose an intent of this kind."""
    return taint_rank(level) >= taint_rank(policy.minimum_for(kind))


def can_propose_field_level(
    level: Taint | str, kind: str, policy: TaintPolicy, payload: Any
) -> bool:
    """`can_propose` for the lowest of the level and those of the payload's fields."""
    return can_propose(merge_taint(level, lowest_field_taint(payload)), kind, policy)


def tainted(value: Any, taint: Taint | str) -> TaintedValue:
    """Gives a field of a payload a level of its own."""
    return TaintedValue(value, Taint(taint))


def collect_field_taints(payload: Any) -> list[Taint]:
    """Returns the levels of all fields that have one, also of those inside other such fields."""
    return [level for _, level, _ in tainted_fields(payload)]


def lowest_field_taint(payload: Any) -> Taint:
    """Returns the lowest level of any field; SYSTEM if no field has one. Raises as `survey`."""
    return survey(payload)[0]


def survey(payload: Any) -> tuple[Taint, bool]:
    """Returns the lowest level of any field, and whether all numbers are plain, as `_all_plain`.

    Every value is looked at once, in bounded time. Raises AmbiguousJSON for a payload that is not
    plain JSON, is cyclic or deeper than MAX_DEPTH, or has more than MAX_VALUES values.
    """
    lowest, is_plain = SYSTEM, True
    level: list[Any] = [payload] if type(payload) in _HOLDERS else [[payload]]
    depth, values_left = 0, MAX_VALUES
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            raise _too_deep()
        below: list[Any] = []
        for holder in level:
            values_left -= len(holder)
            if values_left < 0:
                raise _too_many()
            if not _all_plain(holder, below):
                is_plain = False
            if type(holder) is dict and "taint" in holder and is_tainted(holder):
                lowest = merge_taint(lowest, holder["taint"])
        level = below
    return lowest, is_plain and depth <= _PLAIN_DEPTH


def _all_plain(holder: Any, below: list[Any]) -> bool:
    """Whether msgspec writes the numbers of an object or array as canonical JSON does: integers
    that a double holds. The objects and arrays in it go to `below`.
    """
    values = holder
    if type(holder) is dict:
        for name in holder:
            if type(name) is not str:
                raise AmbiguousJSON("a key is not a string")
        values = holder.values()
    is_plain = True
    for value in values:
        kind = type(value)
        if kind in _WORDS:
            continue
        if kind is int:
            if not -_DOUBLE_INTEGER < value < _DOUBLE_INTEGER:
                is_plain = False
        elif kind in _HOLDERS:
            below.append(value)
        elif kind is float:
            is_plain = False
        else:
            raise AmbiguousJSON(f"a value of type `{kind.__name__}` is not JSON")
    return is_plain


def tainted_fields(payload: Any) -> list[tuple[tuple[str | int, ...], Taint, Any]]:
    """Returns path, level and value of every field that has a level, the outermost first.

    Raises AmbiguousJSON for a payload that is deeper than MAX_DEPTH or has more than MAX_VALUES
    values.
    """
    found: list[tuple[tuple[str | int, ...], Taint, Any]] = []
    level: list[tuple[tuple[str | int, ...], Any]] = [((), payload)]
    values_left = MAX_VALUES
    for _ in range(MAX_DEPTH + 1):
        below: list[tuple[tuple[str | int, ...], Any]] = []
        for path, item in level:
            value = item
            if isinstance(value, TaintedValue):
                value = {"value": value.value, "taint": value.taint}
            if isinstance(value, dict):
                if is_tainted(value):
                    found.append((path, Taint(value["taint"]), value["value"]))
                below += [((*path, name), member) for name, member in value.items()]
            elif isinstance(value, list | tuple):
                below += [((*path, index), member) for index, member in enumerate(value)]
            if len(below) > values_left:
                raise _too_many()
        if not below:
            return found
        values_left -= len(below)
        level = below
    raise _too_deep()


def is_tainted(value: Any) -> bool:
    """Whether a value is a field with a level of its own, as a struct or as JSON has it."""
    if isinstance(value, TaintedValue):
        return True
    if not isinstance(value, dict) or "value" not in value:
        return False
    name = value.get("taint")
    return isinstance(name, str) and name in RANK


def _too_many() -> AmbiguousJSON:
    return AmbiguousJSON(f"the payload has more than {MAX_VALUES} values")


def _too_deep() -> AmbiguousJSON:
    return AmbiguousJSON(f"nested deeper than {MAX_DEPTH} levels")
