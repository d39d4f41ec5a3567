"""The PostgreSQL server that keeps executions: connecting, its table, and what errors mean.

Every wait is bounded: connecting, a statement on the server, and the answer of a server that says
nothing. A message never contains the password: libpq repeats parts of a URL that it cannot read, so
its words are used only after the password was masked.
"""

import os
import re
import secrets
from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar
from urllib.parse import unquote

import psycopg
from psycopg.abc import PQGen
from psycopg.conninfo import conninfo_to_dict

from subluminal.adapters.in_process.executions.keeping import ExecutionsUnavailable
from subluminal.errors import SubluminalError

_CONNECT_S = 5
_STATEMENT_MS = 5_000
_LOCK_MS = 3_000
_ANSWER_S = 8.0
"""Longest wait for an answer. Longer than the server's own bound, which leaves the session open."""
_TABLE_LOCK = 0x5375_624C_7845_6331
"""Key of the advisory lock under which the table is created."""
_TABLE = """
CREATE TABLE IF NOT EXISTS subluminal_executions (
  intent_hash text PRIMARY KEY,
  at text NOT NULL,
  session_id text NOT NULL,
  kind text NOT NULL,
  resource_version text NOT NULL,
  status text NOT NULL CHECK (status IN ('claimed', 'done', 'unknown')),
  host text NOT NULL,
  boot text NOT NULL,
  pid bigint NOT NULL,
  start bigint NOT NULL,
  session_key bigint NOT NULL,
  claimed_at timestamptz NOT NULL DEFAULT now(),
  ended_at timestamptz
)
"""
_INDEX = (
    "CREATE INDEX IF NOT EXISTS subluminal_executions_ended"
    " ON subluminal_executions (ended_at) WHERE status = 'done'"
)
_SETTINGS = f"""
SET statement_timeout = {_STATEMENT_MS};
SET lock_timeout = {_LOCK_MS};
SET default_transaction_isolation = 'read committed';
SET tcp_keepalives_idle = 30;
SET tcp_keepalives_interval = 10;
SET tcp_keepalives_count = 3;
SELECT set_config('synchronous_commit', 'on', false)
  WHERE current_setting('synchronous_commit') = 'off';
SELECT set_config(name, '0', false) FROM pg_settings WHERE name = 'idle_session_timeout'
"""
"""For every session. A claim that returned is on the server's disk; an idle session stays."""

Answer: TypeAlias = "psycopg.Cursor[tuple[Any, ...]]"
_Made = TypeVar("_Made")


class _Bounded(psycopg.Connection[tuple[Any, ...]]):
    """A connection that gives up on a server which does not answer."""

    def wait(self, gen: PQGen[_Made], interval: float = 0.1, timeout: float | None = None) -> _Made:
        return super().wait(gen, interval, _ANSWER_S if timeout is None else timeout)


class Session:
    """One connection, and the key of the advisory lock that it holds."""

    def __init__(self, connection: _Bounded, key: int) -> None:
        self._connection = connection
        self.key = key

    def run(self, statement: str, values: tuple[Any, ...] = ()) -> Answer:
        """Runs one statement, which is committed when this returns."""
        return self._connection.execute(statement.encode(), values or None)

    @property
    def is_lost(self) -> bool:
        """Whether the connection is of no more use: closed, or still waiting for an answer."""
        idle = psycopg.pq.TransactionStatus.IDLE
        return self._connection.info.transaction_status != idle

    def close(self) -> None:
        self._connection.close()

    def abandon(self) -> None:
        """Gives up, in a forked child, the socket that it shares with its parent.

        Otherwise the server would take the parent for alive as long as the child is.
        """
        if self._connection.closed:
            return
        nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        try:
            os.dup2(nothing, self._connection.fileno(), inheritable=False)
        finally:
            os.close(nothing)


class Server:
    """The server that a URL names."""

    def __init__(self, url: str) -> None:
        options = _options(url)
        self._url = url
        self._masked = _masker(url, options.get("password"), options.get("sslpassword"))
        self._place = self._masked(_place(options))
        self._has_table = False

    def connect(self) -> Session:
        """Opens a session that holds its lock. Raises ExecutionsUnavailable."""
        key = secrets.randbits(63)
        try:
            connection = _Bounded.connect(
                self._url,
                autocommit=True,
                connect_timeout=_CONNECT_S,
                application_name="subluminal",
                keepalives_idle=30,
                tcp_user_timeout=int(_ANSWER_S * 1000),
            )
        except (psycopg.Error, UnicodeError) as error:
            raise self.problem(error) from None
        session = Session(connection, key)
        try:
            session.run(_SETTINGS)
            if not self._has_table:  # a table that was dropped since then is not made again
                self._create_table(session)
            session.run("SELECT pg_advisory_lock(%s)", (key,))
        except psycopg.Error as error:
            session.close()
            raise self.problem(error) from None
        return session

    def problem(self, error: Exception) -> ExecutionsUnavailable:
        """Turns an error of psycopg into ours."""
        lines = self._masked(str(error)).strip().splitlines() or [type(error).__name__]
        hint = "check the URL in `[kernel] executions` and the server; PGPASSWORD and .pgpass work"
        return self.unavailable(lines[0], hint=hint)

    def unavailable(self, reason: str, *, hint: str | None = None) -> ExecutionsUnavailable:
        """Returns the error that says why nothing may execute."""
        return ExecutionsUnavailable(
            f"the execution ledger at {self._place} is out of reach: {reason}", hint=hint
        )

    def _create_table(self, session: Session) -> None:
        """Creates the table unless it exists, so that a user without the right to is enough."""
        found = session.run("SELECT to_regclass('subluminal_executions')").fetchone()
        if found is None or found[0] is None:
            session.run("SELECT pg_advisory_lock(%s)", (_TABLE_LOCK,))
            session.run(_TABLE)
            session.run(_INDEX)
            session.run("SELECT pg_advisory_unlock(%s)", (_TABLE_LOCK,))
        self._has_table = True


def _options(url: str) -> dict[str, Any]:
    """Reads a URL. Raises SubluminalError, also if a part of a password passes for a host or port.

    That is what libpq makes of a password with `/` or `@` that is not written as %XX.
    """
    try:
        options = conninfo_to_dict(url)
        parts = [str(options.get(name) or "") for name in ("host", "port", "dbname")]
        if not any("@" in part for part in parts) and re.fullmatch("[0-9,]*", parts[1]):
            return options
    except psycopg.Error:
        pass  # its message may contain the password
    raise SubluminalError(
        "the PostgreSQL URL in `[kernel] executions` cannot be read",
        hint="write `postgresql://USER@HOST:PORT/DATABASE`; in a password, write special"
        " characters as %XX",
    ) from None


def _place(options: dict[str, Any]) -> str:
    """Says where the server is: no password, and nothing else that a URL can carry."""
    user = f"{options['user']}@" if options.get("user") else ""
    port = f":{options['port']}" if options.get("port") else ""
    host = options.get("host") or options.get("hostaddr") or ""
    return f"`postgresql://{user}{host}{port}/{options.get('dbname') or ''}`"


def _masker(url: str, *secret: Any) -> Callable[[str], str]:
    """Returns a function that masks passwords in a text, as they are and as a URL spells them."""
    login = url.partition("://")[2].partition("/")[0].partition("@")[0]
    spelled = login.partition(":")[2]
    words = {str(word) for word in (*secret, spelled, unquote(spelled)) if word}

    def masked(text: str) -> str:
        for word in sorted(words, key=len, reverse=True):
            text = text.replace(word, "***")
        return text

    return masked
