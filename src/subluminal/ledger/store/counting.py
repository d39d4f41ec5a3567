"""Numbers that the ledger keeps by name, because no row tells them any more, or not quickly."""

import apsw

EVENTS_TOTAL = "events_total"
PREVIEWS_DROPPED = "previews_dropped"
SEARCH_DONE = "search_done"
"""the last call that the text index knows"""
LAST_FORGOTTEN = "last_forgotten"
"""the last call that retention dropped"""

_ADD = (
    "INSERT INTO counters (name, value) VALUES (?, ?) "
    "ON CONFLICT (name) DO UPDATE SET value = value + excluded.value"
)
_REACH = (
    "INSERT INTO counters (name, value) VALUES (?, ?) "
    "ON CONFLICT (name) DO UPDATE SET value = max(value, excluded.value)"
)
_LAST_CALL = (
    "SELECT max(ifnull((SELECT max(id) FROM tool_calls), 0), "
    "ifnull((SELECT max(value) FROM counters WHERE name IN (?, ?)), 0))"
)


def read_counter(connection: apsw.Connection, name: str) -> int:
    """A stored count; 0 if nothing was counted yet."""
    row = connection.execute("SELECT value FROM counters WHERE name = ?", (name,)).fetchone()
    return 0 if row is None else int(row[0])


def add_to_counter(connection: apsw.Connection, name: str, value: int) -> None:
    """Counts something, within the caller's transaction."""
    connection.execute(_ADD, (name, value))


def reach_counter(connection: apsw.Connection, name: str, value: int) -> None:
    """Says how far something has come, within the caller's transaction."""
    connection.execute(_REACH, (name, value))


def last_call(connection: apsw.Connection) -> int:
    """The highest id that a call ever had: no other call may get one that is still referred to."""
    # An index that is further than any call is of a ledger that did not count what it forgot.
    row = next(connection.execute(_LAST_CALL, (LAST_FORGOTTEN, SEARCH_DONE)))
    return int(row[0])
