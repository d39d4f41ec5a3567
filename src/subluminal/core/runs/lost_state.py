"""Notices that the state of a run was removed, and makes a new one when a person says so.

The state holds what a run has used of its budgets. If it was removed, a new state would be a new
budget. So a run whose journals show that it had a state is refused until `sub revive RUN_ID`
(shared-runs). Journals that were copied from elsewhere show the same, and have the same effect.
"""

import os
import re
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from subluminal.clock import now
from subluminal.config.places import Places
from subluminal.config.plain_files import plain_file
from subluminal.contracts.decision import Terminate
from subluminal.contracts.vocabulary import TAINT_RANK, Action, EventType, Status, Taint, TaintCause
from subluminal.core.runs.names import journal_dir
from subluminal.journal.reading import files_in, lines_of
from subluminal.state.errors import StateBusy, StateLost, StateUnusable
from subluminal.state.run_state import RunState, Total
from subluminal.state.storage import set_aside, state_path
from subluminal.timestamps import parse_rfc3339

_HEAD_BYTES = 65_536
# Events that only a process with a state writes: a run's start, and calls that were counted.
_COUNTED = re.compile(rb'"type":"run_start"|"seq":[1-9]')
_CALLED = re.compile(rb'"type":"tool_call_start"')
_MADE_ANEW = (TaintCause.RULE, "", "", "", "its state was made anew")
_LOWEST = TAINT_RANK[Taint.UNTRUSTED]


def lost_state(places: Places, run_id: str) -> StateLost | None:
    """Returns the error for a run whose state was removed; None if it has one, or never had."""
    path = state_path(places.state, run_id)
    if os.path.lexists(path) or not _tells(places, run_id, _COUNTED):
        return None
    # A process that starts the run makes the state before its journal, so this second look finds
    # the state of a run that was started in between.
    return None if os.path.lexists(path) else StateLost(path, run_id)


def distrust(state: RunState, places: Places, run_id: str) -> None:
    """Lowers a run whose state was just made, if its journals tell of calls.

    They were made while the state could not be had, and nobody knows what they brought.
    """
    if not _tells(places, run_id, _CALLED):
        return
    try:
        with state.locked():
            state.taint.start(_LOWEST, _MADE_ANEW)
    except StateBusy:
        state.lower_unlocked(_LOWEST)


def _tells(places: Places, run_id: str, what: re.Pattern[bytes]) -> bool:
    """Whether the beginning of a journal of a run tells of something."""
    for file in files_in(journal_dir(places, run_id), ""):
        try:
            with open(file.path, "rb", opener=plain_file) as opened:
                if what.search(opened.read(_HEAD_BYTES)):
                    return True
        except OSError:
            continue  # ledgerd has removed it meanwhile
    return False


def renew_state(places: Places, run_id: str) -> bool:
    """Makes a new state for a run whose state was removed or damaged; returns False if it is sound.

    Budgets and windows start from zero. What the journals tell of the run is kept: that it started,
    its last sequence number, its totals, and that a rule ended it. Raises StateUnusable.
    """
    try:
        RunState.open(places.state, run_id, create=False).close()
        return False
    except StateUnusable:
        if lost_state(places, run_id) is None and not set_aside(places.state, run_id):
            return False
    told = _told(places, run_id)
    with RunState.open(places.state, run_id, threads=True) as state, state.locked():
        if told.started_ms is not None:
            state.claim_start(told.started_ms, now().mono_ms)
        state.go_on_from(told.seq, told.totals)
        # Nobody knows what the run has read.
        state.taint.start(_LOWEST, _MADE_ANEW)
        if told.end is not None:
            state.terminate(told.end.terminate_code, told.end.terminate_message)
    return True


class _Call(Struct, frozen=True):
    seq: Annotated[int, Meta(ge=0, lt=1 << 62)] = 0


class _Decision(Struct, frozen=True):
    action: str = ""
    rule_id: str | None = None
    terminate: Terminate | None = None


class _Event(Struct, frozen=True):
    type: str = ""
    ts: str = ""
    call: _Call = _Call()
    decision: _Decision = _Decision()
    status: str = ""


_decode = msgspec.json.Decoder(_Event).decode
_TOTALS = {Action.ALLOW: Total.CALLS_ALLOWED, Action.THROTTLE: Total.CALLS_THROTTLED}


class _Told:
    """What the journals tell of a run."""

    def __init__(self) -> None:
        self.started_ms: int | None = None
        self.seq = 0
        self.totals = dict.fromkeys(Total, 0)
        self.end: Terminate | None = None
        """the end of the run by a rule; what a person stopped, `sub kill` and `sub revive` know"""

    def add(self, event: _Event) -> None:
        self.seq = max(self.seq, event.call.seq)
        if event.decision.rule_id is not None and self.end is None:
            self.end = event.decision.terminate
        if event.type == EventType.RUN_START and self.started_ms is None:
            self.started_ms = parse_rfc3339(event.ts)
        elif event.type == EventType.TOOL_CALL_DECISION:
            self.totals[_total(event)] += 1
        elif event.type == EventType.CALL_ROUND and event.decision.action != Action.ALLOW:
            self.totals[Total.CALLS_ALLOWED] -= 1
            self.totals[_total(event)] += 1
        elif event.type == EventType.TOOL_CALL_END and event.status != Status.OK:
            self.totals[Total.ERRORS] += 1


def _total(event: _Event) -> Total:
    return _TOTALS.get(Action(event.decision.action), Total.CALLS_BLOCKED)


def _told(places: Places, run_id: str) -> _Told:
    told = _Told()
    for line in lines_of(sorted(files_in(journal_dir(places, run_id), ""))):
        try:
            told.add(_decode(line))
        except (msgspec.MsgspecError, ValueError):
            continue  # not an event of ours
    return told
