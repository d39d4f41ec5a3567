"""The agent's process: started in our own process group, signalled as we are, waited for.

It stays in the group that the terminal has in the foreground, so job control, Ctrl-C and
full-screen programs work as without us. What the terminal sends reaches agent and us at once; what
another process sends to us alone is passed on.
"""

import errno
import os
import signal
from collections.abc import Iterator
from typing import NamedTuple, NoReturn

from subluminal.supervise.system import die_with_parent

PASSED_ON = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
)
_WATCHED = (*PASSED_ON, signal.SIGCHLD)


class Ended(NamedTuple):
    """How the agent ended: with a code of its own, or by a signal."""

    exit_code: int
    """what a shell would return"""
    signal: int | None
    told_to: frozenset[int]
    """the signals that came while it ran"""


class CannotStart(Exception):
    """There is no agent: the reason, and what a shell would return."""

    def __init__(self, reason: str, exit_code: int) -> None:
        super().__init__(reason)
        self.exit_code = exit_code


class Agent:
    """One child process. Signals are held back for `wait` from the moment it is made."""

    def __init__(
        self, command: list[str], environ: dict[str, str], *, talks_to_stderr: bool = False
    ) -> None:
        """Starts it, its stdout joined to stderr if stdout is taken. Raises CannotStart."""
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, _WATCHED)
        ours = os.getpid()
        # Closed by a successful exec, so that end of file says: it runs.
        problem, tell_problem = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            if talks_to_stderr:
                os.dup2(2, 1)
            _become(command, environ, mask, ours, tell_problem)
        os.close(tell_problem)
        told = os.read(problem, 16)
        os.close(problem)
        if told:
            os.waitpid(self.pid, 0)
            raise cannot_start(int(told))

    def wait(self) -> Ended:
        """Passes signals on until the agent is gone. Collects what it orphaned meanwhile."""
        seen: set[int] = set()
        while True:
            came = signal.sigwaitinfo(_WATCHED)
            if came.si_signo != signal.SIGCHLD:
                seen.add(came.si_signo)
                # Positive codes are the kernel's: the terminal told the whole group already.
                if came.si_code <= 0:
                    self._pass_on(came.si_signo)
                continue
            for pid, status in _collected():
                if pid == self.pid:
                    code = os.waitstatus_to_exitcode(status)
                    by_signal = -code if code < 0 else None
                    return Ended(128 - code if code < 0 else code, by_signal, frozenset(seen))

    def _pass_on(self, signum: int) -> None:
        try:
            os.kill(self.pid, signum)
        except (ProcessLookupError, PermissionError):
            return


def cannot_start(number: int) -> CannotStart:
    """What an error of execve(2) means for a person and for a shell."""
    missing = number in (errno.ENOENT, errno.ENOTDIR)
    return CannotStart(os.strerror(number).lower(), 127 if missing else 126)


def _collected() -> Iterator[tuple[int, int]]:
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        yield pid, status


def _become(
    command: list[str],
    environ: dict[str, str],
    mask: set[int | signal.Signals],
    parent: int,
    tell_problem: int,
) -> NoReturn:
    """Never returns: the agent runs, or this copy of us ends."""
    number = errno.EIO
    try:
        # SIGKILL would leave its screen and its own children in disorder.
        die_with_parent(signal.SIGTERM, parent)
        # Python ignores these two, and what is ignored stays so across exec.
        for each in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(each, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        os.execvpe(command[0], command, environ)
    except OSError as error:
        number = error.errno or errno.EIO
    finally:
        os.write(tell_problem, b"%d" % number)
        os._exit(127)
