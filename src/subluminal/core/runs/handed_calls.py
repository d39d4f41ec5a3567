"""The calls of a dead process that were handed over: which of them it still has to end.

Whoever completes the record of a dead process (`core.runs.abandoned`) asks here first. The order of
the questions makes the answer exact (`core.handovers`): an offer that can be removed was not taken;
a taken file means that its shim, or whoever completes that shim's record, ends the call; and a
taker removes that file only after the end is in its journal.
"""

import msgspec
from msgspec import Struct

from subluminal.config.places import Places
from subluminal.contracts.events import CallRef
from subluminal.core.handovers import Handovers, remove
from subluminal.core.runs.left_calls import END, LeftBehind, all_lines
from subluminal.core.runs.run import Run

_HANDED = b'"begun_by":'


class _Ended(Struct, frozen=True):
    call: CallRef


_decode_end = msgspec.json.Decoder(_Ended).decode


class HandedCalls:
    """What one dead process had to do with handovers."""

    def __init__(self, places: Places, run: Run, directory: str) -> None:
        """`directory` holds the journals of the run."""
        self._handovers = Handovers(places)
        self._shim_id = run.shim_id
        self._directory = directory
        self._taken: list[str] = []

    def sort_out(self, left: LeftBehind) -> None:
        """Adds the calls that the process took over, and removes those that others will end."""
        if not self._handovers.exist():
            return
        for path, handover in self._handovers.taken_by(self._shim_id):
            self._taken.append(path)
            left.add_taken(handover.call, handover.started_ms, handover.begun_by)
        for call_id in self._of_others({each.call.call_id for each in left.open if each.is_lost}):
            left.disown(call_id)

    def forget(self) -> None:
        """Removes the files of the calls that the process took over, after their end is on disk."""
        for path in self._taken:
            remove(path)

    def _of_others(self, open_ids: set[str]) -> set[str]:
        """Returns those of the calls that another process has ended, or will end."""
        asked = {each for each in open_ids if not self._handovers.revoke(self._shim_id, each)}
        taken = asked & self._handovers.taken_from(self._shim_id)
        return taken | self._ended_elsewhere(asked - taken)

    def _ended_elsewhere(self, asked: set[str]) -> set[str]:
        found: set[str] = set()
        if not asked:
            return found
        for line in all_lines(self._directory):
            if line.startswith(END) and _HANDED in line:
                try:
                    found.add(_decode_end(line).call.call_id)
                except msgspec.MsgspecError:
                    continue  # `sub ledger verify` reports a damaged line
        return found & asked
