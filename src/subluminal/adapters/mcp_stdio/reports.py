"""What the warden reports of the server's life, as it stands in the journal and in errors (no-
orphans).
"""

from typing import Any

from subluminal.core.host import Runs
from subluminal.supervise import FAILED, GONE, SPAWNED, Report


def record_report(runs: Runs, report: Report) -> None:
    """Journals a report in every run."""
    if report.kind == GONE:
        return  # says nothing that `exited` and `killed` did not
    fields = _fields(report)
    if report.kind == SPAWNED:
        # Every run that this server will serve begins with it.
        runs.tell(lambda run: run.health(SPAWNED, **fields))
    else:
        runs.health(report.kind, **fields)


def has_crashed(report: Report) -> bool:
    """Whether a server that ended did not end well, or never began."""
    return report.kind == FAILED or report.signal is not None or bool(report.exit_code)


def how_it_ended(report: Report) -> str:
    """Why its pending calls have no answer."""
    if report.detail:
        return report.detail
    if report.signal is not None:
        return f"the server was ended by signal {report.signal}"
    return f"the server exited with code {report.exit_code}"


def _fields(report: Report) -> dict[str, Any]:
    fields: dict[str, Any] = {"pid": report.pid} if report.pid else {}
    if report.exit_code is not None:
        fields["exit_code"] = report.exit_code
    if report.signal is not None:
        fields["signal"] = report.signal
    if report.detail:
        fields["detail"] = report.detail
    return fields
