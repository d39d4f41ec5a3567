"""The latch that terminates a run for all its shims: set once, read before every call, no lock."""

from typing import NamedTuple

from subluminal.state import layout
from subluminal.state.latch import TextLatch
from subluminal.state.storage import StateFile


class Termination(NamedTuple):
    """Why a run was terminated."""

    code: str
    message: str


class TerminationLatch:
    """The reason for a run's termination; while it is missing, the run goes on."""

    def __init__(self, file: StateFile) -> None:
        self._latch = TextLatch(
            file,
            layout.W_TERMINATED,
            start=layout.W_TERMINATION,
            size_bytes=layout.TERMINATION_BYTES,
        )

    def set(self, code: str, message: str) -> bool:
        """Terminates the run. Returns False if it was terminated before: the first reason stays.

        Needs the lock.
        """
        return self._latch.set(f"{code.replace(chr(0), '')}\0{message}".encode("utf-8", "replace"))

    def get(self) -> Termination | None:
        """Returns why the run was terminated; None if it was not. Does not need the lock."""
        text = self._latch.get()
        if text is None:
            return None
        code, _, message = text.decode("utf-8", "ignore").partition("\0")
        return Termination(code, message)
