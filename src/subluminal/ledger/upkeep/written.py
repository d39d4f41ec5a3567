"""Compares the ledger with what the shims of each run counted (provable-ledger).

A shim counts the events in its journal in the state of its run (`state.shims`), after each write.
So the journal may hold more events than were counted, after a kill, and never fewer. If both ledger
and journal hold fewer, events are lost: the journal was deleted or cut short before it was read,
or a power failure lost its end.
"""

import os
from collections.abc import Iterator
from typing import NamedTuple

import apsw

from subluminal.config.places import Places, encode_name
from subluminal.journal.resuming import last_number
from subluminal.state.errors import StateUnusable
from subluminal.state.shims import ShimTable
from subluminal.state.storage import UNFINISHED, StateFile, runs_dir

Counts = dict[tuple[str, str], int]
"""number of events by run, as its directory is named, and shim"""


class Behind(NamedTuple):
    """A shim of which the ledger holds fewer events than it counted."""

    run: str
    shim_id: str
    counted: int
    stored: int
    journalled: int
    """number of its last event that is in the journal; 0 without a journal"""

    @property
    def lost(self) -> int:
        """How many of its events are neither in the ledger nor in the journal."""
        return max(0, self.counted - max(self.stored, self.journalled))

    @property
    def unread(self) -> int:
        """How many of its events are in the journal, and not in the ledger yet."""
        return max(0, self.journalled - self.stored)


def count_written(places: Places, run_id: str | None = None) -> Counts:
    """What the shims of all runs, or of one, counted. Call it before reading the ledger."""
    directory = runs_dir(places.state)
    try:
        names = [encode_name(run_id)] if run_id else sorted(os.listdir(directory))
    except FileNotFoundError:
        return {}
    counts: Counts = {}
    for name in names:
        if name.startswith(UNFINISHED):
            continue
        try:
            file = StateFile(os.path.join(directory, name))
        except (FileNotFoundError, StateUnusable):
            continue
        try:
            counts |= {(name, shim): count for shim, count in ShimTable(file).written().items()}
        finally:
            file.close()
    return counts


def find_behind(connection: apsw.Connection, places: Places, counts: Counts) -> Iterator[Behind]:
    """The shims of which the ledger does not hold all that they counted."""
    for (run, shim_id), counted in counts.items():
        row = connection.execute("SELECT last_n FROM shims WHERE shim_id = ?", (shim_id,))
        stored = int((row.fetchone() or (0,))[0])
        if stored < counted:
            journalled = last_number(os.path.join(places.journal, run), shim_id)
            yield Behind(run, shim_id, counted, stored, journalled)
