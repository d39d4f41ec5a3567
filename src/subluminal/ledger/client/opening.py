"""Opens the ledger by the quickest way that finds everything recorded so far.

1. ledgerd answers on its socket: ask ledgerd. Nothing heavy is imported.
2. No ledgerd, but the ledger's file holds everything that is in the journals: read the file.
3. No ledgerd, and the journals hold more than the file: start ledgerd and wait until it has read
   them.
4. Neither a ledger nor a journal: nothing was recorded, and the ledger is empty.

Imports are inside the functions, because a command that finds ledgerd running must not pay for the
other ways, and must load without the libraries of the `daemon` extra.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

from subluminal.config.places import Places
from subluminal.errors import SubluminalError
from subluminal.ledger.client.http import Client, DaemonUnavailable
from subluminal.ledger.client.ledger import DaemonLedger, EmptyLedger, Ledger

if TYPE_CHECKING:
    import apsw

    from subluminal.ledger.client.journals import ShimLines

Warn = Callable[[str], None]
"""Shows a warning to the user."""

_LIBRARIES = ("apsw", "cryptography", "starlette", "uvicorn")
_CATCH_UP_S = 20.0
_POLL_S = 0.02


def need_daemon_extra() -> None:
    """Raises if the ledger's libraries are not installed."""
    missing = [name for name in _LIBRARIES if find_spec(name) is None]
    if missing:
        raise SubluminalError(
            f"the ledger needs {', '.join(f'`{name}`' for name in missing)}",
            hint="install it with `pip install 'subluminal[daemon]'`",
        )


def open_ledger(places: Places, warn: Warn) -> Ledger:
    """Opens the ledger. Everything journalled before this call can be found in it."""
    from subluminal.ledger.client.roll_call import close_what_died

    close_what_died(places)
    if Client(places).answers():
        return DaemonLedger(places)
    return _open_without_daemon(places, warn)


def open_ledger_file(places: Places, warn: Warn) -> "tuple[Ledger, apsw.Connection | None]":
    """Opens the ledger, and a read-only connection to its file (None if nothing was recorded).

    Commands use the connection when they read more than fits into one answer of ledgerd. Everything
    journalled before this call is in the file: ledgerd is started, or waited for.
    """
    ledger = open_ledger(places, warn)
    if isinstance(ledger, EmptyLedger):
        return ledger, None
    from subluminal.ledger.client.direct import wait_for_journals
    from subluminal.ledger.store.database import open_reader

    connection = open_reader(places.ledger)
    if not wait_for_journals(places, connection):
        warn("ledgerd has not read all journals yet; the newest calls may be missing")
    return ledger, connection


@contextmanager
def open_run(places: Places, name: str, warn: Warn) -> "Iterator[list[ShimLines]]":
    """Opens the events of one run, by its id or the end of its id: one reader for each shim.

    The events come out of the ledger, or straight from the journals where the ledger's libraries
    are not installed.
    """
    if find_spec("apsw") is None:
        from subluminal.ledger.client.journals import find_journals, lines_by_shim

        yield lines_by_shim(find_journals(places, name))
        return
    from subluminal.ledger.client.finding import find_run
    from subluminal.ledger.query.events import stored_lines_by_shim
    from subluminal.ledger.store.database import open_reader

    run_id = find_run(open_ledger(places, warn), name)
    connection = open_reader(places.ledger)
    try:
        yield [*stored_lines_by_shim(connection, run_id)]
    finally:
        connection.close()


def _open_without_daemon(places: Places, warn: Warn) -> Ledger:
    """Raises SubluminalError if something was recorded that cannot be read."""
    from subluminal.journal.reading import journal_files

    has_ledger = os.path.exists(places.ledger)
    if not has_ledger and not journal_files(places.journal):
        return EmptyLedger()
    need_daemon_extra()
    from subluminal.ledger.client.direct import DirectLedger, is_current
    from subluminal.ledger.client.ledgerd import start

    if has_ledger and is_current(places):
        return DirectLedger(places)
    try:
        start(places)
    except DaemonUnavailable as problem:
        if not has_ledger:
            raise
        advice = f" ({problem.hint})" if problem.hint else ""
        warn(f"{problem}{advice}; the newest calls may be missing")
        return DirectLedger(places)
    _wait_for_daemon(places, warn)
    return DaemonLedger(places)


def _wait_for_daemon(places: Places, warn: Warn) -> None:
    """Waits until ledgerd has read all journals."""
    import time

    client = Client(places)
    deadline = time.monotonic() + _CATCH_UP_S
    while True:
        status = client.get("/v1/status")
        if not status["backlog_bytes"]:
            return
        if time.monotonic() > deadline:
            left = status["backlog_bytes"]
            warn(f"ledgerd is still reading journals ({left} bytes left); calls may be missing")
            return
        time.sleep(_POLL_S)
