"""Tool definitions in the ledger: every one that was seen, provable, the current one in queries."""

import itertools
from hashlib import sha256
from pathlib import Path

import apsw
import pytest
from tests.ledger.events import START_MS
from tests.ledger.home import Home

from subluminal.clock import rfc3339
from subluminal.ledger.query import tools
from subluminal.ledger.store import database

ROWS = "SELECT tool_name, definition_hash, definition_json, first_seen, last_seen, run_id "
STORED = ROWS + "FROM tool_definitions ORDER BY first_seen, tool_name"


def digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


@pytest.fixture
def full(home: Home) -> Home:
    """A tool that changed, one that did not, one that nobody had room for."""
    producer = home.producer()
    producer.call(4)
    producer.clock_ms = START_MS
    producer.list_tools(push="one", pull="same", huge=None)
    producer.list_tools(push="two", pull="same")
    home.ingest()
    return home


def test_every_definition_is_kept_with_its_first_and_last_sight(full: Home) -> None:
    first, then = START_MS + 1, START_MS + 2
    assert full.rows(STORED) == [
        ("huge", digest("huge"), None, first, first, "run"),
        ("pull", digest("same"), "same", first, then, "run"),
        ("push", digest("one"), "one", first, first, "run"),
        ("push", digest("two"), "two", then, then, "run"),
    ]
    assert full.verify().findings == []


@pytest.mark.parametrize("order", list(itertools.permutations((0, 1, 2))))
def test_the_order_of_ingest_changes_nothing(home: Home, order: tuple[int, ...]) -> None:
    told: tuple[str | None, ...] = (None, "huge", "huge")
    for number in order:
        producer = home.producer(f"run{number}", f"shim{number}")
        producer.clock_ms += number
        producer.list_tools(huge=told[number])
        home.ingest()
    last = START_MS + 3
    assert home.rows(STORED) == [("huge", digest("huge"), "huge", last - 2, last, "run0")]
    assert home.verify().findings == []
    assert home.take(home.lines()) == 0


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("UPDATE tool_definitions SET definition_json = 'x'", "`definition_json` is not what"),
        ("UPDATE tool_definitions SET definition_json = NULL", "`definition_json` is not what"),
        ("UPDATE tool_definitions SET first_seen = 1", "`first_seen` is not what"),
        ("UPDATE tool_definitions SET last_seen = last_seen + 1", "`last_seen` is not what"),
        ("UPDATE tool_definitions SET run_id = 'x'", "`run_id` is not what"),
        ("DELETE FROM tool_definitions WHERE tool_name = 'pull'", "git/pull`: the row is missing"),
        (
            "INSERT INTO tool_definitions VALUES ('git', 'rm', 'h', NULL, 1, 1, 'run')",
            "git/rm`: there is no event for it",
        ),
    ],
)
def test_verify_finds_every_change(full: Home, sql: str, expected: str) -> None:
    full.store.connection.execute(sql)
    found = [f"{each.table}: {each.row}: {each.message}" for each in full.verify().findings]
    assert any(expected in each for each in found), found


def test_a_query_returns_the_latest_definition(full: Home) -> None:
    def told() -> dict[str, tuple[int, str | None, int, str | None]]:
        return {
            tool.tool_name: (tool.calls, tool.definition_hash, tool.definitions, tool.changed_at)
            for tool in tools.list_tools(full.reader())
        }

    never_called = {"huge": (0, digest("huge"), 1, None), "pull": (0, digest("same"), 1, None)}
    then = rfc3339(START_MS + 2)
    assert told() == {**never_called, "push": (1, digest("two"), 2, then)}
    producer = full.producer("again", "again")
    producer.clock_ms += 10
    producer.list_tools(push="one")
    producer.call(5)
    full.ingest()
    # The first one is back: not before the second was last seen.
    back = {"push": (1, digest("one"), 2, then), "status": (1, None, 0, None)}
    assert told() == {**never_called, **back}
    producer.list_tools(push="three")
    full.ingest()
    assert told()["push"] == (1, digest("three"), 3, rfc3339(producer.clock_ms))


def test_a_ledger_of_the_first_version_is_migrated(tmp_path: Path) -> None:
    path = str(tmp_path / "ledger.db")
    connection = apsw.Connection(path)
    connection.execute(database.migrations()[0][1])
    connection.pragma("user_version", 1)
    connection.execute("INSERT INTO counters VALUES ('events_total', 7)")
    connection.close()
    migrated = database.open_writer(path)
    assert migrated.pragma("user_version") == database.migrations()[-1][0]
    assert migrated.execute("SELECT value FROM counters").fetchall() == [(7,)]
    assert migrated.execute("SELECT count(*) FROM tool_definitions").fetchone() == (0,)
    assert migrated.execute("SELECT count(*) FROM approvals").fetchone() == (0,)
    migrated.close()
