"""What ingest looks up in the ledger: the few facts about earlier batches that it needs.

A protocol, because `ingest` knows no engine. `store.lookups` answers it from SQLite.
"""

from collections.abc import Iterable
from typing import Protocol

from subluminal.ledger.ingest.batch import ShimState
from subluminal.ledger.ingest.rows import Call, EndAhead


class Lookups(Protocol):
    """Answers about what the ledger holds already."""

    def last_call_id(self) -> int:
        """The highest row id that a call ever had, dropped calls included; 0 if there was none."""

    def find_call(self, shim: int, call_id: str) -> Call | None:
        """The newest call with this `call_id` from this shim."""

    def ends_ahead(self) -> Iterable[tuple[str, str]]:
        """The shim_id and call_id of every end that waits for the start of its call."""

    def find_end_ahead(self, begun_by: str, call_id: str) -> EndAhead | None:
        """The end that waits for this call."""

    def last_shim_id(self) -> int:
        """The highest row id of a shim; 0 if there is none."""

    def find_shim(self, shim_id: str) -> ShimState | None:
        """The stored state of a shim."""

    def has_unnumbered(self, digest: bytes) -> bool:
        """Whether an event without a number, with this SHA-256, is stored."""

    def journal_offsets(self) -> dict[str, int]:
        """How far each journal file was read, in bytes, by its name below the journal directory."""
