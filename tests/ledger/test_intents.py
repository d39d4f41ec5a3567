"""Intents: what packs decided about calls, derived from events, proven, rebuilt and dropped with their call."""

import msgspec
import pytest
from tests.ledger.events import ALLOW, audit_record, judged
from tests.ledger.home import Home
from tests.requirements import requirement

from subluminal.contracts.events import CallRound, DecisionMade, RoundCall
from subluminal.ledger.proof import Report
from subluminal.ledger.store.drops import DAY_MS
from subluminal.ledger.upkeep.rebuilding import rebuild
from subluminal.ledger.upkeep.retention import Retention
from subluminal.trust.home_key import home_key

ROWS = (
    "SELECT call_id, pack, version, intent_kind, intent_hash, nonce, principal, taint, "
    "decision_kind, refusal_code, guard, divergence FROM intents ORDER BY id"
)
EXECUTED = ("pay", "1.2.0", "pay.out", "a" * 64)
UNTOLD = (None, None, None)
"""refusal code, guard and divergence of an intent that has none"""
COMPARED = (None, None, "BASIS_ONLY")


def damage(report: Report) -> list[str]:
    return [str(finding) for finding in report.findings]


def check(home: Home) -> None:
    """The rows are proven, and the same after a rebuild."""
    rows = home.rows(ROWS)
    assert damage(home.verify()) == []
    assert damage(home.verify("run")) == []
    rebuild(home.store, home.places)
    assert home.rows(ROWS) == rows
    assert damage(home.verify()) == []


@requirement("kernel:intents-recorded")
def test_a_pack_s_decision_and_its_audit_record_are_one_row(home: Home) -> None:
    """kernel.md 2: `decision.kernel` of the decision, nonce and principal of the audit record."""
    shim = home.producer()
    paid = shim.begin(decision=judged())
    shim.audit(paid, audit_record("n-1"))
    shim.finish(paid)
    refused = shim.begin(
        decision=judged("REFUSE", "b" * 64, refusal_code="too.much", guard="limit")
    )
    shim.audit(refused, audit_record("n-2", "user"))
    shim.finish(refused, "ERROR")
    compared = shim.begin(decision=judged("EXECUTE", "c" * 64, divergence="BASIS_ONLY"))
    shim.finish(compared)
    shim.call(decision=ALLOW)
    home.ingest()
    said = ("UNTRUSTED", "REFUSE", "too.much", "limit", None)
    assert home.rows(ROWS) == [
        (paid, *EXECUTED, "n-1", "llm", "UNTRUSTED", "EXECUTE", *UNTOLD),
        (refused, *EXECUTED[:3], "b" * 64, "n-2", "user", *said),
        (compared, *EXECUTED[:3], "c" * 64, None, None, "UNTRUSTED", "EXECUTE", *COMPARED),
    ]
    check(home)


@pytest.mark.parametrize("restarts", [False, True])
def test_every_event_may_come_in_a_batch_of_its_own(home: Home, restarts: bool) -> None:
    shim = home.producer()

    def store() -> None:
        home.ingest()
        if restarts:
            home.restart()

    call_id = shim.start()
    shim.journal.flush()
    store()
    shim.decide(judged())
    store()
    shim.audit(call_id, audit_record("n-1"))
    store()
    shim.audit(call_id, audit_record("n-1", "user"))
    store()
    shim.finish(call_id)
    store()
    assert home.rows(ROWS) == [(call_id, *EXECUTED, "n-1", "llm", "UNTRUSTED", "EXECUTE", *UNTOLD)]
    check(home)


@pytest.mark.parametrize("batches", [1, 2, 4])
def test_of_two_audit_records_the_first_counts_and_of_two_decisions_the_last(
    home: Home, batches: int
) -> None:
    """A REWRITE that executes has two records. However the events are cut, the row is the same."""
    shim = home.producer()
    call_id = shim.begin(decision=judged("REWRITE"))
    if batches == 4:
        home.ingest()
    shim.audit(call_id, audit_record("n-1"))
    if batches > 1:
        home.ingest()
    shim.decide(judged("EXECUTE", "b" * 64))
    if batches == 4:
        home.ingest()
    shim.audit(call_id, audit_record("n-2", "user"))
    shim.finish(call_id)
    home.ingest()
    row = (call_id, *EXECUTED[:3], "b" * 64, "n-1", "llm", "UNTRUSTED", "EXECUTE", *UNTOLD)
    assert home.rows(ROWS) == [row]
    check(home)


@pytest.mark.parametrize(
    "record",
    [
        *({}, [], "x", None, {"envelope": {}}, {"envelope": {"nonce": 7}}),
        {"envelope": {"nonce": "n", "actor": "llm"}},
    ],
)
def test_an_audit_record_of_another_shape_is_kept_and_adds_nothing(
    home: Home, record: object
) -> None:
    """A masked record has an empty envelope; anyone can send events to the daemon."""
    shim = home.producer()
    call_id = shim.begin(decision=judged())
    shim.audit(call_id, record)
    shim.finish(call_id)
    home.ingest()
    assert home.rows("SELECT nonce, principal FROM intents") == [(None, None)]
    assert home.rows("SELECT count(*) FROM quarantine") == [(0,)]
    check(home)


@pytest.mark.parametrize("batches", [1, 2])
def test_a_refused_round_takes_the_place_of_the_decision(home: Home, batches: int) -> None:
    """A pack may be asked about every round of a call; the round that is refused ends it."""
    shim = home.producer()
    call_id = shim.begin(decision=judged())
    shim.audit(call_id, audit_record("n-1"))
    if batches == 2:
        home.ingest()
    names = {"call_id": call_id, "server_name": "git", "tool_name": "push", "args_hash": "0" * 64}
    for number, kind in ((2, "EXECUTE"), (3, "REFUSE")):
        made = msgspec.json.decode(judged(kind, f"{number}" * 64), type=DecisionMade)
        call = RoundCall(**names, round=number, bytes_in=1)
        shim.write(CallRound, shim.clock_ms, call=call, decision=made)
    shim.finish(call_id, "ERROR")
    home.ingest()
    assert home.rows("SELECT intent_hash, decision_kind, nonce FROM intents") == [
        ("3" * 64, "REFUSE", "n-1")
    ]
    check(home)


def test_audit_records_without_a_decision_of_a_pack_have_no_row(home: Home) -> None:
    shim = home.producer()
    shim.audit("never-began", audit_record("n-1"))
    call_id = shim.call(decision=ALLOW)
    shim.audit(call_id, audit_record("n-2"))
    home.ingest()
    shim.audit(call_id, audit_record("n-3"))
    home.ingest()
    assert home.rows(ROWS) == []
    check(home)


@requirement("kernel:intents-recorded")
@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("UPDATE intents SET decision_kind = 'EXECUTE'", "the intent is not the one in the events"),
        ("UPDATE intents SET nonce = 'n-9'", "the intent is not the one in the events"),
        ("UPDATE intents SET principal = NULL", "the intent is not the one in the events"),
        ("UPDATE intents SET intent_hash = 'x'", "the intent is not the one in the events"),
        ("UPDATE intents SET taint = 'SYSTEM'", "the intent is not the one in the events"),
        ("UPDATE intents SET call_id = 'x'", "the intent is not the one in the events"),
        ("DELETE FROM intents", "the intent is not the one in the events"),
        ("UPDATE intents SET id = 2", "the intent is not the one in the events"),
        (
            "INSERT INTO intents SELECT 99, call_id, run_id, pack, version, fingerprint,"
            " intent_kind, intent_hash, nonce, principal, taint, decision_kind, refusal_code,"
            " guard, divergence, created_at FROM intents",
            "there is no event for them",
        ),
    ],
)
def test_every_change_of_an_intent_is_found_and_mended(home: Home, sql: str, said: str) -> None:
    shim = home.producer()
    call_id = shim.begin(decision=judged("REFUSE", refusal_code="too.much"))
    shim.audit(call_id, audit_record("n-1"))
    shim.finish(call_id, "ERROR")
    shim.call(decision=ALLOW)
    home.ingest()
    rows = home.rows(ROWS)
    home.store.connection.execute(sql)
    assert said in damage(home.verify())[0]
    rebuild(home.store, home.places)
    assert home.rows(ROWS) == rows
    assert damage(home.verify()) == []


@requirement("kernel:intents-recorded")
def test_retention_drops_an_intent_with_its_call(home: Home) -> None:
    shim = home.producer()
    for number in range(2):
        call_id = shim.begin(decision=judged())
        home.ingest()  # the record and the end are in a later segment
        shim.audit(call_id, audit_record(f"n-{number}"))
        shim.finish(call_id)
        home.ingest()
        shim.clock_ms += 30 * DAY_MS
    retention = Retention(home.store.connection, 10, 1 << 40, home_key(home.places.state))
    while retention.step(shim.clock_ms - 25 * DAY_MS):
        pass
    assert home.rows("SELECT nonce FROM intents") == [("n-1",)]
    check(home)
