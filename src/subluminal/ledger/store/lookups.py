"""Answers what ingest looks up in the ledger, from SQLite (`ingest.lookups.Lookups`)."""

import apsw

from subluminal.ledger.ingest.batch import ShimState
from subluminal.ledger.ingest.rows import Call, EndAhead
from subluminal.ledger.store.counting import last_call_id
from subluminal.ledger.store.tables import columns

_FIND_CALL = (
    f"SELECT {columns(Call)} FROM tool_calls WHERE call_id = ? AND shim = ? "
    "ORDER BY id DESC LIMIT 1"
)
_FIND_AHEAD = f"SELECT {columns(EndAhead)} FROM ends_ahead WHERE begun_by = ? AND call_id = ?"


class SqliteLookups:
    """Reads through the writer's own connection."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def last_call_id(self) -> int:
        return last_call_id(self._connection)

    def find_call(self, shim: int, call_id: str) -> Call | None:
        row = self._connection.execute(_FIND_CALL, (call_id, shim)).fetchone()
        return None if row is None else Call(*row)

    def ends_ahead(self) -> list[tuple[str, str]]:
        rows = self._connection.execute("SELECT begun_by, call_id FROM ends_ahead")
        return [(str(begun_by), str(call_id)) for begun_by, call_id in rows]

    def find_end_ahead(self, begun_by: str, call_id: str) -> EndAhead | None:
        row = self._connection.execute(_FIND_AHEAD, (begun_by, call_id)).fetchone()
        return None if row is None else EndAhead(*row)

    def last_shim_id(self) -> int:
        row = next(self._connection.execute("SELECT ifnull(max(id), 0) FROM shims"))
        return int(row[0])

    def find_shim(self, shim_id: str) -> ShimState | None:
        row = self._connection.execute(
            "SELECT id, run_id, is_chained_here, last_n, head FROM shims WHERE shim_id = ?",
            (shim_id,),
        ).fetchone()
        if row is None:
            return None
        shim, run_id, is_chained_here, last_n, head = row
        spans = self._connection.execute(
            "SELECT first_n, last_n FROM gaps WHERE shim = ? ORDER BY first_n", (shim,)
        )
        gaps = [(first, last) for first, last in spans]
        return ShimState(
            shim, shim_id, run_id, bool(is_chained_here), last_n, head.hex().encode(), gaps
        )

    def has_unnumbered(self, digest: bytes) -> bool:
        sql = "SELECT 1 FROM unnumbered WHERE digest = ?"
        return self._connection.execute(sql, (digest,)).fetchone() is not None

    def journal_offsets(self) -> dict[str, int]:
        rows = self._connection.execute("SELECT path, offset FROM journal_offsets")
        return {str(path): int(offset) for path, offset in rows}
