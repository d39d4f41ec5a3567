"""The part of a host that offers calls to other doors, and takes offers back.

`handovers` has the files. `taking` takes a call over that another door has offered.
"""

from typing import TYPE_CHECKING

from subluminal.config.places import Places
from subluminal.core.enforcer import Enforcer
from subluminal.core.ruling import Ruling
from subluminal.core.waiting_offers import WaitingOffers

if TYPE_CHECKING:
    from subluminal.core.handovers import Handovers


class HandsOver:
    """What a host does about calls that another door may take over."""

    def __init__(self, places: Places) -> None:
        self.places = places
        self.offers = WaitingOffers(places)
        self._handovers: Handovers | None = None
        self._ended_here: list[Ruling] = []
        """calls that were taken over and have ended, until their end is on disk"""

    def release(self, enforcer: Enforcer) -> None:
        """Counts the end of a call that a host counted as open."""
        enforcer.open_calls -= 1

    def offer(self, ruling: Ruling, *, by_run: bool = False) -> None:
        """Offers an allowed call to later doors, which would otherwise decide it again.

        Call it before the client can go on with the call. From then on another door may take the
        call over, and record its end. `by_run` says that the client does not tell the call's id to
        later doors.
        """
        from subluminal.core.taking import offer  # only doors before other doors need it

        offer(self._handover_files(), ruling, by_run=by_run)

    def withdraw(self, ruling: Ruling) -> bool:
        """Takes an offer back; returns False if another door has taken the call over.

        Then the call is no longer this door's: `finish` does nothing. `finish` calls this itself.
        """
        if self._take_back(ruling):
            return True
        if not ruling.finished:
            ruling.finished = True
            self.release(ruling.enforcer)
        return False

    def _take_back(self, ruling: Ruling) -> bool:
        """Removes the offer of a call, if there is one; False if another door was first."""
        handed = ruling.handed
        if handed is None or not handed.offer:
            return True
        from subluminal.core.handovers import remove

        path, handed.offer = handed.offer, ""
        if remove(path):
            return True
        if handed.taken:
            remove(handed.taken)  # the next door has a file of its own
        return False

    def _handover_files(self) -> "Handovers":
        if self._handovers is None:
            from subluminal.core.handovers import Handovers

            self._handovers = Handovers(self.places)
        return self._handovers

    def _settle(self, ended: list[Ruling]) -> None:
        """Removes the files of calls that were taken over, once their ends are on disk."""
        from subluminal.core.handovers import remove

        self._ended_here = []
        for ruling in ended:
            if ruling.enforcer.flush() and ruling.handed is not None:
                remove(ruling.handed.taken)
