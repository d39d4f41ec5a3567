"""What a run leaves for others: its events while it lasts, an artifact and a verdict at its end.

Most runs leave nothing but their journals, so what makes reports is loaded where it is needed.
"""

import errno
import fcntl
import os
import signal
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from subluminal.cli.output import Output, shown
from subluminal.errors import ExitCode, SubluminalError
from subluminal.export.violations import NO_DEMANDS, Demands, Violation
from subluminal.operator.running.agent import PASSED_ON
from subluminal.operator.running.stream import Outlet, Stream

if TYPE_CHECKING:
    from subluminal.export.summary import Summary

STDOUT = "-"
_SHOWN = 10
"""Violations that stderr tells of one by one."""
_LOOK_S = 0.1
_LAST_WORDS_S = 3.0
_PATIENCE_S = 2.0
"""For a reader that is slow, once we are told to stop."""


class Evidence:
    """Opened before the agent starts, so that what cannot be written is known by then."""

    def __init__(self, events: str | None, artifact: str | None, demands: Demands) -> None:
        """Raises SubluminalError."""
        self.artifact = None if artifact is None else os.path.abspath(artifact)
        self._demands = demands
        self._outlets: list[Outlet] = []
        self._stream: Stream | None = None
        self._directory = ""
        self._lock = -1
        if self.artifact is not None:
            from subluminal.export.artifact import EVENTS

            self._lock = _claimed(self.artifact)
            # What there is of it when we are killed; replaced by the whole of it in the end.
            self._outlets.append(_file(os.path.join(self.artifact, EVENTS)))
        if events is not None:
            stdout = Outlet(1, STDOUT, owns=False)
            try:
                self._outlets.append(stdout if events == STDOUT else _file(events))
            except SubluminalError:
                self.close()
                raise
        self.takes_stdout = events == STDOUT
        self.is_streamed = events is not None

    def begin(self, directory: str) -> None:
        """Streams the journals in this directory from now on; forks no more."""
        self._directory = directory
        if self._outlets:
            self._stream = Stream(directory, self._outlets)
            self._stream.start()

    def await_last_words(self, shim_pids: Callable[[], frozenset[int]]) -> None:
        """Gives shims that are not the agent's own processes the time to close too."""
        if self._outlets or self._demands != NO_DEMANDS:
            deadline = time.monotonic() + _LAST_WORDS_S
            while shim_pids() and time.monotonic() < deadline:
                time.sleep(_LOOK_S)

    def end(self, code: int, out: Output) -> int:
        """Leaves everything, tells what was broken; returns the exit code in place of the agent's.

        The artifact goes first: whoever reads the stream may be slow.
        """
        if self._stream is not None:
            self._stream.finish()
        summary = None
        if self.artifact is not None:
            from subluminal.export.artifact import make_artifact

            try:
                summary = make_artifact(self.artifact, self._lines(), shown, self._demands)
            except SubluminalError as problem:
                out.error(str(problem), problem.hint)
                code = code or ExitCode.NO
        if self._stream is not None and not self._passed_on(self._stream, out):
            code = code or ExitCode.NO
        for outlet in self._outlets:
            outlet.close()
        if self._demands == NO_DEMANDS:
            return code
        from subluminal.export.summary import summarise

        return _judged(summary or summarise(self._lines(), self._demands), code, out)

    def close(self) -> None:
        """Lets go of the artifact; of a run that never began nothing stays."""
        if self._lock >= 0:
            if not self._directory:
                self._outlets[0].remove()
            os.close(self._lock)

    def _lines(self) -> Iterator[bytes]:
        from subluminal.export.ordering import ordered
        from subluminal.ledger.client.journals import lines_by_shim

        return ordered(lines_by_shim(self._directory))

    def _passed_on(self, stream: Stream, out: Output) -> bool:
        """Waits for the readers, until somebody has had enough; whether all could be written."""
        patience_s = _PATIENCE_S
        while not stream.wait(_LOOK_S) and patience_s > 0:
            if patience_s < _PATIENCE_S or signal.sigtimedwait(PASSED_ON, 0) is not None:
                patience_s -= _LOOK_S
        is_written = True
        for outlet in self._outlets:
            problem = outlet.problem
            if problem is None:
                continue
            if problem.errno == errno.EPIPE:
                out.talk(f"sub: whoever read the events from `{outlet.name}` went away")
                continue
            reason = (problem.strerror or str(problem)).lower()
            out.error(f"cannot write all events to `{outlet.name}`: {reason}")
            is_written = False
        return is_written


def _claimed(directory: str) -> int:
    """Makes the artifact's directory, empties it of an earlier run, and keeps others out."""
    from subluminal.export.artifact import clear_artifact

    try:
        os.makedirs(directory, mode=0o700, exist_ok=True)
        fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            raise SubluminalError(
                f"another run is writing its artifact into `{directory}`",
                hint="give each run a directory of its own",
            ) from None
        except OSError:
            pass  # some network file systems have no locks
        clear_artifact(directory)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise SubluminalError(
            f"cannot use the artifact `{directory}`: `{error.filename}`: {reason}",
            hint="name another directory",
        ) from None
    return fd


def _file(path: str) -> Outlet:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
    try:
        return Outlet(os.open(path, flags, 0o666), path)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise SubluminalError(
            f"cannot write the events to `{path}`: {reason}", hint="its directory must exist"
        ) from None


def _judged(summary: "Summary", code: int, out: Output) -> int:
    """Tells the verdict; returns the exit code that it means."""
    verdict = summary.verdict()
    total = len(summary.violations)
    if verdict["holds"]:
        from subluminal.export.summary import counted

        rest = f"; {counted(total, 'violation')} that may be" if total else ""
        out.talk(f"sub: policy held{rest}")
        return code
    out.error(f"this run violated policy: {'; '.join(verdict['because'])}")
    failing = [each for each in summary.violations if each.fails]
    for each in failing[:_SHOWN]:
        out.talk(shown(f"  {_told(each)}"))
    if len(failing) > _SHOWN:
        out.talk(f"  and {len(failing) - _SHOWN} more")
    return ExitCode.VIOLATION


def _told(violation: Violation) -> str:
    tool = f"{violation.server_name}/{violation.tool_name}"
    by = violation.rule_id or violation.reason_code
    what = violation.action if violation.kind in ("refused", "throttled") else violation.kind
    severity, summary = violation.severity, violation.summary
    return f"call {violation.seq}: {tool}: {what} by `{by}` ({severity}): {summary}"
