"""The end of the server's process tree: deadlines, orders to the warden, records, exit code.

The warden reports when the server starts, exits or is killed. The shim journals each report, and
tells the warden when to stop the tree.
"""

import os
from typing import Any

from msgspec import UNSET

from subluminal.contracts.events import ServerFailure
from subluminal.core.host import Host
from subluminal.supervise import EXITED, FAILED, GONE, SPAWNED, Report, WardenHandle
from subluminal.system.signals import STOP_SIGNALS

_NOT_STARTED = 127
_MARGIN_MS = 4_500
"""Time for the warden's own waits, on top of the grace, and then to kill a warden that hangs; after
that the shim stops waiting."""
_BOOT_MS = 10_000
"""Shortest grace of a server that has not answered yet: it may still be starting (`npx`)."""


class Ending:
    """The state of stopping one server."""

    def __init__(self, warden: WardenHandle, grace_ms: int) -> None:
        self._warden = warden
        self.grace_ms = grace_ms
        self._input_open = True
        self._answers_until_ms = 0
        self._give_up_ms = 0
        self._exit: Report | None = None
        self.stopping = False
        self.swept = False
        """whether the shim no longer waits for the warden, because it was killed or is too slow"""

    @property
    def waits_for_answers(self) -> bool:
        """Whether the client has closed its output, and the server may still answer."""
        return self._answers_until_ms > 0 and not self.stopping

    def wait_for_answers(self, now_ms: int, *, server_spoke: bool) -> None:
        """Starts the server's grace period again; called at every sign of life."""
        grace_ms = self.grace_ms if server_spoke else max(self.grace_ms, _BOOT_MS)
        self._answers_until_ms = now_ms + grace_ms

    def is_overdue(self, now_ms: int) -> bool:
        """Returns True when the time for answers is over."""
        return self.waits_for_answers and now_ms >= self._answers_until_ms

    def close_input(self) -> None:
        """Closes the server's stdin, which in MCP tells the server to exit."""
        if self._input_open:
            self._input_open = False
            os.close(self._warden.stdin_fd)

    def stop(self, now_ms: int, grace_ms: int | None = None) -> None:
        """Tells the warden to end the tree."""
        if self.stopping:
            return
        self.stopping = True
        grace = self.grace_ms if grace_ms is None else grace_ms
        self._give_up_ms = now_ms + grace + _MARGIN_MS
        self._warden.stop(grace_ms=grace)

    def hurry(self, now_ms: int) -> None:
        """Stops waiting for the warden after its deadline."""
        if self.stopping and now_ms >= self._give_up_ms:
            self.swept = True

    def timeout_ms(self, now_ms: int, at_most_ms: int) -> int:
        """Returns how long the loop may sleep without missing a deadline."""
        deadline = self._give_up_ms if self.stopping else self._answers_until_ms
        return max(0, min(at_most_ms, deadline - now_ms)) if deadline else at_most_ms

    def note(self, report: Report) -> None:
        """Remembers the first report of how the server ended."""
        if report.kind in (EXITED, FAILED) and self._exit is None:
            self._exit = report

    def is_over(self, output_left: bool) -> bool:
        """Returns True when there is nothing left to wait for."""
        if self.swept:
            return True
        return self.stopping and self._warden.gone and not output_left

    def exit_code(self, signum: int) -> int:
        """Returns the server's own exit code; 128+N if signal N ended the shim or the server."""
        report = self._exit
        if signum:
            return 128 + signum
        if report is None:
            return 1 if self.swept else 0
        if report.signal is not None:
            return 128 + report.signal
        return report.exit_code or (_NOT_STARTED if report.kind == FAILED else 0)


def record_report(
    host: Host, server_name: str, report: Report, failure: ServerFailure | None = None
) -> None:
    """Journals a report in every run. `failure` is set if the server failed."""
    if report.kind == GONE:
        return  # the reports `exited` and `killed` came before
    fields = {"server_name": server_name, **_fields(report)}
    if failure is not None:
        fields |= {"detail": failure.detail, "stderr": failure.stderr}
    if report.kind == SPAWNED:
        # Every run that this server will serve begins with this event.
        host.tell(lambda run: run.health(SPAWNED, **fields))
    else:
        host.health(report.kind, **fields)


def has_crashed(report: Report) -> bool:
    """Returns True if a server failed: it never started, or ended by a signal or an error code."""
    return report.kind == FAILED or report.signal is not None or bool(report.exit_code)


def was_stopped(report: Report) -> bool:
    """Returns True if a signal ended the server with which clients end servers.

    Some clients send it to the whole process tree, the server first. A shell or a runtime between
    us and the server turns the signal into an exit code. A report with a detail is about a server
    that its warden ended.
    """
    signum = report.signal or (report.exit_code or 0) - 128
    return report.kind == EXITED and not report.detail and signum in STOP_SIGNALS


def failure_of(server_name: str, report: Report, stderr: str) -> ServerFailure:
    """Returns how a server failed. `stderr` is the line that tells why, with secrets masked."""
    told = f"`{server_name}` {how_it_ended(report)}"
    if report.kind == FAILED:
        told = f"`{server_name}`: {how_it_ended(report)}"
    return ServerFailure(
        server_name=server_name,
        detail=f"server {told}",
        exit_code=UNSET if report.exit_code is None else report.exit_code,
        signal=UNSET if report.signal is None else report.signal,
        stderr=stderr or UNSET,
    )


def how_it_ended(report: Report) -> str:
    """Returns what happened to a server, without its name."""
    if report.detail:
        return report.detail
    if report.signal is not None:
        return f"was ended by signal {report.signal}"
    return f"exited with code {report.exit_code}"


def _fields(report: Report) -> dict[str, Any]:
    fields: dict[str, Any] = {"pid": report.pid} if report.pid else {}
    if report.exit_code is not None:
        fields["exit_code"] = report.exit_code
    if report.signal is not None:
        fields["signal"] = report.signal
    if report.detail:
        fields["detail"] = report.detail
    return fields
