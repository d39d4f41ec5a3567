"""What a run leaves for others: its events while it runs, an artifact and a verdict at its end.

Most runs leave only their journals, so the modules that make reports are loaded when needed.
"""

import errno
import fcntl
import os
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from subluminal.errors import ExitCode, SubluminalError
from subluminal.export.violations import Demands
from subluminal.operator.running.agent import PASSED_ON
from subluminal.operator.running.stream import Outlet, Stream
from subluminal.system.signals import take_pending
from subluminal.visible import json_shown

if TYPE_CHECKING:
    from subluminal.export.summary import Summary

STDOUT = "-"
_LOOK_S = 0.1
_LAST_WORDS_S = 3.0
_PATIENCE_S = 2.0
"""How long a slow reader may take once we were told to stop."""


class Left(NamedTuple):
    """What a run left, and what went wrong with it."""

    exit_code: int
    """to return instead of the agent's own"""
    problems: list[SubluminalError]
    notes: list[str]
    summary: "Summary | None"
    """to judge the run by; None if nothing was demanded of it"""


class Evidence:
    """The events file, artifact and verdict of one run.

    Opened before the agent starts, so that a place that cannot be written is known by then.
    """

    def __init__(
        self,
        events: str | None,
        artifact: str | None,
        demands: Demands,
        shown: Callable[[str], str],
        *,
        to_terminal: bool = False,
    ) -> None:
        """`shown` makes text from tools safe for a terminal; `to_terminal` says that stdout is one.

        Raises SubluminalError.
        """
        self.artifact = None if artifact is None else os.path.abspath(artifact)
        self._demands = demands
        self._shown = shown
        self._outlets: list[Outlet] = []
        self._stream: Stream | None = None
        self._directory = ""
        self._lock = -1
        if self.artifact is not None:
            from subluminal.export.artifact import EVENTS

            self._lock = _claimed(self.artifact)
            # The events so far, should we be killed; replaced by all of them in the end.
            self._outlets.append(_file(os.path.join(self.artifact, EVENTS)))
        if events is not None:
            stdout = Outlet(1, STDOUT, owns=False, shown=json_shown if to_terminal else None)
            try:
                self._outlets.append(stdout if events == STDOUT else _file(events))
            except SubluminalError:
                self.close()
                raise
        self.takes_stdout = events == STDOUT
        self.is_streamed = events is not None

    def begin(self, directory: str) -> None:
        """Streams the journals in this directory from now on. The process must not fork again."""
        self._directory = directory
        if self._outlets:
            self._stream = Stream(directory, self._outlets)
            self._stream.start()

    def await_last_words(self, shim_pids: Callable[[], frozenset[int]]) -> None:
        """Waits for shims that are not the agent's descendants to end too."""
        if self._outlets or self._demands.judge:
            deadline = time.monotonic() + _LAST_WORDS_S
            while shim_pids() and time.monotonic() < deadline:
                time.sleep(_LOOK_S)

    def end(self, code: int) -> Left:
        """Completes the evidence of a run whose agent returned `code`.

        The artifact goes first: the reader of the stream may be slow.
        """
        left = Left(code, [], [], None)
        if self._stream is not None:
            self._stream.finish()
        summary = None
        if self.artifact is not None:
            from subluminal.export.artifact import make_artifact

            try:
                summary = make_artifact(self.artifact, self._lines(), self._shown, self._demands)
            except SubluminalError as problem:
                left.problems.append(problem)
        if self._stream is not None:
            self._pass_on(self._stream, left)
        for outlet in self._outlets:
            outlet.close()
        if left.problems:
            left = left._replace(exit_code=code or ExitCode.NO)
        if not self._demands.judge:
            return left
        from subluminal.export.summary import summarise

        summary = summary or summarise(self._lines(), self._demands)
        if summary.verdict()["holds"]:
            return left._replace(summary=summary)
        return left._replace(summary=summary, exit_code=ExitCode.VIOLATION)

    def close(self) -> None:
        """Releases the artifact. A run that never began leaves nothing in it."""
        if self._lock >= 0:
            if not self._directory:
                self._outlets[0].remove()
            os.close(self._lock)

    def _lines(self) -> Iterator[bytes]:
        from subluminal.export.ordering import ordered
        from subluminal.ledger.client.journals import lines_by_shim

        return ordered(lines_by_shim(self._directory))

    def _pass_on(self, stream: Stream, left: Left) -> None:
        """Waits until every reader has all events, or we are told to stop."""
        patience_s = _PATIENCE_S
        while not stream.wait(_LOOK_S) and patience_s > 0:
            if patience_s < _PATIENCE_S or take_pending(PASSED_ON):
                patience_s -= _LOOK_S
        for outlet in self._outlets:
            problem = outlet.problem
            if problem is None:
                continue
            if problem.errno == errno.EPIPE:
                left.notes.append(f"the reader of the events in `{outlet.name}` went away")
                continue
            reason = (problem.strerror or str(problem)).lower()
            text = f"cannot write all events to `{outlet.name}`: {reason}"
            left.problems.append(SubluminalError(text))


def _claimed(directory: str) -> int:
    """Creates the artifact's directory, removes an earlier run's files, and locks it."""
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
            f"cannot write the events to `{path}`: {reason}",
            hint="the file's directory must exist and be writable",
        ) from None
