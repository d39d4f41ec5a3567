"""The level of a run as a service: show it, and set it as a person says."""

from typing import Any, NamedTuple

from msgspec import UNSET

from subluminal.config.places import Places
from subluminal.contracts.events import TaintChange, TaintChanged
from subluminal.contracts.vocabulary import TAINT_RANK, Taint, TaintCause
from subluminal.core.controls.acts import identity_in, record_act
from subluminal.core.levels import origin, source_of
from subluminal.core.runs.living import known_run
from subluminal.errors import SubluminalError
from subluminal.state.errors import StateBusy, StateUnusable
from subluminal.state.run_state import RunState

_WAIT_MS = 5_000
"""Longest wait for the run's lock: a person has more patience than a call."""


class RunLevel(NamedTuple):
    """The level of a run."""

    run_id: str
    taint: Taint
    since_seq: int
    """number of the call since which the run has this level; 0 for its start"""
    source: str
    """what gave the run its level; empty if nothing did"""

    def plain(self) -> dict[str, Any]:
        """Returns what `--json` prints."""
        return {**self._asdict(), "taint": self.taint.value, "source": self.source or None}


class LevelSet(NamedTuple):
    """A level that a person has set."""

    level: RunLevel
    before: Taint
    is_recorded: bool
    """whether the act is in a journal of the run, if it changed the level"""


def show_level(places: Places, name: str) -> RunLevel:
    """Returns the level of a run. Raises SubluminalError."""
    run_id = known_run(places, name)
    try:
        with RunState.open(places.state, run_id, threads=True, create=False) as state:
            return _level_of(run_id, state)
    except StateUnusable as problem:
        raise _no_state(run_id, problem) from None


def set_level(
    places: Places, name: str, level: Taint, reason: str = "", *, may_raise: bool = True
) -> LevelSet:
    """Sets the level of a run for all its shims; only a person `may_raise` it.

    Raises SubluminalError.
    """
    run_id = known_run(places, name)
    try:
        with RunState.open(
            places.state, run_id, threads=True, wait_ms=_WAIT_MS, create=False
        ) as state:
            change = _put(state, level, reason, may_raise=may_raise)
            found = _level_of(run_id, state)
    except StateUnusable as problem:
        raise _no_state(run_id, problem) from None
    except StateBusy:
        raise SubluminalError(
            f"the state of run `{run_id}` is locked by another process", hint="try again"
        ) from None
    if change.from_ is change.to:
        return LevelSet(found, change.from_, is_recorded=True)
    done = record_act(places, run_id, identity_in(places, run_id), TaintChanged, taint=change)
    return LevelSet(found, change.from_, done)


def level_for_child(places: Places, run_id: str) -> Taint | None:
    """Returns the level that a run gives to a run that it starts; None if nothing lowered it.

    If its state cannot be read, that is the lowest.
    """
    try:
        with RunState.open(places.state, run_id, threads=True, create=False) as state:
            level = state.taint_state().level
    except StateUnusable:
        return Taint.UNTRUSTED
    return None if level is Taint.SYSTEM else level


def _put(state: RunState, level: Taint, reason: str, *, may_raise: bool) -> TaintChange:
    rank, taint = TAINT_RANK[level], state.taint
    with state.locked():
        change = TaintChange(
            from_=taint.state().level,
            to=level,
            seq=state.last_seq(),
            by=TaintCause.COMMAND,
            reason=reason or UNSET,
        )
        if rank < taint.rank() and not may_raise:
            raise SubluminalError(
                f"the run was lowered to {change.from_} in the meantime", hint="try again"
            )
        if rank != taint.rank():
            taint.note(rank, source_of(change))
        if rank < taint.rank():
            taint.put(rank)
        else:
            taint.lower(rank)
    return change


def _level_of(run_id: str, state: RunState) -> RunLevel:
    found = state.taint_state()
    return RunLevel(run_id, found.level, found.seq, origin(found.source))


def _no_state(run_id: str, problem: StateUnusable) -> SubluminalError:
    return SubluminalError(
        f"the level of run `{run_id}` is not known: {problem}",
        hint="the level of a run is kept as long as its state; `sub query calls` has the record",
    )
