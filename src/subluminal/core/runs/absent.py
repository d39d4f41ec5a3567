"""What stands in for a run's state or journal where it cannot be had: every use of it fails.

The enforcer then applies `decision_on_error` to each call, as it does when a disk fills up
(journal-first).
"""

from subluminal.errors import SubluminalError
from subluminal.journal import Journal, JournalUnavailable
from subluminal.journal.chain import seed
from subluminal.state.errors import StateBusy, StateUnusable
from subluminal.state.lock import RunLock
from subluminal.state.run_state import RunState, Total
from subluminal.state.termination import Termination


class AbsentJournal(Journal):
    """Takes lines, and says at every flush that they are lost."""

    def __init__(self, shim_id: str, problem: JournalUnavailable) -> None:
        self._problem = problem
        self._unwritten = []
        self.path = ""
        self.n = 1
        self.prev = seed(shim_id)
        self.lost = 0

    def flush(self) -> None:
        """Raises JournalUnavailable if there was anything to write."""
        if self._unwritten:
            self.lost += self._forget()
            raise self._problem

    def rotate_at(self, max_bytes: int) -> None:
        """Nothing rotates."""

    def close(self) -> None:
        """Nothing is open."""


class StateAbsent(StateBusy):
    """A lock that cannot be had because there is no file to lock."""

    def __init__(self, problem: StateUnusable) -> None:
        SubluminalError.__init__(self, str(problem), hint=problem.hint)


class AbsentState(RunState):
    """Refuses its lock, so nothing is counted and nobody is told."""

    def __init__(self, problem: StateUnusable) -> None:
        self._problem = problem
        self.path = problem.path

    def locked(self) -> RunLock:
        """Raises StateAbsent."""
        raise StateAbsent(self._problem)

    def owe(self, total: Total) -> None:
        """There are no totals."""

    def terminated(self) -> Termination | None:
        """Not known."""
        return None

    def close(self) -> None:
        """Nothing is open."""
