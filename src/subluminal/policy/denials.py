"""Refusals in a row: an agent may lose trust if more than three calls of its run are refused.

All shims of a run count together. A call that is forwarded starts the count anew. The counter is
kept only if a rule asks for trust that the agent can lose this way.
"""

from subluminal.contracts.counters import CellKind, Update
from subluminal.policy.program import Program
from subluminal.policy.taint import ReadCell
from subluminal.policy.visit import Visit

MAX_DENIALS = 3
"""Most refusals in a row that cost an agent no trust."""
_PAIR = CellKind.PAIR
_KEY = b"denials in a row"
"""16 bytes, as every key of a pair; other keys are hashes."""
_ANEW: Update = (_PAIR, _KEY, (0,))
_AFTER: list[list[Update]] = [[(_PAIR, _KEY, (n + 1,))] for n in range(MAX_DENIALS + 1)]
"""The updates of a refusal, by the number of refusals before it."""


class Denials:
    """Counts refusals in a row. `programs` decide while an agent has lost trust by them."""

    __slots__ = ("programs",)

    def __init__(self, programs: list[Program]) -> None:
        self.programs = programs

    def number(self, read: ReadCell) -> int:
        """Returns the number of refusals in a row; it does not grow past MAX_DENIALS + 1."""
        cell = read(_PAIR, _KEY)
        return cell[0] if cell else 0

    def are_too_many(self, number: int) -> bool:
        """Whether this many refusals in a row cost trust."""
        return number > MAX_DENIALS

    def note(self, visit: Visit, number: int) -> None:
        """Adds the updates of the counter, which is at `number`, to what a call leaves behind."""
        if number <= MAX_DENIALS:
            visit.if_refused = _AFTER[number]
        if number:
            visit.if_forwarded.append(_ANEW)

    def of_refused(self, read: ReadCell, refused: int) -> list[Update]:
        """Returns the updates after so many more refusals, whatever the rules said."""
        number = min(self.number(read) + refused, MAX_DENIALS + 1)
        return [(_PAIR, _KEY, (number,))]
