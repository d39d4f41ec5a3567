"""How the server's process tree comes to its end, and what that means for our exit code (D9)."""

import os

from subluminal.supervise import EXITED, FAILED, Guard, Report

_NOT_STARTED = 127
_MARGIN_MS = 3_000
"""Past grace and the guard's own waits, nobody is waited for any more."""


class Ending:
    """Keeps track of stopping; gives the guard its orders."""

    def __init__(self, guard: Guard, grace_ms: int) -> None:
        self._guard = guard
        self._grace_ms = grace_ms
        self._input_open = True
        self._calls_until_ms = 0
        self._give_up_ms = 0
        self._exit: Report | None = None
        self.stopping = False
        self.swept = False
        """whether we ended the tree ourselves, because the guard was killed"""

    @property
    def waits_for_calls(self) -> bool:
        """Whether the client has left, and answers to its calls may still come."""
        return self._calls_until_ms > 0 and not self.stopping

    def wait_for_calls(self, now_ms: int) -> None:
        """Gives open calls the grace that the server has anyway."""
        self._calls_until_ms = now_ms + self._grace_ms

    def close_input(self) -> None:
        """Closes the server's stdin: by MCP, the sign to end."""
        if self._input_open:
            self._input_open = False
            os.close(self._guard.stdin_fd)

    def stop(self, now_ms: int, grace_ms: int | None = None) -> None:
        """Orders the end of the tree."""
        if self.stopping:
            return
        self.stopping = True
        grace = self._grace_ms if grace_ms is None else grace_ms
        self._give_up_ms = now_ms + grace + _MARGIN_MS
        self._guard.stop(grace_ms=grace)

    def hurry(self, now_ms: int) -> None:
        """Stops waiting for calls whose time is over."""
        if self.waits_for_calls and now_ms >= self._calls_until_ms:
            self._calls_until_ms = 0
            self.stop(now_ms, 0)
        if self.stopping and now_ms >= self._give_up_ms:
            self.swept = True

    def note(self, report: Report) -> None:
        """Remembers how the server ended."""
        if report.kind in (EXITED, FAILED) and self._exit is None:
            self._exit = report

    def is_over(self, output_left: bool) -> bool:
        """Whether there is nothing left to wait for."""
        if self.swept:
            return True
        return self.stopping and self._guard.gone and not output_left

    def exit_code(self, signum: int) -> int:
        """The server's own code where it ended by itself; 128+N where a signal ended us."""
        if signum:
            return 128 + signum
        report = self._exit
        if report is None:
            return 1 if self.swept else 0
        if report.kind == FAILED:
            return _NOT_STARTED
        if report.signal is not None:
            return 128 + report.signal
        return report.exit_code or 0
