"""
What can go wrong with the state of a run:

* SubluminalError
  x StateBusy        another process has held the lock past its bound; `decision_on_error` applies
  x StateUnusable    the file cannot be made, opened, trusted or grown
"""

from subluminal.errors import SubluminalError


class StateBusy(SubluminalError):
    """The lock of a run was not free in time: its holder is stopped, or the machine is overrun."""

    def __init__(self, path: str, waited_ms: int) -> None:
        super().__init__(
            f"the state of the run is locked by another process for over {waited_ms} ms: `{path}`",
            hint="look for a stopped shim of this run (`sub doctor`)",
        )


class StateUnusable(SubluminalError):
    """The state file of a run cannot be relied on. It is left as it is, for a person to look at."""

    def __init__(self, path: str, reason: str, *, hint: str | None = None) -> None:
        super().__init__(f"cannot use the state of the run at `{path}`: {reason}", hint=hint)
        self.path = path


def damaged(path: str, reason: str) -> StateUnusable:
    """The file contradicts itself; going on would invent counters."""
    return StateUnusable(
        path, reason, hint="move the file away: the run's budgets and windows then start anew"
    )
