"""Closes the runs of processes that were killed with their guards: nobody else may ever look (D4).

What it writes goes to the journals of the dead, and comes into the ledger as all else does.
"""

import threading

from subluminal.config.places import Places
from subluminal.core.abandoned import close_one, missing

LOOK_S = 2.0


class RollCall(threading.Thread):
    """Looks at start, and then again and again. A look costs one listing, and a read per process.

    A thread of its own, because a state that a stopped process holds is waited for.
    """

    def __init__(self, places: Places) -> None:
        super().__init__(name="ledger-roll-call", daemon=True)
        self._places = places
        self._missed: set[int] = set()
        self._stopping = threading.Event()

    def run(self) -> None:
        while not self._stopping.is_set():
            self.look()
            self._stopping.wait(LOOK_S)

    def stop(self) -> None:
        """Ends the thread; a close that is under way goes on, and may be cut off like any other."""
        self._stopping.set()

    def look(self) -> None:
        """Closes who was missing the last time too: a guard that does its work comes first."""
        try:
            gone = set(missing(self._places))
            for pid in gone & self._missed:
                close_one(self._places, pid)
        except OSError:
            # A home that cannot be written now: the next look may find it otherwise.
            return
        self._missed = gone
