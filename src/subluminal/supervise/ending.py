"""The order in which a tree is ended: end of input, SIGTERM, SIGKILL.

    state     next step                                                         next state
    running   `begin`: the shim has closed the upstream's input; wait `grace`   closing
    closing   the grace is over or the upstream is dead: SIGTERM, wait 0.5 s    asked
    asked     the wait is over: SIGKILL                                         killing
    killing   SIGKILL again, after 20 ms, 40 ms, ... 1 s, until the tree is gone

Time is an argument. `step` returns its reports; the caller's loop sends them.
"""

from subluminal.supervise.signals import posix
from subluminal.supervise.tree import Tree, ended
from subluminal.supervise.wire import KILLED, Report
from subluminal.system.process import Process

TERM_GRACE_S = 0.5
"""Wait between SIGTERM and SIGKILL. With the default grace of 2 s, the end takes under 3 s."""
_KILL_AGAIN_S = 0.02
_KILL_AGAIN_MOST_S = 1.0
"""A process that survives SIGKILL is stuck in the kernel or another user's: retry less often."""
_MOST_REPORTS = 64
"""Most processes reported by name: thousands would fill the pipe to a shim that does not read."""

_RUNNING, _CLOSING, _ASKED, _KILLING = range(4)


class Ending:
    """The state of one tree's end."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._phase = _RUNNING
        self._kill_again_s = _KILL_AGAIN_S
        self._reported: set[tuple[int, int]] = set()
        self._unreported = 0
        self.deadline: float | None = None
        """Monotonic time of the next call of `step`, in seconds; None while the tree runs."""

    def begin(self, now: float, grace_s: float) -> None:
        """Begins to end a tree whose input is closed. A second call can only shorten the grace."""
        if self._phase == _RUNNING:
            self._phase = _CLOSING
            self.deadline = now + grace_s
        elif self._phase == _CLOSING and self.deadline is not None:
            self.deadline = min(self.deadline, now + grace_s)

    def step(self, now: float) -> list[Report]:
        """Takes the step that is due. Returns a report for each process that it signalled."""
        if self.deadline is None:
            return []
        due = now >= self.deadline
        if self._phase == _CLOSING and (due or not self._tree.upstream_is_alive):
            return self._ask(now)
        if self._phase >= _ASKED and due:
            return self._kill(now)
        return []

    def summary(self) -> list[Report]:
        """Returns one last report that counts the processes past `_MOST_REPORTS`."""
        if not self._unreported:
            return []
        return [Report(KILLED, 0, None, posix.SIGKILL, f"and {self._unreported} more processes")]

    def _ask(self, now: float) -> list[Report]:
        self._phase = _ASKED
        self.deadline = now + TERM_GRACE_S
        # Processes that ended by themselves are not in the group any more and are not reported.
        why = "was still running after its input was closed"
        return self._reports(self._tree.terminate(), posix.SIGTERM, why)

    def _kill(self, now: float) -> list[Report]:
        self._phase = _KILLING
        self.deadline = now + self._kill_again_s
        self._kill_again_s = min(2 * self._kill_again_s, _KILL_AGAIN_MOST_S)
        return self._reports(self._tree.kill(), posix.SIGKILL, "did not stop")

    def _reports(self, signalled: list[Process], signum: int, why: str) -> list[Report]:
        new = [p for p in signalled if (p.pid, signum) not in self._reported]
        room = max(0, _MOST_REPORTS - len(self._reported))
        self._reported.update((p.pid, signum) for p in new)
        self._unreported += len(new[room:])
        return [self._report(p, signum, why) for p in new[:room]]

    def _report(self, signalled: Process, signum: int, why: str) -> Report:
        escaped = signalled.group != self._tree.upstream
        return ended(signalled, signum, f"left its process group and {why}" if escaped else why)
