"""Closes runs whose shims were killed together with their wardens (shared-runs).

No other process may ever notice such a run. The events that close it go to the journals of the dead
shims, and reach the ledger like all others. Once an hour, this also removes the state of old runs.
"""

import threading
import time

from subluminal.config.places import Places
from subluminal.core.runs.abandoned import close_one, missing
from subluminal.core.runs.attendance import attending
from subluminal.core.runs.tidying import tidy

LOOK_S = 2.0
IDLE_LOOK_S = 60.0
"""Pause between two looks while no process takes part in a run."""
TIDY_S = 3_600.0


class RollCall(threading.Thread):
    """Looks for dead shims at the start, and then every LOOK_S while there are any shims.

    A look costs one directory listing, and one read per process.

    A thread of its own, because it may wait for a state file that a stopped process has locked.
    """

    def __init__(self, places: Places) -> None:
        super().__init__(name="ledger-roll-call", daemon=True)
        self._places = places
        self._missed: set[int] = set()
        self._is_stopping = False
        self._is_idle = False
        self._wake = threading.Event()

    def run(self) -> None:
        tidy_at = time.monotonic()
        while not self._is_stopping:
            self._wake.clear()
            self.look()
            if time.monotonic() >= tidy_at:
                tidy_at += TIDY_S
                self.tidy()
            self._is_idle = not attending(self._places)
            self._wake.wait(IDLE_LOOK_S if self._is_idle else LOOK_S)

    def events_came(self) -> None:
        """Ends the long pause: where there are new events, there are shims."""
        if self._is_idle:
            self._wake.set()

    def stop(self) -> None:
        """Ends the thread. A close that is under way continues, unless the process ends first."""
        self._is_stopping = True
        self._wake.set()

    def look(self) -> None:
        """Closes runs whose shims are missing for the second time: a warden may act in between."""
        try:
            gone = set(missing(self._places))
            for pid in gone & self._missed:
                close_one(self._places, pid)
        except OSError:
            # The home cannot be written now. The next look tries again.
            return
        self._missed = gone

    def tidy(self) -> None:
        """Removes the state of old runs. What cannot be removed now is tried again in an hour."""
        try:
            tidy(self._places)
        except OSError:
            return
