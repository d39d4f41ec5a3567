"""The ledger's file itself, for commands that read more of it than fits into an answer."""

import os
import time
from typing import TYPE_CHECKING

from subluminal.cli.output import Output
from subluminal.config.places import Places
from subluminal.ledger.client.ledger import EmptyLedger, Ledger, open_ledger

if TYPE_CHECKING:
    import apsw

_PATIENCE_S = 20.0
_STILL_S = 1.0
"""No progress for so long: what is left is half a line, which nobody will ever finish."""
_LOOK_S = 0.02


def open_ledger_file(places: Places, out: Output) -> "tuple[Ledger, apsw.Connection | None]":
    """The ledger by its quickest road, and read-only by its file; None if nothing was recorded.

    What was journalled before this call is in it: ledgerd is started, or waited for.
    """
    ledger = open_ledger(places, out)
    if isinstance(ledger, EmptyLedger):
        return ledger, None
    from subluminal.ledger.store.database import open_reader

    connection = open_reader(places.ledger)
    if not _caught_up(places, connection):
        out.warning("ledgerd has not read all journals; the newest calls may be missing")
    return ledger, connection


def _caught_up(places: Places, connection: "apsw.Connection") -> bool:
    """Waits until what is journalled now is in the ledger; False if that does not happen."""
    from subluminal.journal.reading import journal_files

    wanted: dict[str, int] = {}
    for file in journal_files(places.journal):
        try:
            name = os.path.relpath(file.path, places.journal)
            wanted[name] = os.stat(file.path).st_size
        except FileNotFoundError:
            continue  # read, and removed since
    now = time.monotonic()
    deadline, still_until, before = now + _PATIENCE_S, now + _STILL_S, -1
    while now < min(deadline, still_until):
        left = _unread(connection, wanted)
        if not left:
            return True
        if left != before:
            before, still_until = left, now + _STILL_S
        time.sleep(_LOOK_S)
        now = time.monotonic()
    return not any(_has_lines(places, *each) for each in _tails(connection, wanted))


def _unread(connection: "apsw.Connection", wanted: dict[str, int]) -> int:
    return sum(end - begin for _, begin, end in _tails(connection, wanted))


def _tails(connection: "apsw.Connection", wanted: dict[str, int]) -> list[tuple[str, int, int]]:
    """What is unread of each journal: its name, and from where to where."""
    rows = connection.execute("SELECT path, offset FROM journal_offsets")
    read = {str(path): int(str(offset)) for path, offset in rows}
    tails = [(name, read.get(name, 0), size) for name, size in wanted.items()]
    return [tail for tail in tails if tail[1] < tail[2]]


def _has_lines(places: Places, name: str, begin: int, end: int) -> bool:
    """Whether there is more than half a line, which a process that died left."""
    try:
        with open(os.path.join(places.journal, name), "rb") as file:
            file.seek(begin)
            return b"\n" in file.read(end - begin)
    except FileNotFoundError:
        return False
