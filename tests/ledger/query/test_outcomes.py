"""The outcome of calls: the same in SQL, in the live stream and in the pure function (issue 19)."""

import json

import apsw
import pytest
from tests.ledger.events import START_MS, decision_json
from tests.ledger.home import Home
from tests.requirements import requirement

from subluminal.config.places import make_private_dir
from subluminal.contracts.vocabulary import Action, Outcome, ReasonCode
from subluminal.ledger.filter.language import parse_filter
from subluminal.ledger.filter.matching import Passing
from subluminal.ledger.query import calls
from subluminal.ledger.query.facets import count_facets
from subluminal.ledger.query.planning import EVERYTHING, choose_path
from subluminal.ledger.query.questions import MAX_LIMIT, CallFilter, Paging, call_filter
from subluminal.ledger.query.records import CallRecord
from subluminal.ledger.store.database import add_functions, migrations
from subluminal.ledger.upkeep.deferred import index_some
from subluminal.policy.outcomes import outcome_of

Decided = tuple[str, str, bool]
"""action, reason code, whether a grant let the call pass"""
DECIDED: list[Decided] = [
    *((action, code, False) for action in Action for code in (*ReasonCode, "MY_OWN")),
    *(("ALLOW", code, True) for code in ("APPROVAL_GRANTED", "OK")),
    ("REWRITE", "MY_OWN", False),
]
GRANT = b',"grant":{"grant_id":"grant-1","approver":"kim"}}'
WORDS = [outcome.value for outcome in Outcome]


def event_of(action: str, code: str, has_grant: bool) -> bytes:
    text = decision_json(action, None, code)
    return text[:-1] + GRANT if has_grant else text


@pytest.fixture
def full(home: Home) -> Home:
    producer = home.producer()
    producer.run_start()
    for decided in DECIDED:
        producer.begin(decision=event_of(*decided))
    producer.start()  # not decided yet
    producer.journal.flush()
    home.ingest()
    while index_some(home.store.connection, START_MS + 10_000_000):
        pass
    return home


def asked(full: Home, text: str) -> list[CallRecord]:
    wanted = call_filter(parse_filter(text, now_ms=START_MS))
    return calls.find_calls(full.reader(), wanted, Paging(limit=MAX_LIMIT)).calls


def expected(action: str, code: str, has_grant: bool) -> Outcome | None:
    return outcome_of(action, code, has_grant=has_grant)


@requirement("trust:outcome-column")
def test_every_call_has_the_outcome_of_its_decision(full: Home) -> None:
    found = calls.find_calls(
        full.reader(), CallFilter(), Paging(limit=MAX_LIMIT, newest_first=False)
    )
    *decided, open_call = found.calls
    assert [call.outcome for call in decided] == [expected(*each) for each in DECIDED]
    assert {call.outcome for call in decided} == {*WORDS, None}
    assert open_call.outcome is None
    assert full.verify().findings == []


@requirement("trust:outcome-filter")
@pytest.mark.parametrize("where", ["", " run:run", " text:src", " seq>0", " status:OK,UNKNOWN"])
@pytest.mark.parametrize("outcome", WORDS)
def test_the_filter_finds_the_calls_with_an_outcome(full: Home, outcome: str, where: str) -> None:
    found = asked(full, f"outcome:{outcome.lower()}{where}")
    is_refused = outcome not in ("ALLOW", "APPROVED")
    count = sum(expected(*each) == outcome for each in DECIDED)
    assert len(found) == (0 if "status" in where and is_refused else count)
    assert {call.outcome for call in found} <= {outcome}


def test_outcomes_can_be_joined_and_negated(full: Home) -> None:
    both = asked(full, "outcome:APPROVED,TIMEOUT")
    assert {call.outcome for call in both} == {"APPROVED", "TIMEOUT"}
    others = {call.outcome for call in asked(full, "-outcome:APPROVED,TIMEOUT")}
    assert others == {*WORDS} - {"APPROVED", "TIMEOUT"}
    assert asked(full, "outcome:APPROVED outcome:TIMEOUT") == []
    assert asked(full, "outcome:APPROVED decision:BLOCK") == []


def test_counts_take_the_filter_too(full: Home) -> None:
    wanted = call_filter(parse_filter("outcome:REJECTED", now_ms=START_MS))
    assert count_facets(full.reader(), wanted).total == len(asked(full, "outcome:REJECTED"))


def test_rare_outcomes_are_not_looked_for_among_all_calls(full: Home) -> None:
    """A refusal is found by the index of refusals, however many calls passed."""
    producer = full.producer(shim_id="busy")
    for number in range(300):
        producer.begin(number, decision_json("ALLOW", None, "DEFAULT_ALLOW"))
    full.ingest()
    wanted = call_filter(parse_filter("outcome:REQUIRE_TICKET", now_ms=START_MS))
    path = choose_path(full.reader(), wanted)
    assert EVERYTHING not in path.legs
    assert {leg.values[0] for leg in path.legs} == {"BLOCK", "REJECT_WITH_HINT"}


@requirement("trust:outcome-filter")
@pytest.mark.parametrize("outcome", WORDS)
def test_the_live_stream_passes_what_the_ledger_finds(full: Home, outcome: str) -> None:
    passing = Passing(parse_filter(f"outcome:{outcome}", now_ms=START_MS))
    passed = [event for event in map(json.loads, full.lines()) if passing.takes(event)]
    assert {event["type"] for event in passed} == {"tool_call_decision"}
    found = {call.call_id for call in asked(full, f"outcome:{outcome}")}
    assert {event["call"]["call_id"] for event in passed} == found


@requirement("trust:outcome-column")
@pytest.mark.parametrize("version", [5, 7, 9])
def test_a_ledger_of_an_earlier_version_has_outcomes(home: Home, version: int) -> None:
    make_private_dir(home.places.home)
    connection = apsw.Connection(home.places.ledger)
    add_functions(connection)
    for number, sql in migrations():
        if number <= version:
            connection.execute(sql)
            connection.pragma("user_version", number)
    connection.execute("INSERT INTO shims VALUES (1, 's', 'r', 0, 0, x'00', NULL)")
    connection.executemany(
        "INSERT INTO tool_calls (id, call_id, run_id, server_name, tool_name, args_hash, decision,"
        " reason_code, preview_truncated, created_at, shim)"
        " VALUES (?, ?, 'r', 'git', 'push', 'a', ?, ?, 0, ?, 1)",
        [(n, f"c{n}", action, code, n) for n, (action, code, _) in enumerate(DECIDED, start=1)],
    )
    connection.executemany(
        "INSERT INTO grant_uses VALUES ('grant-1', ?, 0)",
        [(n,) for n, (_, _, has_grant) in enumerate(DECIDED, start=1) if has_grant],
    )
    connection.close()
    assert home.store  # migrates it
    wanted, paging = CallFilter(run="r"), Paging(limit=MAX_LIMIT, newest_first=False)
    found = calls.find_calls(home.reader(), wanted, paging).calls
    assert [call.outcome for call in found] == [expected(*each) for each in DECIDED]
