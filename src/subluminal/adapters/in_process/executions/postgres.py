"""Executions in PostgreSQL: for the processes of many machines.

A process has one session, and the session holds an advisory lock under a random key for as long as
it lasts. A row names the key of the session that claimed it, so every other session can see in
`pg_locks` whether the claimant lives. A claim is one statement, which is committed when it returns.

If the session is lost while a handler runs, others are told `unknown`: nobody can say more. The
process itself still knows its key, and ends the execution over the next session.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import psycopg

from subluminal.adapters.in_process.executions.keeping import (
    KEEP_DAYS,
    PRUNE_ROWS,
    ExecutionsUnavailable,
    KeptRow,
    Shared,
    kept_row,
    not_mine,
)
from subluminal.adapters.in_process.executions.postgres_server import Answer, Server, Session
from subluminal.kernel.executions import ExecutionStatus, LedgerEntry

_LIVES = """
EXISTS (SELECT 1 FROM pg_locks AS held
  WHERE held.locktype = 'advisory' AND held.granted AND held.objsubid = 1
  AND held.database = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND held.classid::bigint = kept.session_key >> 32
  AND held.objid::bigint = kept.session_key & 4294967295)
"""
_STATUS = f"CASE WHEN status = 'claimed' AND NOT {_LIVES} THEN 'unknown' ELSE status END"
_COLUMNS = (
    "intent_hash, at, session_id, kind, resource_version,"
    f" {_STATUS} AS told, host, boot, pid, start"
)
_SELECT = f"SELECT {_COLUMNS} FROM subluminal_executions AS kept"
_CLAIM = (
    "INSERT INTO subluminal_executions (intent_hash, at, session_id, kind, resource_version,"
    " status, host, boot, pid, start, session_key)"
    " VALUES (%s, %s, %s, %s, %s, 'claimed', %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING"
)
_FINISH = (
    "UPDATE subluminal_executions SET status = %s, ended_at = now()"
    " WHERE intent_hash = %s AND session_key = %s AND status IN ('claimed', %s)"
)
"""A second try, after the answer to the first was lost, changes nothing."""
_RELEASE = (
    "DELETE FROM subluminal_executions"
    " WHERE intent_hash = %s AND session_key = %s AND status = 'claimed'"
)
_FREE = (
    "DELETE FROM subluminal_executions AS kept WHERE intent_hash = %s"
    f" AND (status = 'unknown' OR (status = 'claimed' AND NOT {_LIVES}))"
)
_PRUNE = (
    "DELETE FROM subluminal_executions WHERE intent_hash IN (SELECT intent_hash"
    " FROM subluminal_executions WHERE status = 'done'"
    f" AND ended_at < now() - interval '{KEEP_DAYS} days' ORDER BY ended_at LIMIT %s"
    " FOR UPDATE SKIP LOCKED)"
)
_CLAIM_TRIES = 5
"""How often a claim looks again when the row that it met is gone."""

_Made = TypeVar("_Made")


class PostgresExecutions(Shared):
    """The execution ledger of a fleet."""

    def __init__(self, url: str) -> None:
        self._server = Server(url)
        self._session: Session | None = None
        self._inherited: list[Session] = []
        self._keys: dict[str, int] = {}
        """claims of this process: the key of the session that made each"""
        self._undecided: dict[str, int] = {}
        """claims during which the session was lost: nothing was executed for them"""
        super().__init__()
        with self.turn():
            self._connected()  # a ledger that is out of reach is told at the start

    def check(self, intent_hash: str, /) -> LedgerEntry | None:
        kept = self._told(intent_hash)
        return kept and kept.entry

    def claim(self, entry: LedgerEntry, /) -> LedgerEntry | None:
        for _ in range(_CLAIM_TRIES):
            if self._in_session(lambda session: self._insert(session, entry)):
                return None
            held = self._told(entry.intent_hash)
            if held is not None:
                return held.entry
        raise self._server.unavailable("other processes claim and release it again and again")

    def finish(self, intent_hash: str, status: ExecutionStatus, /) -> None:
        key = self._keys.get(intent_hash)
        values = (status.value, intent_hash, key, status.value)
        if key is None or not self._run(_FINISH, values).rowcount:
            raise not_mine(intent_hash)
        self._keys.pop(intent_hash, None)

    def release(self, intent_hash: str, /) -> None:
        key = self._keys.get(intent_hash)
        if key is not None:
            self._run(_RELEASE, (intent_hash, key))
            self._keys.pop(intent_hash, None)

    def entries(self, status: ExecutionStatus | None, limit: int, /) -> list[LedgerEntry]:
        newest = "ORDER BY claimed_at DESC, intent_hash LIMIT %s"
        if status is None:
            rows = self._rows(f"{_SELECT} {newest}", (limit,))
        elif status is ExecutionStatus.DONE:
            rows = self._rows(f"{_SELECT} WHERE status = 'done' {newest}", (limit,))
        else:
            where = f"WHERE status <> 'done' AND ({_STATUS}) = %s"
            rows = self._rows(f"{_SELECT} {where} {newest}", (status.value, limit))
        sure = [self._sure(row) for row in rows]
        return [row.entry for row in sure if row and status in (None, row.entry.status)]

    def find(self, prefix: str, limit: int, /) -> list[KeptRow]:
        rows = self._rows(f"{_SELECT} WHERE starts_with(intent_hash, %s) LIMIT %s", (prefix, limit))
        return [row for row in map(self._sure, rows) if row]

    def free(self, intent_hash: str, /) -> KeptRow | None:
        kept = self._told(intent_hash)
        if kept is None or kept.entry.status is not ExecutionStatus.UNKNOWN:
            return kept
        with self.turn():
            removed = self._attempt(self._connected(), _FREE, (intent_hash,)).rowcount
        return kept if removed else self._told(intent_hash)

    def close(self) -> None:
        with self.turn():
            self._disconnect()

    def drop_inherited(self) -> None:
        super().drop_inherited()
        self._keys, self._undecided = {}, {}
        if self._session is not None:
            self._session.abandon()
            self._inherited.append(self._session)
            self._session = None

    def _insert(self, session: Session, entry: LedgerEntry) -> bool:
        name = entry.intent_hash
        given = (name, entry.at, entry.session_id, entry.kind, entry.resource_version)
        if self.is_prune_due:
            self.note_pruned(self._attempt(session, _PRUNE, (PRUNE_ROWS,)).rowcount)
        if name not in self._keys:
            self._undecided[name] = session.key
        done = self._attempt(session, _CLAIM, (*given, *self.me, session.key)).rowcount == 1
        self._undecided.pop(name, None)
        if done:
            self._keys[name] = session.key
        return done

    def _told(self, intent_hash: str) -> KeptRow | None:
        rows = self._rows(f"{_SELECT} WHERE intent_hash = %s", (intent_hash,))
        return self._sure(rows[0]) if rows else None

    def _sure(self, row: KeptRow) -> KeptRow | None:
        """Reads a row that is told as `unknown` again: its claimant may have finished meanwhile."""
        if row.entry.status is not ExecutionStatus.UNKNOWN:
            return row
        rows = self._rows(f"{_SELECT} WHERE intent_hash = %s", (row.entry.intent_hash,))
        return rows[0] if rows else None

    def _rows(self, statement: str, values: tuple[Any, ...]) -> list[KeptRow]:
        found = self._run(statement, values).fetchall()
        try:
            return [kept_row(each) for each in found]
        except ValueError as error:
            raise self._server.unavailable(f"its table is damaged: {error}") from None

    def _run(self, statement: str, values: tuple[Any, ...]) -> Answer:
        return self._in_session(lambda session: self._attempt(session, statement, values))

    def _in_session(self, act: Callable[[Session], _Made]) -> _Made:
        """Does what may be done twice; again, if the session was lost while it was idle."""
        with self.turn():
            if self._session is not None:
                try:
                    return act(self._session)
                except ExecutionsUnavailable:
                    if self._session is not None:
                        raise
            return act(self._connected())

    def _attempt(self, session: Session, statement: str, values: tuple[Any, ...]) -> Answer:
        try:
            return session.run(statement, values)
        except (psycopg.Error, UnicodeError) as error:
            if session.is_lost:
                self._disconnect()
            raise self._server.problem(error) from None

    def _connected(self) -> Session:
        if self._session is None:
            session = self._server.connect()
            self._session = session
            for name, key in list(self._undecided.items()):
                self._attempt(session, _RELEASE, (name, key))
                del self._undecided[name]
        return self._session

    def _disconnect(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            session.close()
