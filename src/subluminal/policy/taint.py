"""The level of a run, as policies see it: the matcher `taint`, and what lowers it without a rule.

The level is a cell of the run's counters, so replay, explain and cases keep it as they keep every
counter.
"""

from collections.abc import Callable, Iterable
from typing import Any

from subluminal.contracts.counters import TAINT_KEY, Cell, CellKind, Update
from subluminal.contracts.vocabulary import TAINT_RANK, Taint

_TAINT = CellKind.TAINT
_LEVELS = tuple(Taint)
_LOWEST = len(_LEVELS) - 1

ReadCell = Callable[[CellKind, bytes], Cell]
TaintTest = Callable[[ReadCell], bool]


def rank_in(read: ReadCell) -> int:
    """Returns the rank of the level that a store of counters holds."""
    cell = read(_TAINT, TAINT_KEY)
    return min(cell[0], _LOWEST) if cell else 0


def level_in(read: ReadCell) -> Taint:
    """Returns the level that a store of counters holds."""
    return _LEVELS[rank_in(read)]


def lowest(levels: Iterable[Taint]) -> Taint:
    """Returns the lowest of several levels; SYSTEM if there are none."""
    return max(levels, key=TAINT_RANK.__getitem__, default=Taint.SYSTEM)


def lowering_to(level: Taint) -> list[Update]:
    """Returns the updates that lower a run to a level; none for SYSTEM."""
    rank = TAINT_RANK[level]
    return [(_TAINT, TAINT_KEY, (rank,))] if rank else []


def taint_test(spec: dict[str, Any] | None) -> TaintTest | None:
    """Builds the test of the run's level from `match.taint` of a snapshot."""
    if spec is None:
        return None
    bound = TAINT_RANK[Taint(spec["below"])]
    return lambda read: rank_in(read) > bound
