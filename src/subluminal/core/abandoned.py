"""Closes what a process left open that died without a word: its part in each of its runs (D4, D9).

Calls without an end stay without one: nobody knows how they ended.
"""

from subluminal.config.places import Places
from subluminal.contracts.vocabulary import RunStatus
from subluminal.core.attendance import attendances, forget_attendance
from subluminal.core.run import Run, end_run
from subluminal.core.runs import journal_dir
from subluminal.journal import Journal, JournalUnavailable
from subluminal.state.run_state import RunState

_MAX_JOURNAL_BYTES = 1 << 40
"""A few last lines never rotate a journal."""


def close_abandoned(places: Places, pid: int, reason: str) -> int:
    """Leaves every run that the process was in; returns how many of them ended with it."""
    ended = 0
    for left in attendances(places, pid):
        state = RunState.open(places.state, left.run_id)
        try:
            journal = Journal(
                journal_dir(places, left.run_id),
                left.source.shim_id,
                max_bytes=_MAX_JOURNAL_BYTES,
                reserve_bytes=0,
            )
        except JournalUnavailable:
            state.close()
            continue
        run = Run(left.run_id, left.identity, left.source, state, journal)
        run.health("killed", pid=pid, detail=reason)
        ended += _leave(run, reason)
        run.close()
    forget_attendance(places, pid)
    return ended


def _leave(run: Run, reason: str) -> bool:
    with run.state.locked():
        run.state.note_failure(RunStatus.FAILED)
        is_last = run.state.detach(run.shim_id) == 0 and run.state.mark_ended()
    if is_last:
        run.record(lambda: end_run(run, RunStatus.FAILED, reason))
    return is_last
