"""Which events of which shim the ledger holds: (shim_id, n) is an event's key (journal-first).

The key is the same whichever way an event arrives. A high-water mark and the gaps below it say
exactly which events are stored, at the cost of one row per shim.
"""

from collections.abc import Iterable

from subluminal.journal.chain import seed
from subluminal.ledger.ingest.batch import ShimState
from subluminal.ledger.ingest.lookups import Lookups


class Shims:
    """The state of every shim that a batch meets, from memory or from the ledger."""

    MAX_REMEMBERED = 10_000

    def __init__(self, lookups: Lookups) -> None:
        self._lookups = lookups
        self._states: dict[str, ShimState] = {}
        self._next_id = 1 + lookups.last_shim_id()

    def get(self, shim_id: str, run_id: str, *, is_chained_here: bool) -> ShimState:
        """The state of a shim; a shim that was never seen starts at the beginning of its chain."""
        state = self._states.get(shim_id)
        if state is None:
            found = self._lookups.find_shim(shim_id)
            state = found or self._create(shim_id, run_id, is_chained_here)
            self._states[shim_id] = state
        return state

    def number_of(self, shim_id: str) -> int | None:
        """The row id of a shim; None if it was never seen."""
        state = self._states.get(shim_id) or self._lookups.find_shim(shim_id)
        return None if state is None else state.id

    def settle(self, touched: Iterable[ShimState]) -> None:
        """Called after a commit: what the batch added is stored now."""
        for state in touched:
            state.settle()
        if len(self._states) > self.MAX_REMEMBERED:
            self._states.clear()

    def _create(self, shim_id: str, run_id: str, is_chained_here: bool) -> ShimState:
        state = ShimState(self._next_id, shim_id, run_id, is_chained_here, 0, seed(shim_id), [])
        self._next_id += 1
        return state
