"""ledgerd: whether it answers, and keeps up."""

import os
from collections.abc import Iterator

from subluminal.cli.screens.cells import size
from subluminal.config.places import Places
from subluminal.journal.reading import journal_files
from subluminal.ledger.client.http import Client, DaemonUnavailable
from subluminal.ledger.daemon.instance import is_running
from subluminal.operator.doctor.checks import Check

_MAX_BACKLOG_BYTES = 64 << 20


def check(places: Places) -> Iterator[Check]:
    try:
        status = Client(places).get("/v1/status")
    except DaemonUnavailable:
        yield from _absent(places)
        return
    problem = status["problem"]
    detail = f"ledgerd {status['version']} runs, process {status['pid']}"
    yield Check("ledgerd", not problem, problem or detail, "see its log" if problem else None)
    yield _socket(places)
    backlog = status["backlog_bytes"]
    ok = backlog < _MAX_BACKLOG_BYTES
    hint = None if ok else "ledgerd falls behind: see `sub ledgerd status`"
    yield Check("backlog", ok, f"{size(backlog)} of journals to read", hint)
    lost = status["quarantined"]
    yield Check(
        "events",
        not lost,
        f"{status['events_total']} events of {status['calls_total']} calls"
        + (f"; {lost} lines were no events" if lost else ""),
        "`sub ledger verify` tells more" if lost else None,
    )


def _absent(places: Places) -> Iterator[Check]:
    if is_running(places):
        yield Check(
            "ledgerd", False, "ledgerd runs, and does not answer", "`sub ledgerd stop`, then start"
        )
    else:
        # Nothing is lost without it: journals wait.
        yield Check("ledgerd", True, "ledgerd does not run; commands start it when they need it")
    yield _socket(places)
    unread = sum(os.stat(file.path).st_size for file in journal_files(places.journal))
    ok = unread < 16 * _MAX_BACKLOG_BYTES
    hint = None if ok else "`sub ledgerd start` reads them, and removes what is old"
    yield Check("backlog", ok, f"{size(unread)} of journals", hint)


def _socket(places: Places) -> Check:
    """A socket lies where it can, and where no other user can put another in its place."""
    path = places.runtime_dir
    if not os.path.isdir(path):
        return Check("sockets", True, f"`{path}` is made at first use")
    owner = os.stat(path).st_uid
    ok = owner == os.geteuid() and os.access(path, os.W_OK)
    hint = None if ok else "set SUB_RUNTIME_DIR to a directory of your own"
    return Check("sockets", ok, f"`{path}`" + ("" if ok else " belongs to someone else"), hint)
