"""The order in which a tree is ended: end of input, SIGTERM, SIGKILL; each after a bounded wait.

Time is an argument. Sends no report itself: it gives them to the loop that calls it.
"""

from subluminal.supervise.processes import Process
from subluminal.supervise.signals import posix
from subluminal.supervise.tree import Tree, ended
from subluminal.supervise.wire import KILLED, Report

TERM_GRACE_S = 0.5
"""Between SIGTERM and SIGKILL. With the default grace of 2 s the whole end stays under 3 s."""
_KILL_AGAIN_S = 0.02
_KILL_AGAIN_MOST_S = 1.0
"""What does not die at once is stuck in the kernel or is another user's: look ever less often."""
_MOST_REPORTS = 64
"""A tree of thousands must not fill the pipe to a shim that does not read."""

_RUNNING, _CLOSING, _ASKED, _KILLING = range(4)


class Ending:
    """How far the end of one tree has got."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._phase = _RUNNING
        self._kill_again_s = _KILL_AGAIN_S
        self._reported: set[tuple[int, int]] = set()
        self._unreported = 0
        self.deadline: float | None = None
        """When `step` has something to do, if nothing happens before."""

    def begin(self, now: float, grace_s: float) -> None:
        """Starts to end the tree, whose input is closed; a second call can only shorten it."""
        if self._phase == _RUNNING:
            self._phase = _CLOSING
            self.deadline = now + grace_s
        elif self._phase == _CLOSING and self.deadline is not None:
            self.deadline = min(self.deadline, now + grace_s)

    def step(self, now: float) -> list[Report]:
        """Does what is due; gives a report for each process that had to be signalled."""
        if self.deadline is None:
            return []
        due = now >= self.deadline
        if self._phase == _CLOSING and (due or not self._tree.upstream_is_alive):
            return self._ask(now)
        if self._phase >= _ASKED and due:
            return self._kill(now)
        return []

    def summary(self) -> list[Report]:
        """One last report for all that were too many to name."""
        if not self._unreported:
            return []
        return [Report(KILLED, 0, None, posix.SIGKILL, f"and {self._unreported} more")]

    def _ask(self, now: float) -> list[Report]:
        self._phase = _ASKED
        self.deadline = now + TERM_GRACE_S
        # Who left on its own is not in the group any more, so those asked did stay.
        return self._reports(self._tree.terminate(), posix.SIGTERM, "still ran at the end of input")

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
