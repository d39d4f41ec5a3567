"""What a person's yes covers, and what happens while a pack decides: grants, levels, rewrites."""

import os
from pathlib import Path
from typing import Any

import pytest
from tests.adapters.in_process.conftest import Till
from tests.adapters.in_process.paying import AMOUNTS, KIND, paying
from tests.adapters.in_process.test_door import approve, audits, decisions
from tests.adapters.policies import bundle, rule
from tests.adapters.records import calls_of
from tests.requirements import requirement

from subluminal.canonical import args_hash, encode
from subluminal.config.places import places
from subluminal.contracts.call import ToolCall
from subluminal.contracts.vocabulary import Transport
from subluminal.core.controls.grants import all_waiting
from subluminal.kernel import Decision, IntentEnvelope, RequestConfirmation, basis, named
from subluminal.wiring import open_host

WHY = (basis("business", "rule_violated"),)


def confirm_ten(envelope: IntentEnvelope, _state: Any) -> Decision | None:
    return RequestConfirmation("Pay 10?", WHY) if envelope.payload["amount"] == 10 else None


def ask_for_customer(_envelope: IntentEnvelope, state: Any) -> Decision:
    return RequestConfirmation(f"Pay {state['customer']}?", WHY)


def waiting(home: Path) -> list[str]:
    found = all_waiting(places({"SUB_HOME": str(home)}))
    return [each.request.approval.message for each in found if each.state == "pending"]


def deny_ten() -> dict[str, Any]:
    effect = {"action": "BLOCK", "reason_code": "DENYLIST_MATCH", "message": "not ten"}
    return rule("not-ten", "deny", effect, args={"key_equals": {"amount": 10}})


@requirement("kernel:confirmation")
def test_a_yes_that_the_pack_has_not_heard_of_lets_nothing_pass(
    till: Till, monkeypatch: pytest.MonkeyPatch
):
    """It came after the look for it. The pack has not said EXECUTE, and nothing is claimed."""

    def late(*_call: Any) -> None:
        approve(till.home)

    monkeypatch.setattr("subluminal.sdk.kernel.find_confirmation", late)
    till.execute("REQUEST_CONFIRMATION")
    between = till.execute("REQUEST_CONFIRMATION")
    assert (between.action, till.paid) == ("REJECT_WITH_HINT", [])
    monkeypatch.undo()
    monkeypatch.setenv("SUB_HOME", str(till.home))
    till.open()
    approve(till.home)
    assert till.execute("REQUEST_CONFIRMATION").reason_code == "APPROVAL_GRANTED"
    assert till.execute("REQUEST_CONFIRMATION").reason_code == "ledger_replay_suppressed"
    assert till.paid == [AMOUNTS["REQUEST_CONFIRMATION"]]


@requirement("kernel:confirmation")
def test_what_a_pack_rewrites_and_a_person_confirms_runs_once(till: Till):
    till.pack = paying(state_guards=(named("confirm_ten", confirm_ten),))
    assert till.execute("REWRITE", "n").reason_code == "CONFIRMATION_REQUIRED"
    approve(till.home)
    done = till.execute("REWRITE", "n")
    assert (done.reason_code, till.paid) == ("APPROVAL_GRANTED", [10])
    assert till.execute("REWRITE", "n").reason_code == "ledger_replay_suppressed"
    assert till.paid == [10]
    kinds = [each["decision"]["kind"] for each in audits(till.events())]
    assert kinds[2:4] == ["REWRITE", "EXECUTE"]


@requirement("kernel:confirmation")
def test_a_yes_answers_the_question_that_was_asked(till: Till):
    till.pack = paying(state_guards=(named("ask_for_customer", ask_for_customer),))
    till.execute("EXECUTE", state={"customer": "Ann"})
    approve(till.home)
    other = till.execute("EXECUTE", state={"customer": "Mallory"})
    assert (other.reason_code, till.paid) == ("CONFIRMATION_REQUIRED", [])
    assert waiting(till.home) == ["a person must confirm this call: Pay Mallory?"]
    approve(till.home)
    done = till.execute("EXECUTE", state={"customer": "Mallory"})
    assert (done.reason_code, till.paid) == ("APPROVAL_GRANTED", [5])


def test_deciding_uses_no_grant_up(till: Till):
    till.execute("REQUEST_CONFIRMATION", "n")
    approve(till.home)
    payload = {"amount": AMOUNTS["REQUEST_CONFIRMATION"]}
    assert till.door.decide(KIND, payload, state={}, nonce="n").action == "ALLOW"
    assert till.execute("REQUEST_CONFIRMATION", "n").reason_code == "APPROVAL_GRANTED"
    assert till.door.decide(KIND, payload, state={}, nonce="m").action == "REJECT_WITH_HINT"


def test_a_grant_that_is_used_up_confirms_nothing(till: Till):
    till.execute("REQUEST_CONFIRMATION", "a")
    approve(till.home)
    till.execute("REQUEST_CONFIRMATION", "a")
    till.execute("REQUEST_CONFIRMATION", "b")
    events = till.events()
    assert decisions(events)[-1]["kernel"]["kind"] == "REQUEST_CONFIRMATION"
    assert audits(events)[-1]["decision"]["kind"] == "REQUEST_CONFIRMATION"


@requirement("kernel:untrusted-never-executes")
def test_a_run_that_is_lowered_while_the_pack_decides(till: Till):
    def read_the_web(_envelope: IntentEnvelope, state: Any) -> None:
        if state.get("reads"):
            till.door.lower_taint("UNTRUSTED", source="web page")

    till.pack = paying(state_guards=(named("read_the_web", read_the_web),), trusted=(KIND,))
    assert till.execute("EXECUTE", "a", principal="user").action == "ALLOW"
    done = till.execute("EXECUTE", "b", principal="user", state={"reads": True})
    assert (done.action, till.paid) == ("BLOCK", [5])
    assert "try again" in done.message
    again = till.execute("EXECUTE", "b", principal="user")
    assert (again.reason_code, till.paid) == ("taint_level_insufficient", [5])


@requirement("kernel:strictest")
def test_policies_decide_about_what_would_run(till: Till):
    till.write_policy(bundle(deny_ten()))
    done = till.execute("REWRITE")
    assert (done.reason_code, till.paid) == ("DENYLIST_MATCH", [])
    ((start, *_),) = calls_of(till.events())
    assert start["call"]["preview"]["args_preview"] == '{"amount":10}'


@requirement("kernel:strictest")
def test_what_another_door_allowed_is_still_the_packs_to_decide(till: Till):
    """A hook of the same run offers the very call to later doors."""
    till.execute("EXECUTE")
    args = {"amount": AMOUNTS["REFUSE"]}
    environ = {**os.environ, "SUB_HOME": str(till.home)}
    host = open_host(places(environ), environ=environ, run_id="run-1")
    try:
        call = ToolCall(
            server_name="pay",
            tool_name=KIND,
            args=args,
            args_hash=args_hash(args),
            bytes_in=1,
            transport=Transport.UNKNOWN,
        )
        host.offer(host.begin(call, encode(args)), by_run=True)
        till.open()
        done = till.execute("REFUSE")
    finally:
        host.close()
    assert (done.reason_code, till.paid) == ("pay.too_much", [5])
