"""What came of a hint: judged by the next call, whatever order calls, shims and daemons come in."""

import itertools
import os
import random
from typing import NamedTuple

import apsw
import pytest
from tests.ledger.events import ALLOW, BLOCK, HINT, START_MS, decision_json
from tests.ledger.home import Home

from subluminal.ledger.filter.language import parse_filter
from subluminal.ledger.ingest.hint_outcomes import HintOutcome
from subluminal.ledger.query import hints
from subluminal.ledger.query.questions import Paging, RecoveryBy
from subluminal.ledger.store import database
from subluminal.ledger.upkeep.retention import DAY_MS, Retention
from subluminal.trust.home_key import home_key

SAME, OTHER, SUGGESTED = '{"limit":99}', '{"limit":50}', '{"limit":10}'
THROTTLE = decision_json("THROTTLE", "slow", "RATE")
OTHER_HINT = decision_json("REJECT_WITH_HINT", "other", "ARGS")


def outcomes(home: Home) -> list[str]:
    return [str(row[0]) for row in home.rows("SELECT outcome FROM hints ORDER BY id")]


@pytest.mark.parametrize(
    ("text", "decision", "outcome"),
    [
        (SUGGESTED, ALLOW, "followed"),
        (OTHER, ALLOW, "followed"),
        (SAME, ALLOW, "followed"),  # such as after an approval
        (SUGGESTED, HINT, "followed"),  # the agent did as it was told
        (SUGGESTED, BLOCK, "followed"),
        ('{ "limit" : 10 }', HINT, "retried"),  # another hash: producers hash canonically
        (OTHER, BLOCK, "followed"),  # past this rule, into another
        (OTHER, HINT, "retried"),
        (SAME, HINT, "retried"),
        (SAME, BLOCK, "retried"),
        (SAME, THROTTLE, "retried"),
    ],
)
def test_the_next_call_decides(home: Home, text: str, decision: bytes, outcome: str) -> None:
    producer = home.producer()
    producer.begin(1, HINT, text=SAME)
    producer.begin(2, ALLOW)  # of another tool
    producer.begin(1, decision, text=text)
    producer.begin(1, ALLOW, text=OTHER)  # what comes later changes nothing
    home.ingest()
    assert outcomes(home)[0] == outcome
    assert home.verify().findings == []


def test_no_next_call(home: Home) -> None:
    producer = home.producer()
    producer.begin(1, HINT)
    home.ingest()
    assert outcomes(home) == ["pending"]
    producer.run_end()
    home.ingest()
    assert outcomes(home) == ["gave_up"]
    assert home.verify().findings == []
    # The run is reopened: another hint waits, and a call answers both of its tool's.
    producer.begin(2, HINT)
    home.ingest()
    assert outcomes(home) == ["gave_up", "pending"]
    producer.begin(1, ALLOW)
    home.ingest()
    assert outcomes(home) == ["followed", "pending"]
    producer.run_end()
    home.ingest()
    assert outcomes(home) == ["followed", "gave_up"]
    assert home.verify().findings == []


def test_the_end_of_a_run_may_come_before_its_calls(home: Home) -> None:
    one, two = home.producer("run", "one"), home.producer("run", "two")
    one.begin(1, HINT)
    two.clock_ms = one.clock_ms + 10
    two.run_end()
    lines = home.lines()
    assert home.take(lines[2:]) == 1
    assert home.take(lines[:2]) == 2
    assert outcomes(home) == ["gave_up"]
    assert home.verify().findings == []


def test_another_shim_of_the_run_answers_and_another_run_does_not(home: Home) -> None:
    one, two, far = home.producer("a", "one"), home.producer("a", "two"), home.producer("b", "far")
    one.begin(1, HINT)
    two.clock_ms = far.clock_ms = one.clock_ms
    far.begin(1, ALLOW)
    home.ingest()
    assert outcomes(home) == ["pending"]
    two.begin(1, ALLOW)
    home.ingest()
    assert outcomes(home) == ["followed"]


def test_calls_of_the_same_moment_are_ordered_by_seq(home: Home) -> None:
    one, two = home.producer("a", "one"), home.producer("a", "two")
    one.begin(1, HINT, seq=2)
    two.begin(1, BLOCK, seq=1)
    home.ingest()
    assert outcomes(home) == ["pending"]
    two.clock_ms = START_MS
    two.begin(1, ALLOW, seq=3)
    home.ingest()
    assert outcomes(home) == ["followed"]
    assert home.verify().findings == []


def test_a_call_is_judged_when_it_is_decided(home: Home) -> None:
    """The decision may come in another batch than the start."""
    producer = home.producer()
    producer.begin(1, HINT)
    producer.begin(1, ALLOW)
    lines = home.lines()
    for count in (1, 2, 3):
        home.take(lines[count - 1 : count])
        assert outcomes(home) == ["pending"] * (count > 1)
    home.take(lines[3:])
    assert outcomes(home) == ["followed"]
    assert home.verify().findings == []


def test_a_second_decision_of_a_call_is_the_one_that_counts(home: Home) -> None:
    producer = home.producer()
    producer.begin(1, HINT, text=SAME)
    producer.begin(1, HINT, text=SAME)
    home.ingest()
    assert outcomes(home) == ["retried", "pending"]
    producer.decide(ALLOW)
    home.ingest()
    assert outcomes(home)[0] == "followed"
    assert home.verify().findings == []


def test_a_hint_may_come_before_its_call_is_decided(home: Home) -> None:
    """And after a later call was."""
    one, two = home.producer("run", "one"), home.producer("run", "two")
    one.begin(1, HINT, text=SAME)
    call_id = one.start(1, text=OTHER)
    one.issue_hint(call_id, "h1")
    home.ingest()
    assert outcomes(home) == ["pending", "pending"]
    one.decide(BLOCK)
    home.ingest()
    assert outcomes(home) == ["followed", "pending"]
    two.clock_ms = one.clock_ms
    two.begin(1, BLOCK, text=OTHER)
    home.ingest()
    assert outcomes(home) == ["followed", "retried"]
    assert home.verify().findings == []


def test_a_hint_with_only_an_event_is_linked_too(home: Home) -> None:
    producer = home.producer()
    call_id = producer.begin(1, BLOCK, text=SAME)
    producer.begin(1, BLOCK, text=SAME)
    home.ingest()
    producer.issue_hint(call_id, "h1")
    home.ingest()
    assert outcomes(home) == ["retried"]
    assert home.verify().findings == []
    (found,) = hints.find_hints(home.reader(), None, Paging()).hints
    assert (found.hint_id, found.call_id, found.outcome) == ("h1", call_id, "retried")


class Told(NamedTuple):
    """A call that a scenario made."""

    at: tuple[int, int]
    run: str
    tool: int
    text: str
    decision: bytes
    call_id: str


class Scenario:
    """Shims of two runs that call two tools, in one order of time."""

    def __init__(self, home: Home, chance: random.Random) -> None:
        self.calls: list[Told] = []
        self.ended: dict[str, int] = {}
        shims = [home.producer(run, f"{run}{number}") for run in ("a", "b") for number in range(3)]
        clock = START_MS
        for seq in range(1, 61):
            clock += chance.choice((0, 1, 5))
            shim = chance.choice(shims)
            shim.clock_ms = clock - 7
            if chance.random() < 0.03:
                shim.clock_ms = self.ended[shim.run_id] = clock
                shim.run_end()
                continue
            told = Told(
                (clock, seq),
                shim.run_id,
                chance.choice((1, 2)),
                chance.choice((SAME, OTHER, SUGGESTED)),
                chance.choice((ALLOW, HINT, HINT, OTHER_HINT, BLOCK, THROTTLE)),
                "",
            )
            call_id = shim.begin(told.tool, told.decision, text=told.text, seq=seq)
            if chance.random() < 0.5:
                shim.finish(call_id)
            self.calls.append(told._replace(call_id=call_id))

    def outcomes(self) -> dict[str, str]:
        """What came of every hint, by the words of the definition alone."""
        return {
            call.call_id: self._outcome(call)
            for call in self.calls
            if call.decision in (HINT, OTHER_HINT)
        }

    def _outcome(self, hinted: Told) -> str:
        after = (
            call
            for call in sorted(self.calls)
            if (call.run, call.tool) == (hinted.run, hinted.tool) and call.at > hinted.at
        )
        following = next(after, None)
        if following is None:
            has_ended = self.ended.get(hinted.run, -1) >= hinted.at[0]
            return "gave_up" if has_ended else "pending"
        if following.decision == ALLOW or following.text == SUGGESTED:
            return "followed"
        if following.text == hinted.text or following.decision == hinted.decision:
            return "retried"
        return "followed"


@pytest.mark.parametrize("seed", range(60))
def test_any_order_of_arrival_gives_the_same(home: Home, seed: int) -> None:
    chance = random.Random(seed)
    scenario = Scenario(home, chance)
    roads: dict[str, list[bytes]] = {}
    for line in home.lines():
        shim = line.partition(b'"shim_id":"')[2].partition(b'"')[0]
        roads.setdefault(shim.decode(), []).append(line)
    left = {shim: iter(lines) for shim, lines in roads.items()}
    while left:
        taken = []
        for _ in range(chance.choice((1, 1, 3))):
            shim = chance.choice(list(left))
            piece = list(itertools.islice(left[shim], chance.choice((1, 2, 5, 40))))
            taken += piece
            if not piece:
                del left[shim]
                break
        home.take(taken)
        if chance.random() < 0.15:
            home.restart()
        if chance.random() < 0.1:
            assert home.take(roads[chance.choice(list(roads))][:3]) <= 3
            assert home.verify().findings == []
    stored = dict(home.rows("SELECT call_id, outcome FROM hints"))
    assert stored == scenario.outcomes()
    assert home.verify().findings == []
    assert home.verify("a").findings == []


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        ("outcome = 'followed' WHERE outcome = 'retried'", "the calls say `retried`"),
        ("outcome = 'gave_up' WHERE outcome = 'pending'", "the calls say `pending`"),
        ("next_id = NULL WHERE outcome = 'retried'", "`next_id` is not the next call"),
        ("next_id = id WHERE outcome = 'pending'", "`next_id` is not the next call"),
    ],
)
def test_an_edit_is_found(home: Home, sql: str, told: str) -> None:
    producer = home.producer()
    for _ in range(2):
        producer.begin(1, HINT, text=SAME)
    home.ingest()
    assert outcomes(home) == ["retried", "pending"]
    home.store.connection.execute(f"UPDATE hints SET {sql}")
    (found,) = home.verify().findings
    assert found.table == "hints"
    assert told in found.message


def test_a_next_call_that_retention_dropped_stays_the_next(home: Home) -> None:
    """Its shim ended long ago; the hinted one's segment has later events."""
    one, two = home.producer("run", "one"), home.producer("run", "two")
    one.begin(1, HINT, text=SAME)
    two.clock_ms = one.clock_ms + 10
    two.begin(1, HINT, text=SAME)
    three = home.producer("run", "two, which is read last")
    one.clock_ms += 3 * DAY_MS
    three.clock_ms = one.clock_ms
    one.begin(2, ALLOW)
    three.begin(2, ALLOW)
    home.ingest()
    assert outcomes(home) == ["retried", "pending"]
    retention = Retention(home.store.connection, 1, 1 << 40, home_key(home.places.state))
    while retention.step(START_MS + 3 * DAY_MS):
        home.store.forget()
    assert outcomes(home) == ["retried"]
    assert home.verify().findings == []
    one.begin(1, ALLOW)
    home.ingest()
    assert outcomes(home) == ["retried"]
    assert home.verify().findings == []


def test_hints_of_an_older_ledger_are_judged_when_it_is_migrated(home: Home) -> None:
    scenario = Scenario(home, random.Random(4711))
    home.ingest()
    stored = home.rows("SELECT id, next_id, outcome FROM hints ORDER BY id")
    home.restart()
    _take_back(home.places.ledger, 3)
    assert home.rows("SELECT id, next_id, outcome FROM hints ORDER BY id") == stored
    assert set(outcomes(home)) >= {"followed", "retried"}
    assert scenario.outcomes() == dict(home.rows("SELECT call_id, outcome FROM hints"))
    assert home.verify().findings == []


def _take_back(path: str, version: int) -> None:
    """Makes a ledger of an earlier version with the same rows."""
    os.rename(path, f"{path}.new")
    old = apsw.Connection(path)
    for number, sql in database.migrations()[:version]:
        old.execute(sql)
        old.pragma("user_version", number)
    old.execute("ATTACH ? AS new", (f"{path}.new",))
    tables = "SELECT name FROM main.sqlite_master WHERE type = 'table' AND name NOT LIKE 'search%'"
    for (name,) in list(old.execute(tables)):
        columns = ", ".join(row[1] for row in old.execute(f"PRAGMA main.table_info({name})"))
        if name != "approvals":  # which was another table then, and empty
            old.execute(f"INSERT INTO main.{name} SELECT {columns} FROM new.{name}")
    old.close()


@pytest.fixture
def asked(home: Home) -> apsw.Connection:
    """Two runs, three rules' worth of hints."""
    one, two = home.producer("run1", "shim1"), home.producer("run2", "shim2")
    for producer in (one, two):
        producer.begin(1, HINT, text=SAME)
        producer.begin(1, HINT, text=SAME)
        producer.begin(1, ALLOW, text=SAME)
        producer.begin(2, OTHER_HINT)
    two.run_end()
    home.ingest()
    return home.reader()


def test_recovery_is_counted(asked: apsw.Connection) -> None:
    def counts(by: RecoveryBy, *span: int | None) -> list[tuple[object, ...]]:
        return [
            (r.rule_id, r.client, r.issued, r.followed, r.retried, r.gave_up, r.pending)
            for r in hints.count_recovery(asked, by, *span)
        ]

    assert counts(RecoveryBy.RULE) == [
        ("small", None, 4, 2, 2, 0, 0),
        ("other", None, 2, 0, 0, 1, 1),
    ]
    assert counts(RecoveryBy.CLIENT) == [(None, "custom", 6, 2, 2, 1, 1)]
    assert counts(RecoveryBy.BOTH, START_MS + 8) == [
        ("other", "custom", 2, 0, 0, 1, 1),
        ("small", "custom", 2, 2, 0, 0, 0),
    ]
    assert counts(RecoveryBy.CLIENT, None, START_MS + 8) == [(None, "custom", 2, 0, 2, 0, 0)]


def test_hints_are_found_by_what_came_of_them(asked: apsw.Connection) -> None:
    def found(outcome: HintOutcome, text: str = "") -> list[tuple[str, str | None]]:
        said = parse_filter(text, now_ms=START_MS) if text else ()
        page = hints.find_hints(asked, None, Paging(newest_first=False), said, outcome)
        return [(hint.call_id, hint.next_call_id) for hint in page.hints]

    assert found(HintOutcome.FOLLOWED, "run:run1") == [("shim1-00000002", "shim1-00000003")]
    assert found(HintOutcome.GAVE_UP) == [("shim2-00000004", None)]
    (hint,) = hints.find_hints(asked, "run1", Paging(), (), HintOutcome.RETRIED).hints
    assert (hint.server_name, hint.tool_name) == ("git", "status")
