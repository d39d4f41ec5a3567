"""The agent's processes: started, signalled and waited for; then all that they left is ended.

The agent stays in our own process group, the one that the terminal has in the foreground. So job
control, Ctrl-C and full-screen programs work as they do without us. A signal from the terminal
reaches the agent and us at once. A signal from another process reaches only us and is passed on.

On Linux, `sub run` is a subreaper: a process that left the agent by double fork is its child. So
after the agent ends, `sweep` finds and ends every process that it started (no-orphans). On other
systems such a process is not found, unless it belongs to a server.
"""

import errno
import os
import signal
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple, NoReturn

from subluminal.supervise import sweep_descendants
from subluminal.supervise.serving import NAMES as WARDENS
from subluminal.system.adoption import die_with_parent
from subluminal.system.processes import Process, descendants
from subluminal.system.signals import await_signal

PASSED_ON = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
)
_WATCHED = (*PASSED_ON, signal.SIGCHLD)

_NO_DAEMON = "--no-daemon"
# Subcommands of Codex that start no background daemon, or no agent at all.
_PLAIN_CODEX = (
    *("exec", "e", "review", "login", "logout", "mcp", "mcp-server", "app-server", "completion"),
    *("sandbox", "debug", "apply", "a", "cloud", "features", "help", "update"),
)

_SHIMS_S = 8.0
"""Time for shims to end: by default 3 s after they lose their client, then their wardens end."""
_OTHERS_S = 1.0
"""Time between SIGTERM and SIGKILL for all other processes."""
_LOOK_S = 0.01


class Ended(NamedTuple):
    """How the agent ended: with a code of its own, or by a signal."""

    exit_code: int
    """what a shell would return"""
    signal: int | None
    signals_seen: frozenset[int]
    """signals that we received while the agent ran"""


class CannotStart(Exception):
    """The agent could not be started. Carries the exit code that a shell would return."""

    def __init__(self, reason: str, exit_code: int) -> None:
        super().__init__(reason)
        self.exit_code = exit_code


class Agent:
    """One child process. From its start on, signals are blocked until `wait` takes them."""

    def __init__(
        self, command: list[str], environ: dict[str, str], *, talks_to_stderr: bool = False
    ) -> None:
        """Starts the agent, its stdout joined to stderr on request. Raises CannotStart."""
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, _WATCHED)
        ours = os.getpid()
        # A successful exec closes the pipe, so end of file means that the agent runs.
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
            raise _cannot_start(int(told))

    def wait(self) -> Ended:
        """Passes signals on until the agent is gone. Reaps the agent's orphans meanwhile."""
        seen: set[int] = set()
        while True:
            number, by_terminal = await_signal(_WATCHED)
            if number != signal.SIGCHLD:
                seen.add(number)
                if not by_terminal:  # the terminal has signalled the agent too
                    _signal(self.pid, number)
                continue
            for pid, status in _reaped():
                if pid == self.pid:
                    code = os.waitstatus_to_exitcode(status)
                    by_signal = -code if code < 0 else None
                    return Ended(128 - code if code < 0 else code, by_signal, frozenset(seen))


def adjusted(command: list[str]) -> tuple[list[str], str | None]:
    """Returns the command to start, and a note if it differs from the one given.

    Interactive Codex keeps its MCP servers in a daemon that outlives it and serves other runs too.
    All of their calls would be recorded in the run that started the daemon.
    """
    if os.path.basename(command[0]) != "codex" or _NO_DAEMON in command[1:]:
        return command, None
    first = next((word for word in command[1:] if not word.startswith("-")), "")
    if first in _PLAIN_CODEX or {"-h", "--help", "-V", "--version"} & set(command[1:]):
        return command, None
    note = f"added `{_NO_DAEMON}`, because a shared Codex daemon would mix this run with others"
    return [command[0], _NO_DAEMON, *command[1:]], note


def sweep(shim_pids: Callable[[], frozenset[int]], spare: frozenset[int]) -> list[Process]:
    """Ends all descendants; returns those that did not end by themselves.

    Shims get the time to end in order. `spare` is ledgerd: it belongs to the user, also if the
    agent started it.
    """
    told: dict[int, Process] = {}
    begun = time.monotonic()
    while True:
        for _ in _reaped():
            pass
        shims = _shims(shim_pids(), spare)
        others = [p for p in descendants(os.getpid(), spare | shims) if not p.is_dead]
        for process in others:
            if process.pid not in told:
                told[process.pid] = process
                _signal(process.pid, signal.SIGTERM)
        waited_s = time.monotonic() - begun
        if not others and not shims:
            return list(told.values())
        if waited_s > (_SHIMS_S if shims else _OTHERS_S):
            break
        time.sleep(_LOOK_S)
    stuck = [p for p in descendants(os.getpid(), spare) if not p.is_dead]
    sweep_descendants(spare=spare)
    return [*told.values(), *(p for p in stuck if p.pid not in told)]


def _shims(attached: frozenset[int], spare: frozenset[int]) -> frozenset[int]:
    """Returns the shims, deputies and wardens among our descendants."""
    below = [p for p in descendants(os.getpid(), spare) if not p.is_dead]
    return frozenset(p.pid for p in below if p.pid in attached or p.name in WARDENS)


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return


def _cannot_start(number: int) -> CannotStart:
    missing = number in (errno.ENOENT, errno.ENOTDIR)
    return CannotStart(os.strerror(number).lower(), 127 if missing else 126)


def _reaped() -> Iterator[tuple[int, int]]:
    """Reaps every dead child: its pid and status."""
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
    """Never returns: this copy of us becomes the agent, or ends."""
    number = errno.EIO
    try:
        # Not SIGKILL: the agent may have a screen to restore and children to end.
        die_with_parent(signal.SIGTERM, parent)
        # Python ignores these two signals, and an ignored signal stays ignored across exec.
        for each in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(each, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        os.execvpe(command[0], command, environ)
    except OSError as error:
        number = error.errno or errno.EIO
    finally:
        os.write(tell_problem, b"%d" % number)
        os._exit(127)
