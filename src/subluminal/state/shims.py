"""The table of a run's shims. The last living shim that detaches ends the run (shared-runs).

A shim also counts here the events that are in its journal, so that a journal that is deleted or cut
short is noticed (provable-ledger). The count stays when the shim detaches, until its slot is needed
again: of more than MAX_SHIMS shims of a run, the counts of the earliest are forgotten.
"""

from typing import NamedTuple
from zlib import crc32

from subluminal.state import layout
from subluminal.state.errors import StateUnusable
from subluminal.state.processes import is_same
from subluminal.state.storage import StateFile


class Shim(NamedTuple):
    """A shim and its process. The start time distinguishes it from a later process of that pid."""

    shim_id: str
    pid: int
    start_time: int


class ShimTable:
    """The shims that have attached and not detached. A slot with pid 0 is free."""

    def __init__(self, file: StateFile) -> None:
        self._file = file

    def add(self, shim: Shim) -> None:
        """Adds a shim, and replaces an earlier entry with the same id. Needs the run's lock."""
        name = shim.shim_id.encode()
        if not 0 < len(name) <= layout.SHIM_ID_BYTES or b"\0" in name:
            raise ValueError(f"a shim id has 1 to {layout.SHIM_ID_BYTES} bytes, and no NUL")
        earlier = self._slot_of(shim.shim_id)
        self.drop(shim.shim_id)
        slot = self._free_slot() if earlier is None else earlier
        words = self._file.words
        start = self._id_start(slot)
        self._file.data[start : start + layout.SHIM_ID_BYTES] = name.ljust(
            layout.SHIM_ID_BYTES, b"\0"
        )
        words[layout.SHIM_EVENTS + slot] = 0
        words[layout.SHIM_STARTS + slot] = shim.start_time
        # INVARIANT: the pid is stored last; the entry is valid from then on.
        words[layout.SHIM_PIDS + slot] = shim.pid

    def drop(self, shim_id: str) -> None:
        """Removes a shim and every dead one. Needs the run's lock."""
        for slot, shim in self._entries():
            if shim.shim_id == shim_id or not _lives(shim):
                self._file.words[layout.SHIM_PIDS + slot] = 0

    def counter(self, shim_id: str) -> tuple[memoryview, int] | None:
        """Returns the word in which a shim counts its events, and what it adds to the number.

        None if the shim has no slot. The caller must release the word before the file is closed.
        """
        slot = self._slot_of(shim_id)
        if slot is None:
            return None
        word = layout.SHIM_EVENTS + slot
        return self._file.words[word : word + 1], _tag(shim_id)

    def written(self) -> dict[str, int]:
        """Returns how many events are in the journal of each shim, as far as the shims counted."""
        words = self._file.words
        counts = words[layout.SHIM_EVENTS : layout.SHIM_EVENTS + layout.MAX_SHIMS].tolist()
        found: dict[str, int] = {}
        for slot, count in enumerate(counts):
            if count:
                shim_id = self._id(slot)
                events = count - _tag(shim_id)
                # Else the slot was given to a shim of an early version, which does not count.
                if events > 0 and events >> layout.EVENTS_BITS == 0:
                    found[shim_id] = max(events, found.get(shim_id, 0))
        return found

    def live(self) -> tuple[Shim, ...]:
        """Returns the shims whose processes live."""
        return tuple(shim for _, shim in self._entries() if _lives(shim))

    def _entries(self) -> list[tuple[int, Shim]]:
        words = self._file.words
        pids = words[layout.SHIM_PIDS : layout.SHIM_PIDS + layout.MAX_SHIMS].tolist()
        return [
            (slot, Shim(self._id(slot), pid, words[layout.SHIM_STARTS + slot]))
            for slot, pid in enumerate(pids)
            if pid
        ]

    def _slot_of(self, shim_id: str) -> int | None:
        return next((slot for slot, shim in self._entries() if shim.shim_id == shim_id), None)

    def _free_slot(self) -> int:
        """Returns a slot that was never used, or else that of the shim that started first."""
        words = self._file.words
        starts = words[layout.SHIM_STARTS : layout.SHIM_STARTS + layout.MAX_SHIMS].tolist()
        taken = {slot for slot, _ in self._entries()}
        free = [slot for slot in range(layout.MAX_SHIMS) if slot not in taken]
        if free:
            return min(free, key=starts.__getitem__)
        raise StateUnusable(
            self._file.path,
            f"{layout.MAX_SHIMS} shims already use it",
            hint="give each agent that runs at the same time its own SUB_RUN_ID",
        )

    def _id(self, slot: int) -> str:
        start = self._id_start(slot)
        raw = self._file.data[start : start + layout.SHIM_ID_BYTES]
        return raw.rstrip(b"\0").decode("utf-8", "replace")

    @staticmethod
    def _id_start(slot: int) -> int:
        return layout.SHIM_IDS * layout.WORD_BYTES + slot * layout.SHIM_ID_BYTES


def _tag(shim_id: str) -> int:
    return (crc32(shim_id.encode()) & 0x3FFFFF) << layout.EVENTS_BITS


def _lives(shim: Shim) -> bool:
    return is_same(shim.pid, shim.start_time)
