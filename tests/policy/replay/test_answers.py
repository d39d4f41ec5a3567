"""Approvals in replay: grants and denials count again, but only if a rule asks (no-call-waits)."""

import msgspec
import pytest
from msgspec import UNSET
from tests.policy.bundles import bundle, rule, tools
from tests.policy.replay.runs import Record, changes, said_outside
from tests.requirements import requirement

from subluminal.contracts.decision import GrantRef
from subluminal.contracts.vocabulary import Action, Layer, ReasonCode, Requirement, Severity
from subluminal.policy.compiling import compile_bundle
from subluminal.policy.snapshot import Snapshot

USER, REPOSITORY = Layer.USER, Layer.REPOSITORY


def policy(*rules, **more) -> Snapshot:
    return compile_bundle(bundle(*rules, **more))


ASK = rule("deny", "ask", require="approval")
ASKS = policy(ASK)
EMPTY = policy()


def asked_and_granted(**more) -> Record:
    record = Record((USER, ASKS))
    record.call()
    record.answer("approved", "ask", grant_id="g", **more)
    record.call()
    return record


def test_a_grant_that_was_used_is_used_again():
    record = asked_and_granted(uses=1)
    assert record.items[1].decision.said.reason_code == ReasonCode.APPROVAL_GRANTED
    assert changes(record.replay(ASKS)[0]) == ["same", "same"]
    renamed = policy(rule("deny", "ask2", require="approval"))
    assert changes(record.replay(renamed)[0]) == ["changed", "newly_blocked"]


def test_a_candidate_that_replaces_a_layer_uses_its_answers_by_rule_id():
    assert changes(asked_and_granted(uses=1).replay(policy(ASK, policy_id="new"))[0]) == [
        "same",
        "same",
    ]


def test_an_answer_for_another_layer_with_the_same_rule_id_is_ignored():
    record = Record((USER, ASKS), (REPOSITORY, policy(ASK, policy_id="repo")))
    record.answer("approved", "ask", grant_id="g", layer=USER)
    record.granted = ""
    record.call()
    rows, _, _ = record.replay(policy(ASK, policy_id="repo"))
    assert [row.now.reason_code for row in rows] == [ReasonCode.APPROVAL_REQUIRED]


def test_a_grant_is_spent_and_expires():
    """By the replay's own count: a call that the candidate refuses uses no grant."""
    record = asked_and_granted(uses=1)
    record.granted = ""
    record.call()
    assert changes(record.replay(ASKS)[0]) == ["same"] * 3
    without = policy(rule("deny", "push", match=tools("push")))
    assert changes(record.replay(without)[0]) == ["changed", "newly_blocked", "changed"]
    record = Record((USER, EMPTY))
    record.answer("approved", "ask", grant_id="g", uses=1, expires_ms=3)
    record.call()
    record.call()
    rows, _, _ = record.replay(ASKS)
    assert changes(rows) == ["changed", "newly_blocked"]
    assert rows[0].now.reason_code == ReasonCode.APPROVAL_GRANTED
    record = Record((USER, EMPTY))
    record.answer("approved", "ask", grant_id="g", expires_ms=3)
    record.call()
    record.call()
    assert changes(record.replay(ASKS)[0]) == ["changed", "newly_blocked"]


def test_a_grant_passes_its_rule_and_no_other():
    """There was a grant, but a budget refused: the agent was told of the budget."""
    own = policy(ASK, rule("budget", limit_calls=1), rule("breaker", repeat_threshold=2))
    record = Record((USER, own))
    record.answer("approved", "ask", grant_id="g", uses=5)
    record.call()
    record.call()
    record.call()
    assert [row.call.decision.said.reason_code for row in record.replay(own)[0]][1:] == [
        ReasonCode.BUDGET_EXCEEDED
    ] * 2
    assert changes(record.replay(own)[0]) == ["same"] * 3


def test_a_rule_that_is_lifted_for_the_run_does_not_ask():
    own = policy(rule("deny", "no-push", match=tools("push")), rule("dedupe"))
    record = Record((USER, own))
    record.call()
    record.answer("approved", "no-push", grant_id="g", for_run=True)
    record.call()
    record.call()
    assert [item.decision.said.action for item in record.items if hasattr(item, "decision")] == [
        "BLOCK",
        "ALLOW",
        "BLOCK",  # dedupe: a lifted rule exempts from nothing else
    ]
    assert changes(record.replay(own)[0]) == ["same"] * 3


def test_a_grant_for_one_call_does_not_pass_a_rule_that_never_asks():
    record = asked_and_granted()
    denies = policy(rule("deny", "ask"))
    assert changes(record.replay(denies)[0]) == ["changed", "newly_blocked"]


@pytest.mark.parametrize("answers", [True, False])
def test_a_denial_holds_while_the_rule_asks(answers):
    """Also if only the call itself records the denial."""
    record = Record((USER, ASKS))
    record.answer("denied", "ask")
    record.granted = ""
    denied = said_outside(ReasonCode.APPROVAL_DENIED, policies=record.engine.policies)
    severity = record.layers[0][1].data["rules"][0]["severity"]
    record.call(event=msgspec.structs.replace(denied, rule_id="ask", severity=severity))
    assert changes(record.replay(ASKS, answers=answers)[0]) == ["same"]
    assert changes(record.replay(EMPTY, answers=answers)[0]) == ["newly_allowed"]


def test_a_denial_counts_if_the_record_of_the_call_has_none():
    record = Record((USER, EMPTY))
    record.answer("denied", "ask")
    record.granted = ""
    record.call()
    rows, _, _ = record.replay(ASKS)
    assert rows[0].now.reason_code == ReasonCode.APPROVAL_DENIED
    ends = policy(ASK, rule("budget", limit_calls=0, on_exceed="TERMINATE_RUN"))
    rows, _, _ = record.replay(ends)
    assert rows[0].now.reason_code == ReasonCode.BUDGET_EXCEEDED


def test_a_grant_that_only_the_call_records_is_used():
    assert changes(asked_and_granted(uses=1).replay(ASKS, answers=False)[0]) == ["same", "same"]


def test_several_grants_are_read():
    record = asked_and_granted()
    several = msgspec.structs.replace(
        said_outside("X"),
        grant=GrantRef(grant_id="a", approver="me"),
        grants=[GrantRef(grant_id="a", approver="me"), GrantRef(grant_id="b", approver="me")],
    )
    record.call(event=several)
    assert record.items[-1].decision.grants == {"a", "b"}
    assert several.policies is UNSET


def test_the_clock_of_the_answer_counts_and_the_record_of_a_use_before_it():
    record = Record((USER, ASKS))
    record.answer("approved", "ask", grant_id="g", uses=1)
    record.call()
    late = record.answers[0]._replace(at_ms=record.now_ms + 1_000)
    record.answers = [late]
    assert changes(record.replay(ASKS)[0]) == ["same"]
    record = Record((USER, EMPTY))
    record.call()
    record.answers = [late]
    assert changes(record.replay(ASKS)[0]) == ["newly_blocked"]


LIMITS = {
    "budget": rule("budget", "limit", limit_calls=1),
    "rate_limit": rule("rate_limit", "limit", capacity=1, refill_tokens=1, refill_period_ms=10**6),
    "breaker": rule("breaker", "limit", repeat_threshold=2, repeat_window_ms=10**6),
    "dedupe": rule("dedupe", "limit", window_ms=10**6),
}


def limited_and_granted(kind) -> Record:
    """The second call is refused, the third one passes with a grant, the fourth is refused again."""
    record = Record((USER, policy(LIMITS[kind])))
    record.call()
    record.call()
    record.answer("approved", "limit", grant_id="g", uses=1)
    record.call()
    record.granted = ""
    record.call()
    return record


@pytest.mark.parametrize("kind", LIMITS)
def test_a_grant_for_a_limit_is_used_again(kind):
    record = limited_and_granted(kind)
    actions = [item.decision.said.action for item in record.items if hasattr(item, "decision")]
    assert [action == "ALLOW" for action in actions] == [True, False, True, False]
    for candidate in (policy(LIMITS[kind]), policy(LIMITS[kind], policy_id="new")):
        assert changes(record.replay(candidate)[0]) == ["same"] * 4
    renamed = policy({**LIMITS[kind], "rule_id": "other"})
    assert changes(record.replay(renamed)[0])[2] == "newly_blocked"


def test_a_grant_for_a_limit_whose_answer_is_not_on_record_counts_by_the_decision():
    record = limited_and_granted("budget")
    assert changes(record.replay(policy(LIMITS["budget"]), answers=False)[0]) == ["same"] * 4


def test_a_denial_lets_no_call_pass_a_limit():
    """It was given when the rule of this name asked for approval."""
    record = Record((USER, policy(LIMITS["budget"])))
    record.answer("denied", "limit")
    record.call()
    found = record.replay(policy(rule("budget", "limit", limit_calls=0)))[0]
    assert found[0].now.reason_code == ReasonCode.BUDGET_EXCEEDED


@requirement("trust:grant-fits")
@pytest.mark.parametrize("required", ["ticket", "step_up", "human"])
def test_a_grant_passes_a_stricter_rule_only_if_it_fits(required):
    """As the shim does: the person was asked for an approval, or for what the rule requires."""
    stricter = policy(rule("deny", "ask", require=required))
    fits = {"approval": "newly_blocked", required: "changed", None: "newly_blocked"}
    for met, change in fits.items():
        record = Record((USER, EMPTY))
        given = {} if met is None else {"requirement": Requirement(met)}
        record.answer("approved", "ask", grant_id="g", uses=5, **given)
        record.call()
        assert changes(record.replay(stricter)[0]) == [change], met


def asked_by_client(*layers) -> Record:
    """A call that the client asked its person about, and that then ran."""
    record = Record(*layers)
    event = said_outside(ReasonCode.CLIENT_ASKED, Action.ALLOW, record.engine.policies)
    record.call(event=msgspec.structs.replace(event, rule_id="ask", severity=Severity.WARN))
    return record


def test_what_the_client_asked_its_person_passes_again():
    rows, _, _ = asked_by_client((USER, ASKS)).replay(ASKS)
    assert [row.now.reason_code for row in rows] == [ReasonCode.CLIENT_ASKED]
    assert changes(rows) == ["same"]


@pytest.mark.parametrize("required", ["ticket", "step_up", "human"])
def test_a_client_cannot_ask_for_everything(required):
    stricter = policy(rule("deny", "ask", require=required))
    assert changes(asked_by_client((USER, ASKS)).replay(stricter)[0]) == ["newly_blocked"]


def test_a_client_does_not_ask_for_managed_rules():
    rows, _, _ = asked_by_client((Layer.MANAGED, ASKS)).replay(ASKS)
    assert changes(rows) == ["newly_blocked"]
