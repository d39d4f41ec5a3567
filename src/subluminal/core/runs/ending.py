"""The end of a run as it is recorded: its totals, its status and the reason."""

from typing import TYPE_CHECKING

from msgspec import UNSET

from subluminal.clock import now, rfc3339
from subluminal.contracts.events import RunEnd, RunEnded, RunSummary
from subluminal.contracts.vocabulary import RunStatus
from subluminal.core.runs.failures import sentence, unpacked
from subluminal.state.errors import StateUnusable
from subluminal.state.run_state import Totals

if TYPE_CHECKING:
    from subluminal.core.runs.run import Run


def end_run(run: "Run", status: RunStatus | None = None, reason: str | None = None) -> None:
    """Buffers run_end with the totals of all shims.

    A stopped run is TERMINATED. Otherwise the status is the one given, a failure that a shim noted,
    or SUCCEEDED. The reason that a shim noted for a failure goes before the one given.
    """
    at = now()
    state = run.state
    try:
        totals, lost, started = state.totals(), state.calls_lost(), state.started_at()
        failure, noted = state.failure(), state.reason()
        broken = unpacked(state.server_failure())
    except StateUnusable:
        # The state was damaged under us: the journal says that the run ended, and no more.
        totals, lost, started = Totals(0, 0, 0, 0, 0), 0, None
        failure, noted, broken = None, "", None
    if (ended := run.termination()) is not None:
        status, reason = RunStatus.TERMINATED, ended
    elif status is None:
        status = failure or RunStatus.SUCCEEDED
        if status is RunStatus.FAILED:
            reason = noted or (sentence(broken) if broken else reason)
    why = UNSET if reason is None else reason
    summary = RunSummary(
        calls_total=totals.calls_total,
        calls_allowed=totals.calls_allowed,
        calls_blocked=totals.calls_blocked,
        calls_throttled=totals.calls_throttled,
        errors_total=totals.errors_total,
        duration_ms=max(0, at.wall_ms - started.wall_ms) if started else 0,
        calls_lost=lost or UNSET,
        reason=why,
        server_failure=UNSET if broken is None else broken,
    )
    ended_run = RunEnded(ended_at=rfc3339(at.wall_ms), status=status, summary=summary, reason=why)
    run.emit(RunEnd, run=ended_run)
