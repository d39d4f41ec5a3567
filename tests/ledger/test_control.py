"""Approvals, answers and the kill switch: the ledger agrees with the home's files, provably."""

import itertools
import json
from collections.abc import Callable
from typing import Any

import apsw
import pytest
from tests.ledger.events import ALLOW, HINT, START_MS, Producer
from tests.ledger.home import Home
from tests.shim.household import Household
from tests.shim.test_approvals import asking, waiting

from subluminal.clock import now, rfc3339
from subluminal.contracts.control import ApprovalAsked, ApprovalGiven, RefusedGrant, Switch
from subluminal.contracts.events import (
    ApprovalDecided,
    ApprovalRequested,
    CallRef,
    GrantRefused,
    KillSwitch,
)
from subluminal.contracts.vocabulary import (
    ApprovalAnswer,
    GrantProblem,
    Layer,
    Requirement,
    Severity,
    StopScope,
    SwitchState,
)
from subluminal.ledger.filter.language import parse_filter
from subluminal.ledger.query.approvals import find_approvals, find_switches
from subluminal.ledger.query.questions import ApprovalState, InvalidQuery, Paging
from subluminal.ledger.query.records import ApprovalRecord
from subluminal.ledger.upkeep.retention import DAY_MS, Retention
from subluminal.trust.home_key import home_key

HOUR_MS = 3_600_000
ARGS = "ab" * 32


def granted(grant_id: str) -> bytes:
    return ALLOW[:-1] + b',"grant":{"grant_id":"%b","approver":"kim"}}' % grant_id.encode()


def ask(producer: Producer, approval_id: str, at_ms: int, args_hash: str = ARGS) -> None:
    call = CallRef(call_id="c1", server_name="git", tool_name="push", args_hash=args_hash)
    asked = ApprovalAsked(
        approval_id=approval_id,
        layer=Layer.USER,
        rule_id="ask",
        requirement=Requirement.APPROVAL,
        reason_code="APPROVAL_REQUIRED",
        severity=Severity.WARN,
        message="pushing is for people",
        requested_at=rfc3339(at_ms),
        expires_at=rfc3339(at_ms + DAY_MS),
    )
    producer.write(ApprovalRequested, at_ms, call=call, approval=asked)


def answer(producer: Producer, approval_id: str, at_ms: int, **fields: Any) -> None:
    given = {
        "answer": ApprovalAnswer.APPROVED,
        "by": "kim",
        "layer": Layer.USER,
        "rule_id": "ask",
        "server_name": "git",
        "tool_name": "push",
        "args_hash": ARGS,
        "approval_id": approval_id,
        **fields,
    }
    producer.write(ApprovalDecided, at_ms, approval=ApprovalGiven(**given))


def grant(grant_id: str, uses: int, until_ms: int) -> dict[str, Any]:
    return {"grant_id": grant_id, "uses": uses, "expires_at": rfc3339(until_ms)}


def kill(producer: Producer, at_ms: int, state: SwitchState = SwitchState.KILLED) -> None:
    switch = Switch(
        switch_id="s1", state=state, scope=StopScope.TOOL, target="git/push", by="kim", hard=True
    )
    producer.write(KillSwitch, at_ms, switch=switch)


def states(home: Home, at_ms: int = START_MS) -> dict[str, str]:
    page = find_approvals(home.reader(), Paging(), at_ms)
    return {each.approval_id: each.state for each in page.approvals}


def test_every_state(home: Home) -> None:
    producer, at = home.producer(), START_MS
    denied = {"answer": ApprovalAnswer.DENIED, "reason": "not on a Friday"}
    for name in ("pending", "approved", "denied", "used", "changed"):
        ask(producer, name, at, args_hash=name * 4)
    answer(producer, "approved", at, **grant("g1", 2, at + HOUR_MS))
    answer(producer, "denied", at, **denied)
    answer(producer, "used", at, **grant("g2", 1, at + HOUR_MS))
    answer(producer, "changed", at + 1, **denied)
    answer(producer, "changed", at, **grant("g3", 1, at + HOUR_MS))
    producer.begin(1, granted("g1"))
    producer.begin(1, granted("g2"))
    home.ingest()
    expected = {name: name for name in ("pending", "approved", "denied", "used")}
    assert states(home) == {**expected, "changed": "denied"}
    assert states(home, at + HOUR_MS) == {**expected, "approved": "expired", "changed": "denied"}
    assert states(home, at + DAY_MS)["pending"] == "expired"
    assert home.verify().findings == []
    (one,) = find_approvals(home.reader(), Paging(), at, (), ApprovalState.APPROVED).approvals
    assert one.answer is not None
    assert (one.answer.by, one.answer.uses, one.answer.used) == ("kim", 2, 1)
    assert (one.agent_id, one.message) == ("agent", "pushing is for people")


def test_a_repeated_call_extends_its_approval(home: Home) -> None:
    producer, at = home.producer(), START_MS
    producer.clock_ms = at - 7
    producer.begin(0, HINT, text="{}")
    home.ingest()
    ((args_hash,),) = home.rows("SELECT args_hash FROM tool_calls")
    ask(producer, "one", at, str(args_hash))
    producer.clock_ms = at + DAY_MS - HOUR_MS
    producer.begin(0, HINT, text="{}")
    home.ingest()
    assert states(home, at + DAY_MS) == {"one": "pending"}
    assert states(home, at + 2 * DAY_MS) == {"one": "expired"}
    # Asked anew: what is tried from then on is for the new one.
    ask(producer, "two", at + 2 * DAY_MS, str(args_hash))
    producer.clock_ms = at + 2 * DAY_MS + HOUR_MS
    producer.begin(0, HINT, text="{}")
    home.ingest()
    assert states(home, at + 2 * DAY_MS + HOUR_MS) == {"one": "expired", "two": "pending"}
    assert states(home, at + 3 * DAY_MS) == {"one": "expired", "two": "pending"}


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
def test_any_order_of_arrival_gives_the_same(home: Home, order: tuple[int, ...]) -> None:
    shims = [home.producer("run", f"shim{number}") for number in range(4)]
    ask(shims[0], "one", START_MS)
    ask(shims[1], "one", START_MS + 5)
    answer(shims[2], "one", START_MS + 6, **grant("g1", 1, START_MS + HOUR_MS))
    shims[3].begin(1, granted("g1"))
    for number in (0, 1):
        kill(shims[number], START_MS + number)
    kill(shims[2], START_MS + 9, SwitchState.REVIVED)
    by_shim = [
        [line for line in home.lines() if f'"shim{number}"'.encode() in line] for number in range(4)
    ]
    for number in order:
        assert home.take(by_shim[number]) == len(by_shim[number])
    (one,) = find_approvals(home.reader(), Paging(), START_MS + 10).approvals
    assert (one.state, one.requested_at) == ("used", rfc3339(START_MS))
    moved = find_switches(home.reader(), Paging()).switches
    assert {(each.state, each.moved_at) for each in moved} == {
        ("killed", rfc3339(START_MS)),
        ("revived", rfc3339(START_MS + 9)),
    }
    assert home.verify().findings == []
    assert home.take(home.lines()) == 0


@pytest.fixture
def full(home: Home) -> Home:
    producer = home.producer()
    ask(producer, "one", START_MS)
    answer(producer, "one", START_MS + 1, **grant("g1", 1, START_MS + HOUR_MS))
    call_id = producer.begin(1, granted("g1"))
    ref = CallRef(call_id=call_id, server_name="git", tool_name="push", args_hash=ARGS)
    refused = RefusedGrant(problem=GrantProblem.SPENT, detail="used", grant_id="g1")
    producer.write(GrantRefused, START_MS + 9, call=ref, grant=refused)
    kill(producer, START_MS + 10)
    home.ingest()
    assert home.verify().findings == []
    return home


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        ("UPDATE approvals SET rule_id = 'x'", "approvals: `one`: the row is missing, or was"),
        ("DELETE FROM approvals", "approvals: `one`: the row is missing"),
        ("UPDATE approval_answers SET decided_by = 'eve'", "approval_answers: `one run`: the row"),
        ("UPDATE approval_answers SET answer = 'denied'", "approval_answers"),
        ("DELETE FROM approval_answers", "approval_answers"),
        ("DELETE FROM grant_uses", "grant_uses: call `shim-00000001`"),
        ("INSERT INTO grant_uses VALUES ('g1', 77, 1)", "grant_uses: 1 rows: there is no event"),
        ("DELETE FROM grant_refusals", "grant_refusals"),
        ("UPDATE switches SET moved_by = 'eve'", "switches: `s1 killed`: the row is missing"),
        (
            "INSERT INTO switches VALUES (9, 's2', 'killed', 'all', NULL, 'eve', 0, NULL, 1, 1, 1)",
            "switches: `s2 killed`: there is no event for it",
        ),
    ],
)
def test_verify_finds_every_change(full: Home, sql: str, told: str) -> None:
    full.store.connection.execute(sql)
    found = [f"{each.table}: {each.row}: {each.message}" for each in full.verify().findings]
    assert any(told in each for each in found), found


def test_retention_takes_them_with_their_events(full: Home) -> None:
    later = full.producer("later", "later")
    later.clock_ms += 3 * DAY_MS
    later.call()
    full.ingest()
    retention = Retention(full.store.connection, 1, 1 << 40, home_key(full.places.state))
    while retention.step(START_MS + 3 * DAY_MS):
        full.store.forget()
    for table in ("approvals", "approval_answers", "grant_uses", "grant_refusals", "switches"):
        assert full.rows(f"SELECT count(*) FROM {table}") == [(0,)], table
    assert full.verify().findings == []


def test_an_event_that_cannot_be_stored_is_quarantined(home: Home) -> None:
    answer(home.producer(), "one", START_MS, **grant("g1", 1 << 63, START_MS))
    assert home.ingest() == 0
    assert home.rows("SELECT reason FROM quarantine") == [
        ("not an event: a number is out of range",)
    ]


def test_scripts_find_what_they_rely_on() -> None:
    """cli.md: the fields of `sub approvals --json`."""
    promised = (
        "approval_id run_id server_name tool_name args_hash args_preview rule_id reason_code "
        "requested_at expires_at state"
    )
    assert ApprovalRecord.__struct_fields__[:11] == tuple(promised.split())


def test_pages_and_filters(home: Home) -> None:
    producer = home.producer()
    for number in range(5):
        ask(producer, f"a{number}", START_MS + number)
    home.ingest()
    reader = home.reader()

    def found(text: str = "", **paging: Any) -> list[str]:
        said = parse_filter(text, now_ms=START_MS) if text else ()
        page = find_approvals(reader, Paging(**paging), START_MS, said)
        return [each.approval_id for each in page.approvals]

    assert found() == ["a4", "a3", "a2", "a1", "a0"]
    one = find_approvals(reader, Paging(limit=2), START_MS)
    assert found(cursor=one.next, limit=2) == ["a2", "a1"]
    assert found(newest_first=False, limit=2) == ["a0", "a1"]
    assert found("server:g* -tool:pull rule:ask,other client:custom") == found()
    assert found("run:elsewhere") == []
    assert found(f"since:{rfc3339(START_MS + 3)}") == ["a4", "a3"]
    with pytest.raises(InvalidQuery, match="cannot be filtered by `latency`"):
        found("latency>5")
    switches = [find_switches(reader, Paging(limit=1, cursor=cursor)) for cursor in (None, "1.1")]
    assert [page.switches for page in switches] == [[], []]


def test_the_ledger_agrees_with_the_home(
    home: Home, household: Household, person: Callable[..., str]
) -> None:
    """Real shims, real commands: asked, approved, used, denied, asked anew, killed, revived."""
    household.write_policy(asking())
    shim = household.start(SUB_AGENT_ID="fixer").ready()
    for branch in ("main", "other", "third"):
        shim.call("push", {"to": branch})
    main, other, third = (row["approval_id"] for row in waiting(person))
    person("approve", main, "--reason", "release")
    person("deny", other, "--reason", "no")
    assert shim.code("push", {"to": "main"}) == 0
    shim.call("push", {"to": "other"})
    live = {row["approval_id"]: row for row in waiting(person, "--all")}
    assert {name: row["state"] for name, row in live.items()} == {
        main: "used",
        other: "denied",
        third: "pending",
    }
    home.ingest()
    stored = {each.approval_id: each for each in approvals(home.reader())}
    assert stored.keys() == live.keys()
    for name, row in live.items():
        record = stored[name]
        shared = row.keys() & set(record.__struct_fields__) - {"answer", "expires_at"}
        assert {key: getattr(record, key) for key in shared} == {key: row[key] for key in shared}
    used = stored[main].answer
    assert used is not None
    assert (used.used, used.reason, used.by) == (1, "release", live[main]["answer"]["by"])
    person("kill", "--tool", "echo/push", "--reason", "enough")
    person("revive", "--tool", "echo/push")
    home.ingest()
    moved = find_switches(home.reader(), Paging(newest_first=False)).switches
    assert [(each.state, each.target) for each in moved] == [
        ("killed", "echo/push"),
        ("revived", "echo/push"),
    ]
    assert (moved[0].reason, moved[0].by) == ("enough", used.by)
    assert home.verify().findings == []
    home.restart()
    rows = [json.loads(line) for line in person("query", "approvals", "--json").splitlines()]
    assert {row["approval_id"]: row["state"] for row in rows} == {
        name: row["state"] for name, row in live.items()
    }


def approvals(reader: apsw.Connection) -> list[ApprovalRecord]:
    return find_approvals(reader, Paging(), now().wall_ms).approvals
