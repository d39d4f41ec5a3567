"""Closes the runs of processes that were killed with their guards: nobody else may ever look (shared-runs).

What it writes goes to the journals of the dead, and comes into the ledger as all else does. Once an
hour it also clears away what is left of runs that are long over.
"""

import threading
import time

from subluminal.config.places import Places
from subluminal.core.runs.abandoned import close_one, missing
from subluminal.core.runs.tidying import tidy

LOOK_S = 2.0
TIDY_S = 3_600.0


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
        tidy_at = time.monotonic()
        while not self._stopping.is_set():
            self.look()
            if time.monotonic() >= tidy_at:
                tidy_at += TIDY_S
                self.tidy()
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

    def tidy(self) -> None:
        """Removes old state; what cannot be removed now is still there in an hour."""
        try:
            tidy(self._places)
        except OSError:
            return
