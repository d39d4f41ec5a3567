"""Proves that every dropped segment was due: by a record that the home's key signed."""

import apsw

from subluminal.ledger.proof.findings import DropSum, Report
from subluminal.ledger.store.drops import PURPOSE, get_drop, statement
from subluminal.ledger.store.segments import StoredSegment
from subluminal.trust.home_key import HomeKey

_LEFT_OVER = (
    "SELECT segment FROM drops WHERE segment NOT IN (SELECT id FROM segments WHERE lines IS NULL)"
)


class DropProof:
    """Checks the drops of a ledger, and adds them up."""

    def __init__(self, connection: apsw.Connection, key: HomeKey | None, report: Report) -> None:
        self._connection = connection
        self._key = key
        self._report = report
        self._sums: dict[tuple[str, int, int], DropSum] = {}

    def check(self, shim_id: str, segment: StoredSegment) -> str | None:
        """Returns what is wrong with the drop of a segment, or None."""
        events = segment.last_n - segment.first_n + 1
        self._report.dropped_events += events
        what = "event" if events == 1 else f"{events} events"
        found = get_drop(self._connection, segment.id)
        if found is None:
            return f"{what} gone, and no record says that retention dropped them"
        drop, signature = found
        if self._key is None:
            return f"{what} dropped, and the key is gone, so the record cannot be checked"
        if not self._key.has_signed(PURPOSE, statement(shim_id, segment, drop), signature):
            return f"{what} gone, and this home did not sign the record of their drop"
        if not drop.was_due:
            return f"{what} dropped before they were due"
        key = (drop.reason, drop.keep_days, drop.max_bytes)
        self._sums.setdefault(key, DropSum(*key)).events += events
        return None

    def end(self) -> None:
        """Reports records without a dropped segment, and fills in the sums."""
        for (segment,) in self._connection.execute(_LEFT_OVER):
            self._report.add("drops", f"segment {segment}", "its events were not dropped")
        self._report.drops = list(self._sums.values())
