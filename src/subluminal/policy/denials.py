"""Refusals in a row: an agent may lose trust if more than three calls of its run are refused.

All shims of a run count together. A call that is forwarded starts the count anew. The counter is
kept only if a rule asks for trust that the agent can lose this way.
"""

from subluminal.contracts.counters import CellKind
from subluminal.policy.taint import ReadCell
from subluminal.policy.visit import Visit

MAX_DENIALS = 3
"""Most refusals in a row that cost an agent no trust."""
_PAIR = CellKind.PAIR
_KEY = b"denials in a row"
"""16 bytes, as every key of a pair; other keys are hashes."""


def is_past_denials(read: ReadCell) -> bool:
    """Whether more than three calls of the run in a row have been refused."""
    cell = read(_PAIR, _KEY)
    return bool(cell) and cell[0] > MAX_DENIALS


def note_denials(visit: Visit) -> None:
    """Adds the updates of the counter to what a call leaves behind."""
    cell = visit.read(_PAIR, _KEY)
    number = cell[0] if cell else 0
    if number <= MAX_DENIALS:
        visit.if_refused.append((_PAIR, _KEY, (number + 1,)))
    if number:
        visit.if_forwarded.append((_PAIR, _KEY, (0,)))
