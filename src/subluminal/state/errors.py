"""
The errors of a run's state:

* SubluminalError
  x StateBusy        another process holds the lock for too long; `decision_on_error` applies
    x StateAbsent    there is no file to lock, and waiting does not help
  x StateUnusable    the file cannot be created, opened, trusted or grown
    x StateLost      the file was removed, although the run has journals; the run is refused
"""

from subluminal.errors import SubluminalError


class StateBusy(SubluminalError):
    """The lock of a run was not free in time: its holder is suspended, or the CPUs overloaded."""

    def __init__(self, path: str, waited_ms: int) -> None:
        super().__init__(
            f"another process has locked the state of the run for over {waited_ms} ms: `{path}`",
            hint="look for a suspended shim of this run with `sub doctor`",
        )


class StateAbsent(StateBusy):
    """The run's lock is unavailable because its file could not be opened."""

    def __init__(self, problem: "StateUnusable") -> None:
        SubluminalError.__init__(self, str(problem), hint=problem.hint)


class StateUnusable(SubluminalError):
    """The state file of a run cannot be used. It is left unchanged, for a person to inspect."""

    def __init__(self, path: str, reason: str, *, hint: str | None = None) -> None:
        super().__init__(f"cannot use the state of the run at `{path}`: {reason}", hint=hint)
        self.path = path


class StateLost(StateUnusable):
    """The state of a run was removed, although the run has journals."""

    def __init__(self, path: str, run_id: str) -> None:
        super().__init__(
            path,
            "it was removed, although the run has journals",
            hint=f"`sub revive {run_id}` lets the run go on; its budgets then start from zero",
        )


def damaged(path: str, reason: str) -> StateUnusable:
    """Returns the error for a file that contradicts itself: its counters would be wrong."""
    return StateUnusable(
        path,
        reason,
        hint="`sub revive RUN_ID` gives the run a new state; its budgets then start from zero",
    )
