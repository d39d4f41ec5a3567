"""Checks that the ledger's file can be opened, read and written.

`sub ledger verify` proves what is in it; this finds a file that SQLite cannot use.
"""

import os
from collections.abc import Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING

from subluminal.config.places import Places
from subluminal.operator.amounts import size
from subluminal.operator.doctor.checks import Check

if TYPE_CHECKING:
    import apsw

_LOCK_MS = 2_000
"""How long a lock may be held, in milliseconds. ledgerd holds its own for less than that."""
_MAX_SCAN_BYTES = 256 << 20
"""A larger ledger is not read whole: that would take longer than all other checks."""


def check_ledger(places: Places) -> Iterator[Check]:
    """Opens the ledger as ledgerd and as its readers do."""
    if not os.path.exists(places.ledger):
        yield Check("ledger", True, "there is no ledger yet; ledgerd creates it")
    elif find_spec("apsw") is not None:  # otherwise the check of SQLite has failed
        yield _open(places.ledger)


def _open(path: str) -> Check:
    import apsw

    from subluminal.ledger.store.database import (
        LedgerOutdated,
        LedgerUnavailable,
        open_reader,
        unavailable,
    )

    try:
        connection = open_reader(path)
        try:
            problem = _scan(connection, path)
            if problem is not None:
                raise apsw.CorruptError(problem)
            calls = next(connection.execute("SELECT count(*) FROM tool_calls"))[0]
        finally:
            connection.close()
        _lock(path)
    except LedgerOutdated:
        detail = "an earlier version wrote the ledger; ledgerd migrates it at its next start"
        return Check("ledger", True, detail)
    except apsw.Error as error:
        found = unavailable(path, error)
        return Check("ledger", False, str(found), found.hint)
    except LedgerUnavailable as found:
        return Check("ledger", False, str(found), found.hint)
    return Check("ledger", True, f"{calls} calls in {size(os.path.getsize(path))}: `{path}`")


def _scan(connection: "apsw.Connection", path: str) -> str | None:
    """Reads every page of a ledger that is not too large. Returns the first damage."""
    if os.path.getsize(path) > _MAX_SCAN_BYTES:
        return None
    found = next(connection.execute("PRAGMA quick_check(1)"))[0]
    return None if found == "ok" else str(found)


def _lock(path: str) -> None:
    """Takes the lock that a writer needs, for a moment."""
    import apsw

    connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        connection.set_busy_timeout(_LOCK_MS)
        connection.execute("BEGIN IMMEDIATE; ROLLBACK")
    finally:
        connection.close()
