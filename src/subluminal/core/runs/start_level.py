"""The level that a run starts with: lowers the run to it, and says so.

The first process of a run lowers it; one that joins later, or a policy that comes into force later,
lowers it further. A person's word goes before all of them.
"""

from subluminal.contracts.events import TaintChange
from subluminal.contracts.vocabulary import TAINT_RANK, Taint, TaintCause
from subluminal.state.errors import StateUnusable
from subluminal.state.run_state import RunState

_STARTS = "the run starts so"


def lower_to_start(state: RunState, start: Taint) -> TaintChange | None:
    """Lowers a run to its start; None if that changes nothing. Needs the run's lock."""
    rank = TAINT_RANK[start]
    if not state.taint.starts_at(rank):
        return None
    before = state.taint.state().level
    state.taint.start(rank, (TaintCause.RULE, "", "", "", _STARTS))
    return _change(state, before, start)


def lower_to_start_unlocked(state: RunState, start: Taint) -> TaintChange | None:
    """Does the same while another process holds the lock; None without a state, too."""
    rank = TAINT_RANK[start]
    try:
        before = state.taint_state().level
        if not state.taint.starts_at(rank):
            return None
        state.lower_unlocked(rank)
    except StateUnusable:
        return None  # calls cannot be decided either
    return _change(state, before, start)


def _change(state: RunState, before: Taint, start: Taint) -> TaintChange:
    seq = state.last_seq()
    return TaintChange(from_=before, to=start, seq=seq, by=TaintCause.RULE, reason=_STARTS)
