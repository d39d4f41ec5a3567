"""The table of a run's shims. The last living shim that detaches ends the run (shared-runs)."""

from typing import NamedTuple

from subluminal.state import layout
from subluminal.state.errors import StateUnusable
from subluminal.state.processes import start_time
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
        self.drop(shim.shim_id)
        slot = self._free_slot()
        words = self._file.words
        start = self._id_start(slot)
        self._file.data[start : start + layout.SHIM_ID_BYTES] = name.ljust(
            layout.SHIM_ID_BYTES, b"\0"
        )
        words[layout.SHIM_STARTS + slot] = shim.start_time
        # INVARIANT: the pid is stored last; the entry is valid from then on.
        words[layout.SHIM_PIDS + slot] = shim.pid

    def drop(self, shim_id: str) -> None:
        """Removes a shim and every dead one. Needs the run's lock."""
        for slot, shim in self._entries():
            if shim.shim_id == shim_id or not _lives(shim):
                self._file.words[layout.SHIM_PIDS + slot] = 0

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

    def _free_slot(self) -> int:
        taken = {slot for slot, _ in self._entries()}
        for slot in range(layout.MAX_SHIMS):
            if slot not in taken:
                return slot
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


def _lives(shim: Shim) -> bool:
    return start_time(shim.pid) == shim.start_time
