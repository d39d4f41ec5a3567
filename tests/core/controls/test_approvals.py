"""A run's approvals without a shim process: several layers, full disks."""

import os

import pytest
from tests.adapters.policies import deny, rule, snapshot
from tests.adapters.records import events_of
from tests.hosts import previewer

from subluminal.canonical import args_hash, encode
from subluminal.config.places import places
from subluminal.contracts.call import ToolCall
from subluminal.contracts.identity import Identity, Source
from subluminal.contracts.vocabulary import Layer, Transport
from subluminal.core.controls.approval_files import MAX_WAITING, ApprovalFiles, Slot
from subluminal.core.controls.approvals import Approvals
from subluminal.core.controls.grants import all_waiting, find_waiting, full_runs, issue_grant
from subluminal.core.controls.grants import deny as say_no
from subluminal.core.enforcer import Enforcer
from subluminal.core.gates import NO_GATES
from subluminal.core.runs.names import uuid7
from subluminal.core.runs.run import Run
from subluminal.errors import SubluminalError
from subluminal.journal import Journal
from subluminal.policy.evaluation import Engine
from subluminal.state.run_state import RunState


def asks(rule_id="ask", require="approval", **more):
    effect = {"action": "BLOCK", "reason_code": "X", "message": "not alone", "require": require}
    return rule(rule_id, "deny", {**effect, **more})


@pytest.fixture
def where(own_home):
    return places({}, str(own_home))


@pytest.fixture
def begin(where):
    """Returns a function that decides calls under these layers, as a shim of run `r` does."""
    opened = []

    def make(*layers):
        shim_id = uuid7()
        run = Run(
            "r",
            Identity(agent_id="fixer"),
            Source(host_id="h", proc_id="p", shim_id=shim_id),
            RunState.open(where.state, "r"),
            Journal(os.path.join(where.journal, "r"), shim_id, max_bytes=1 << 26),
        )
        engine = Engine(layers, Identity())
        shown = previewer()
        gates = NO_GATES._replace(open_approvals=lambda: Approvals(where.state, run, shown))
        enforcer = Enforcer(run, engine, shown, gates)
        run.enter(engine.mode, engine.policy)
        opened.append(run)

        def decide(args=None, *, large=False):
            call = ToolCall(
                server_name="git",
                tool_name="push",
                args=None if large else args or {},
                args_hash=args_hash(args or {}),
                bytes_in=1,
                transport=Transport.UNKNOWN,
            )
            return enforcer.begin(call, None if large else encode(args or {})).decision

        return decide

    yield make
    for run in opened:
        run.leave()
        run.close()


def approve(where, waiting, **more):
    return issue_grant(
        where, "r", waiting.slot, approval_id=waiting.approval_id, **more
    ).given.grant_id


def test_two_layers_that_ask_are_asked_for_at_once_and_both_are_needed(begin, where, own_home):
    decide = begin((Layer.USER, snapshot(asks())), (Layer.REPOSITORY, snapshot(asks())))
    assert decide().reason_code == "APPROVAL_REQUIRED"
    first, second = all_waiting(where)
    assert {first.slot.layer, second.slot.layer} == {"user", "repository"}
    grant = approve(where, first)
    assert decide().reason_code == "APPROVAL_REQUIRED"
    other = approve(where, second)
    assert decide().reason_code == "APPROVAL_GRANTED"
    assert decide().reason_code == "APPROVAL_REQUIRED", "both are spent"
    made = [event for event in events_of(own_home) if event["type"] == "tool_call_decision"]
    passed = made[2]["decision"]
    assert {each["grant_id"] for each in passed["grants"]} == {grant, other}
    assert passed["grant"] == passed["grants"][0]


def test_a_layer_that_denies_does_not_ask_for_approval(begin, where):
    decide = begin((Layer.USER, snapshot(asks())), (Layer.REPOSITORY, snapshot(deny("push"))))
    assert decide().action == "BLOCK"
    assert all_waiting(where) == []


def test_a_no_in_one_layer_is_enough(begin, where):
    decide = begin((Layer.USER, snapshot(asks())), (Layer.REPOSITORY, snapshot(asks("also"))))
    decide()
    first, second = all_waiting(where)
    approve(where, first)
    say_no(where, second, reason="never")
    refused = decide()
    assert (refused.action, refused.reason_code) == ("BLOCK", "APPROVAL_DENIED")
    assert "never" in refused.summary


def test_arguments_that_were_too_large_to_read_are_bound_by_their_hash(begin, where):
    decide = begin((Layer.USER, snapshot(asks())))
    decide(large=True)
    (waiting,) = all_waiting(where)
    assert waiting.request.args_preview == "[TRUNCATED]"
    assert waiting.request.is_cut
    approve(where, waiting)
    assert decide({"n": 1}, large=True).action == "REJECT_WITH_HINT"
    assert decide(large=True).action == "ALLOW"


def test_a_use_that_cannot_be_marked_does_not_pass(begin, where, own_home, monkeypatch):
    decide = begin((Layer.USER, snapshot(asks())))
    decide()
    (waiting,) = all_waiting(where)
    approve(where, waiting)

    def full(*_args):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(ApprovalFiles, "claim_use", full)
        assert decide().action == "REJECT_WITH_HINT"
    refused = [event for event in events_of(own_home) if event["type"] == "grant_refused"]
    assert [event["grant"]["problem"] for event in refused] == ["uncounted"]
    assert decide().action == "REJECT_WITH_HINT", "it was asked for anew"


def test_what_cannot_be_asked_is_refused_all_the_same(begin, where, monkeypatch):
    decide = begin((Layer.USER, snapshot(asks())))

    def full(*_args):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(ApprovalFiles, "put_request", full)
        assert decide().action == "REJECT_WITH_HINT"
    assert all_waiting(where) == []
    assert decide().action == "REJECT_WITH_HINT"
    assert len(all_waiting(where)) == 1


def test_a_lifted_rule_lets_every_call_of_the_tool_pass_and_says_by_whom(begin, where, own_home):
    """`sub promote --session`: the rule need not be one that asks for approval."""
    decide = begin((Layer.USER, snapshot(deny("push", rule_id="no"))))
    assert decide().action == "BLOCK"
    grant = issue_grant(where, "r", Slot("git", "push", None, "user", "no"), uses=None)
    assert [decide({"n": n}).action for n in range(3)] == ["ALLOW"] * 3
    events = events_of(own_home)
    made = [event["decision"] for event in events if event["type"] == "tool_call_decision"]
    assert {each["grant"]["grant_id"] for each in made[1:]} == {grant.given.grant_id}
    (given,) = [event for event in events if event["type"] == "approval_decided"]
    assert "uses" not in given["approval"]
    assert "args_hash" not in given["approval"]


def test_a_grant_needs_a_run_and_a_record(where, begin, monkeypatch):
    slot = Slot("git", "push", None, "user", "no")
    with pytest.raises(SubluminalError, match="no run"):
        issue_grant(where, "nobody", slot)
    begin((Layer.USER, snapshot(asks())))()
    monkeypatch.setattr("subluminal.core.controls.grants.record_act", lambda *_args, **_more: False)
    (waiting,) = all_waiting(where)
    with pytest.raises(SubluminalError, match="cannot be recorded"):
        approve(where, waiting)
    assert [each.state for each in all_waiting(where)] == ["pending"]


def test_an_id_that_begins_several_is_refused(where, begin, monkeypatch):
    decide = begin((Layer.USER, snapshot(asks())))
    decide({"n": 1})
    decide({"n": 2})
    with pytest.raises(SubluminalError, match="matches more than one"):
        find_waiting(where, "")


def test_looking_at_an_empty_home_makes_nothing(where, own_home):
    assert all_waiting(where) == []
    assert not own_home.exists()


def test_an_empty_id_names_nothing(where, begin):
    """As with `sub approve "$ID"` if ID is not set."""
    begin((Layer.USER, snapshot(asks())))()
    with pytest.raises(SubluminalError, match="matches more than one"):
        find_waiting(where, "")


def test_the_number_of_waiting_approvals_is_bounded(where, begin, own_home):
    """An agent that tries ever new arguments floods neither the disk nor the person."""
    decide = begin((Layer.USER, snapshot(asks())))
    for n in range(MAX_WAITING):
        decide({"n": n})
    assert full_runs(all_waiting(where)) == ["r"]
    for n in range(3):
        refused = decide({"more": n})
        assert refused.action == "REJECT_WITH_HINT"
        assert "no approval was requested" in refused.hint.retry_advice
    assert "this is approval" in decide({"n": 1}).hint.retry_advice, "it waits already"
    assert len(all_waiting(where)) == MAX_WAITING
    events = events_of(own_home)
    asked = [event for event in events if event["type"] == "approval_requested"]
    assert len(asked) == MAX_WAITING
    told = [event["hint"]["retry_advice"] for event in events if event["type"] == "hint_issued"]
    assert sum("no approval was requested" in each for each in told) == 3


def test_what_is_settled_makes_room_and_goes_on_to_hold(where, begin, monkeypatch):
    monkeypatch.setattr("subluminal.core.controls.asking._SWEEP_MS", 0)
    decide = begin((Layer.USER, snapshot(asks())))
    for n in range(MAX_WAITING):
        decide({"n": n})
    first, second, *_ = sorted(
        all_waiting(where), key=lambda each: int(each.request.args_preview[5:-1])
    )
    approve(where, first)
    assert "no approval was requested" in decide({"more": 1}).hint.retry_advice, (
        "it may be taken back"
    )
    assert decide({"n": 0}).action == "ALLOW"
    assert "this is approval" in decide({"more": 1}).hint.retry_advice, "it is used"
    assert "no approval was requested" in decide({"more": 2}).hint.retry_advice
    say_no(where, second)
    assert "this is approval" in decide({"more": 2}).hint.retry_advice
    assert decide({"n": 1}).reason_code == "APPROVAL_DENIED"
    assert "no approval was requested" in decide({"n": 0}).hint.retry_advice, (
        "a spent one stays spent"
    )


def test_without_a_key_no_approval_is_requested_and_the_rule_decides(where, begin, own_home):
    """This is not an error of the decision: `decision_on_error` may be ALLOW."""
    decide = begin((Layer.USER, snapshot(asks(), decision_on_error="ALLOW")))
    os.makedirs(os.path.join(where.state, "seal.key"))
    refused = decide()
    assert (refused.action, refused.reason_code) == ("REJECT_WITH_HINT", "APPROVAL_REQUIRED")
    assert "cannot be stored" in refused.hint.retry_advice
    (told,) = [event for event in events_of(own_home) if event["type"] == "grant_refused"]
    assert "cannot be read" in told["grant"]["detail"]
