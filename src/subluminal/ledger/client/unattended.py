"""The ledger without a daemon: read directly when it is up to date, else ledgerd is started."""

import os
import time
from typing import Any

from subluminal.cli.commands.ledger_extra import need_daemon_extra
from subluminal.cli.output import Output
from subluminal.config.places import Places
from subluminal.journal.reading import journal_files
from subluminal.ledger.client import socket as daemon
from subluminal.ledger.client.ledger import DaemonLedger, EmptyLedger, Ledger

CATCH_UP_S = 20.0
_LOOK_S = 0.02


def open_without_daemon(places: Places, out: Output) -> Ledger:
    """Reads what is there. Raises SubluminalError if there is something that cannot be read."""
    journals = journal_files(places.journal)
    has_ledger = os.path.exists(places.ledger)
    if not journals and not has_ledger:
        return EmptyLedger()
    need_daemon_extra()
    from subluminal.ledger.client.direct import DirectLedger, is_current
    from subluminal.ledger.client.ledgerd import DaemonUnavailable, start

    if has_ledger and is_current(places, journals):
        return DirectLedger(places)
    try:
        start(places)
    except DaemonUnavailable as problem:
        if not has_ledger:
            raise
        out.warning(f"{problem}; the newest calls may be missing", problem.hint)
        return DirectLedger(places)
    _wait_until_caught_up(places, out)
    return DaemonLedger(places)


def _wait_until_caught_up(places: Places, out: Output) -> None:
    deadline = time.monotonic() + CATCH_UP_S
    while True:
        status: Any = daemon.get(places, "/v1/status", {})
        if status["events_total"] and not status["backlog_bytes"]:
            return
        if time.monotonic() > deadline:
            left = status["backlog_bytes"]
            out.warning(f"ledgerd still reads journals ({left} bytes); calls may be missing")
            return
        time.sleep(_LOOK_S)
