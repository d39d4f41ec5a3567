"""The door of the kernel: what is decided, what runs, what is on record, in which order."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.adapters.in_process.conftest import Till
from tests.adapters.in_process.paying import AMOUNTS, KIND, paying
from tests.adapters.policies import budget, bundle, deny, rule
from tests.adapters.records import calls_of, events_of
from tests.requirements import requirement

from subluminal.config.places import places
from subluminal.core.controls.grants import all_waiting, find_waiting, issue_grant
from subluminal.core.controls.stops import lift_stop, set_stop
from subluminal.errors import NotExecuted, SubluminalError
from subluminal.kernel import Defer, Escalate, basis, verify_audit_record
from subluminal.kernel.executions import ExecutionStatus
from subluminal.sdk import open_kernel

GOLDEN = Path(__file__).parents[2] / "cases" / "in_process" / "decisions.json"


def decisions(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [event["decision"] for event in events if event["type"] == "tool_call_decision"]


def audits(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [event["audit"] for event in events if event["type"] == "audit_record"]


def approve(home: Path) -> None:
    where = places({"SUB_HOME": str(home)})
    for waiting in all_waiting(where):
        issue_grant(
            where,
            waiting.request.run_id,
            waiting.slot,
            requirement=waiting.request.approval.requirement,
            approval_id=waiting.approval_id,
        )


@requirement("kernel:six-decisions")
def test_what_the_model_sees_of_each_decision(till: Till):
    """Golden: action, reason code and sentence of all six decisions."""
    seen = {}
    for name in AMOUNTS:
        done = till.execute(name)
        said = re.sub(r"approval [0-9a-f]{12}", "approval ID", done.message)
        seen[name] = {
            "action": done.action,
            "reason_code": done.reason_code,
            "message": said,
            "kind": None if done.decision is None else done.decision.kind,
            "result": done.result,
        }
    assert seen == json.loads(GOLDEN.read_text())
    assert till.paid == [5, 10]


@requirement("kernel:records")
def test_the_decision_of_the_pack_is_on_record(till: Till):
    done = till.execute("REFUSE")
    (decided,) = decisions(till.events())
    kernel = decided["kernel"]
    assert done.decision is not None
    assert done.record is not None
    assert decided["policy"]["policy_id"] == "pack:pay"
    assert decided["policy"]["policy_hash"] == kernel["fingerprint"]
    assert decided["policy"]["policy_version"] == kernel["version"] == "1.2.0"
    assert kernel == {
        "pack": "pay",
        "version": "1.2.0",
        "fingerprint": kernel["fingerprint"],
        "intent_kind": KIND,
        "intent_hash": done.record.intent_hash,
        "kind": "REFUSE",
        "basis": [f"{each.category}:{each.code}" for each in done.decision.basis],
        "refusal_code": "pay.too_much",
        "guard": "judge_amount",
        "taint": "UNTRUSTED",
    }


@requirement("kernel:journal-first")
def test_everything_is_on_record_before_the_handler_runs(till: Till):
    seen: list[str] = []

    def look(_envelope: Any) -> None:
        seen.extend(event["type"] for event in events_of(till.home))

    till.on_pay = look
    till.execute("EXECUTE")
    assert seen[-3:] == ["tool_call_start", "tool_call_decision", "audit_record"]


def test_the_call_is_a_call_of_the_run(till: Till):
    till.execute("EXECUTE")
    events = till.events()
    ((start, decision, end),) = calls_of(events)
    assert start["call"]["transport"] == "in_process"
    assert (start["call"]["server_name"], start["call"]["tool_name"]) == ("pay", KIND)
    assert start["call"]["preview"]["args_preview"] == '{"amount":5}'
    assert decision["decision"]["kernel"]["kind"] == "EXECUTE"
    assert (end["status"], end["preview"]["result_preview"]) == ("OK", '{"ok":true}')
    assert {event["run_id"] for event in events} == {"run-1"}


def test_the_audit_record_verifies_and_names_the_state(till: Till):
    till.execute("EXECUTE")
    (audit,) = audits(till.events())
    from subluminal.kernel import decode_audit_record

    assert verify_audit_record(decode_audit_record(json.dumps(audit).encode())).verified is True
    assert re.fullmatch("[0-9a-f]{64}", audit["metadata"]["state_hash"])
    assert "state" not in audit["metadata"]


# Executions


@requirement("kernel:once")
def test_an_intent_runs_once(till: Till):
    first = till.execute("EXECUTE", "order-1")
    again = till.execute("EXECUTE", "order-1")
    other = till.execute("EXECUTE", "order-2")
    assert [first.action, again.action, other.action] == ["ALLOW", "BLOCK", "ALLOW"]
    assert again.reason_code == "ledger_replay_suppressed"
    assert "was executed before" in again.message
    assert again.ledger_hit is not None
    assert again.ledger_hit.status is ExecutionStatus.DONE
    assert till.paid == [5, 5]
    assert [each["kernel"]["kind"] for each in decisions(till.events())] == [
        "EXECUTE",
        "REFUSE",
        "EXECUTE",
    ]


def test_a_rewritten_intent_is_what_runs_and_is_claimed(till: Till):
    done = till.execute("REWRITE", "n")
    again = till.execute("REWRITE", "n")
    assert (done.action, till.paid) == ("ALLOW", [10])
    assert (again.action, again.reason_code) == ("BLOCK", "ledger_replay_suppressed")
    events = till.events()
    first, second, *_ = audits(events)
    assert [first["decision"]["kind"], second["decision"]["kind"]] == ["REWRITE", "EXECUTE"]
    assert second["supersedes"]["reason"] == "rewrite_executed"
    start = calls_of(events)[0][0]
    assert start["call"]["preview"]["args_preview"] == '{"amount":10}'


@requirement("kernel:once")
@pytest.mark.parametrize("principal", ["llm", "user", "system"])
@pytest.mark.parametrize("amount", ["EXECUTE", "REWRITE"])
def test_a_retry_at_a_lower_level_runs_nothing(till: Till, principal: str, amount: str):
    """The hash covers the level, which is the run's: the intent is the same."""
    assert till.execute(amount, principal=principal).action == "ALLOW"
    for level in ("TRUSTED", "UNTRUSTED"):
        till.door.lower_taint(level, source="web page")
        again = till.execute(amount, principal=principal)
        assert again.reason_code == "ledger_replay_suppressed"
        assert again.ledger_hit is not None
        assert again.ledger_hit.status is ExecutionStatus.DONE
    assert len(till.paid) == 1


@requirement("kernel:not-executed")
def test_not_executed_lets_the_intent_run_again(till: Till):
    def fails(_envelope: Any) -> None:
        raise NotExecuted("the bank is closed")

    till.on_pay = fails
    with pytest.raises(NotExecuted, match="the bank is closed"):
        till.execute("EXECUTE")
    till.on_pay = lambda _: "paid"
    assert till.execute("EXECUTE").result == "paid"
    first, second = (call[-1] for call in calls_of(till.events()))
    assert (first["status"], second["status"]) == ("CANCELLED", "OK")
    assert "the bank is closed" in first["error"]["message"]


@requirement("kernel:unknown")
@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt, SystemExit])
def test_after_another_exception_the_outcome_is_unknown(till: Till, error: type[BaseException]):
    def fails(_envelope: Any) -> None:
        raise error

    till.on_pay = fails
    with pytest.raises(error):
        till.execute("EXECUTE")
    again = till.execute("EXECUTE")
    assert again.ledger_hit is not None
    assert again.ledger_hit.status is ExecutionStatus.UNKNOWN
    assert "nobody knows whether it was executed" in again.message
    assert len(till.paid) == 1
    assert calls_of(till.events())[0][-1]["status"] == "ERROR"


def test_deciding_claims_and_runs_nothing(till: Till):
    decided = till.door.decide(KIND, {"amount": 5}, state={}, nonce="n")
    refused = till.door.decide(KIND, {"amount": 105}, state={}, nonce="n")
    assert (decided.action, refused.action) == ("ALLOW", "BLOCK")
    assert till.execute(5, "n").action == "ALLOW"
    assert till.paid == [5]


def test_the_packs_own_handler_runs(till: Till):
    from msgspec.structs import replace

    till.pack = replace(till.pack, handlers={KIND: lambda envelope: envelope.payload["amount"]})
    assert till.execute("EXECUTE", handler=None).result == 5
    with pytest.raises(SubluminalError, match=r"there is no handler for `pay\.in`"):
        till.execute("EXECUTE", kind="pay.in", handler=None)


async def _later(_envelope: Any) -> None:
    """A handler that nobody would await."""


def test_a_coroutine_is_no_handler(till: Till):
    with pytest.raises(SubluminalError, match="coroutine"):
        till.execute("EXECUTE", handler=_later)
    assert calls_of(till.events()) == []


@requirement("kernel:unknown")
def test_a_coroutine_is_no_result(till: Till):
    """What it would have done, and what was done before it, nobody knows: it is not `done`."""
    till.on_pay = _later
    with pytest.raises(SubluminalError, match="returned something to await"):
        till.execute("EXECUTE")
    again = till.execute("EXECUTE")
    assert again.ledger_hit is not None
    assert again.ledger_hit.status is ExecutionStatus.UNKNOWN
    assert calls_of(till.events())[0][-1]["status"] == "ERROR"


# Policies and stops


@requirement("kernel:strictest")
def test_pack_and_policies_are_all_asked(till: Till):
    till.write_policy(bundle(deny("pay.out"), budget(3)))
    done = till.execute("EXECUTE")
    assert (done.action, done.reason_code, till.paid) == ("BLOCK", "DENYLIST_MATCH", [])
    # The pack's BLOCK goes before the policy's on a tie; both are counted.
    assert till.execute("REFUSE").reason_code == "pay.too_much"
    assert till.execute("DEFER").reason_code == "DENYLIST_MATCH"
    first, second, third = decisions(till.events())
    assert first["policy"]["policy_id"] == third["policy"]["policy_id"] == "test"
    assert second["policy"]["policy_id"] == "pack:pay"
    assert [each["layer"] for each in first["policies"]] == ["pack", "user"]
    assert third["kernel"]["kind"] == "DEFER"


def test_what_a_policy_refuses_is_not_claimed(till: Till):
    till.write_policy(bundle(budget(1)))
    assert till.execute("EXECUTE", "a").action == "ALLOW"
    assert till.execute("EXECUTE", "b").reason_code == "BUDGET_EXCEEDED"
    till.write_policy(bundle())
    till.open()
    assert till.execute("EXECUTE", "b").action == "ALLOW"


def test_if_all_allow_the_reason_is_the_policys(till: Till):
    effect = {"action": "ALLOW", "reason_code": "PAYMENTS_OK", "message": "fine"}
    till.write_policy(bundle(rule("ok", "allow", effect, tool_name={"glob": ["pay.*"]})))
    done = till.execute("EXECUTE")
    assert (done.action, done.reason_code) == ("ALLOW", "PAYMENTS_OK")


def test_observe_mode_does_not_weaken_the_pack(till: Till):
    till.write_policy(bundle(deny("pay.*"), mode="observe"))
    assert till.execute("EXECUTE").action == "ALLOW"
    assert till.execute("REFUSE").action == "BLOCK"


@requirement("kernel:stops")
def test_a_stop_holds_and_can_be_lifted(till: Till):
    state = places({"SUB_HOME": str(till.home)}).state
    till.execute("EXECUTE", "a")
    set_stop(state, "tool", "pay/pay.out", by="ada", reason="fraud", hard=False)
    done = till.execute("EXECUTE", "b")
    assert (done.action, done.reason_code, till.paid) == ("BLOCK", "KILL_SWITCH", [5])
    lift_stop(state, "tool", "pay/pay.out")
    assert till.execute("EXECUTE", "b").action == "ALLOW"


@requirement("kernel:env-switch")
@pytest.mark.parametrize(("word", "stops"), [("1", True), ("On", True), ("0", False), ("", False)])
def test_the_environment_can_pull_the_switch(till: Till, monkeypatch: Any, word: str, stops: bool):
    monkeypatch.setenv("SUB_KILL_SWITCH", word)
    done = till.execute("EXECUTE")
    expected = ("TERMINATE_RUN", "KILL_SWITCH") if stops else ("ALLOW", "DEFAULT_ALLOW")
    assert (done.action, done.reason_code) == expected
    assert till.paid == ([] if stops else [5])


def test_the_switch_of_the_context_refuses_and_is_on_record(till: Till):
    from subluminal.kernel import Kill, RuntimeContext

    context = RuntimeContext(id="tenant-1")
    till.open(context=context)
    assert till.execute("EXECUTE", "a").action == "ALLOW"
    context.set_kill_switch(Kill("fraud", "2026-01-01T00:00:00.000Z"))
    done = till.execute("EXECUTE", "b")
    assert (done.action, done.reason_code) == ("BLOCK", "KILL_SWITCH")
    context.set_kill_switch(None)
    assert till.execute("EXECUTE", "b").action == "ALLOW"
    assert decisions(till.events())[1]["kernel"]["refusal_code"] == "kill_switch_active"


# People


@requirement("kernel:confirmation")
@pytest.mark.parametrize("kind", ["ESCALATE", "REQUEST_CONFIRMATION"])
def test_the_grant_is_the_confirmation(till: Till, kind: str):
    asked = till.execute(kind)
    assert asked.action == "REJECT_WITH_HINT"
    approve(till.home)
    done = till.execute(kind)
    assert (done.action, done.reason_code) == ("ALLOW", "APPROVAL_GRANTED")
    assert till.paid == [AMOUNTS[kind]]
    assert till.execute(kind).reason_code == "ledger_replay_suppressed"
    # Another nonce is another intent, and the grant is used up.
    assert till.execute(kind, "another").action == "REJECT_WITH_HINT"
    events = till.events()
    _, confirmed, *_ = audits(events)
    assert confirmed["decision"]["kind"] == "EXECUTE"
    assert confirmed["decision_basis"][-1]["category"] == "confirmation"
    assert confirmed["supersedes"]["reason"] == "confirmation_resolved"
    granted = decisions(events)[1]
    assert granted["grant"]["grant_id"] == confirmed["supersedes"]["token"]
    assert granted["kernel"]["kind"] == "EXECUTE"


@requirement("kernel:untrusted-never-executes")
def test_no_grant_lifts_the_taint_gate(till: Till):
    def always(_envelope: Any, _state: Any) -> Any:
        return Escalate("human", "odd", (basis("state", "transition_illegal"),))  # type: ignore[arg-type]

    till.pack = paying(state_guards=(always,), trusted=(KIND,))
    refused = ("BLOCK", "taint_level_insufficient")
    first = till.execute("EXECUTE")
    assert (first.action, first.reason_code) == refused
    assert all_waiting(places({"SUB_HOME": str(till.home)})) == []  # no person could help
    assert till.execute("EXECUTE", principal="user").reason_code == "HUMAN_REQUIRED"
    approve(till.home)
    again = till.execute("EXECUTE")
    assert (again.action, again.reason_code, till.paid) == (*refused, [])
    assert till.execute("EXECUTE", principal="user").reason_code == "APPROVAL_GRANTED"
    assert till.paid == [5]


def test_a_no_stands(till: Till):
    from subluminal.core.controls.grants import deny as say_no

    till.execute("ESCALATE")
    where = places({"SUB_HOME": str(till.home)})
    (waiting,) = all_waiting(where)
    say_no(where, find_waiting(where, waiting.approval_id), reason="not today")
    done = till.execute("ESCALATE")
    assert (done.action, done.reason_code, till.paid) == ("BLOCK", "APPROVAL_DENIED", [])


# Taint


@requirement("kernel:caps")
@pytest.mark.parametrize(
    ("principal", "taint", "level"),
    [
        ("llm", None, "UNTRUSTED"),
        ("llm", "SYSTEM", "UNTRUSTED"),
        ("user", None, "TRUSTED"),
        ("user", "UNTRUSTED", "UNTRUSTED"),
        ("system", None, "SYSTEM"),
        ("system", "TRUSTED", "TRUSTED"),
    ],
)
def test_a_principal_caps_the_level(till: Till, principal: str, taint: str | None, level: str):
    till.execute("EXECUTE", principal=principal, taint=taint)
    (decided,) = decisions(till.events())
    assert decided["kernel"]["taint"] == level


def test_a_run_that_read_the_web_lowers_every_intent(till: Till):
    assert till.door.taint == "SYSTEM"
    assert till.door.lower_taint("UNTRUSTED", source="a page") == "UNTRUSTED"
    assert till.door.lower_taint("SYSTEM", source="nothing") == "UNTRUSTED"
    till.execute("EXECUTE", principal="system")
    events = till.events()
    (changed,) = [event["taint"] for event in events if event["type"] == "taint_changed"]
    assert (changed["by"], changed["to"]) == ("sdk", "UNTRUSTED")
    (audit,) = audits(events)
    assert audit["envelope"]["taint"] == "UNTRUSTED"
    assert audit["envelope"]["origin"] == "Retrieved"


# What may go wrong


def _cyclic() -> Any:
    loop: dict[str, Any] = {}
    loop["loop"] = loop
    return loop


@requirement("kernel:bad-input")
@pytest.mark.parametrize(
    "payload",
    [{"amount": float("nan")}, {"a": "\ud800"}, {1: 2}, _cyclic(), {"a": object()}, 2**60],
    ids=["nan", "surrogate", "key", "cyclic", "object", "integer"],
)
def test_a_payload_without_a_canonical_form_is_refused_and_on_record(till: Till, payload: Any):
    done = till.execute(1, payload=payload)
    assert (done.action, done.reason_code) == ("BLOCK", "AMBIGUOUS_MESSAGE")
    assert done.decision is None
    assert till.paid == []
    assert len(calls_of(till.events())) == 1


@pytest.mark.parametrize("kind", ["pay.everything", "", 7, None, ["pay.out"]])
def test_an_intent_that_the_pack_does_not_have_is_refused(till: Till, kind: Any):
    """The pack's default is EXECUTE, and its guards do not look at the kind."""
    done = till.execute("EXECUTE", kind=kind)
    assert (done.action, done.reason_code, till.paid) == ("BLOCK", "EVALUATION_ERROR", [])
    assert len(calls_of(till.events())) == 1


def test_a_payload_need_not_be_an_object(till: Till):
    def counts(envelope: Any, _state: Any) -> Any:
        return Defer("time", 1, ()) if envelope.payload == [1, 2] else None

    till.pack = paying(state_guards=(counts,))
    assert till.execute(1, payload=[1, 2]).action == "THROTTLE"
    (start, *_), *_ = calls_of(till.events())
    assert start["call"]["preview"]["args_preview"] == '{"payload":[1,2]}'


@pytest.mark.parametrize("fault", ["raise", "nonsense", "recurse"])
def test_a_guard_that_fails_refuses(till: Till, fault: str):
    def guard(envelope: Any, state: Any) -> Any:
        if fault == "raise":
            raise ValueError("oops")
        return "EXECUTE" if fault == "nonsense" else guard(envelope, state)

    till.pack = paying(state_guards=(guard,))
    done = till.execute("EXECUTE")
    assert (done.action, done.reason_code, till.paid) == ("BLOCK", "guard_panic", [])


def test_a_guard_that_takes_too_long_refuses(till: Till):
    import time

    def slow(_envelope: Any, _state: Any) -> None:
        until = time.monotonic() + 0.05
        while time.monotonic() < until:
            pass

    till.pack = paying(state_guards=(slow,))
    assert till.execute("EXECUTE", deadline_ms=1).reason_code == "kernel_deadline_exceeded"
    assert till.execute("EXECUTE", deadline_ms=60_000).action == "ALLOW"


@requirement("kernel:executions-out-of-reach")
def test_without_executions_nothing_executes(till: Till):
    till.execute("EXECUTE", "a")
    (till.home / "state" / "executions.db").rename(till.home / "gone")
    (till.home / "state" / "executions.db").write_bytes(b"rubbish" * 1000)
    done = till.execute("EXECUTE", "b")
    assert (done.action, done.reason_code) == ("BLOCK", "EXECUTIONS_UNAVAILABLE")
    assert till.paid == [5]


def test_without_an_execution_ledger_a_retry_runs_again(till: Till):
    till.open(executions="off")
    till.execute("EXECUTE", "a")
    till.execute("EXECUTE", "a")
    assert till.paid == [5, 5]


def test_drift_of_a_pack_is_on_record_once(till: Till):
    def odd(_envelope: Any, _state: Any) -> Any:
        return Defer("unheard.of", 1, ())

    till.pack = paying(state_guards=(odd,))
    till.execute("EXECUTE", "a")
    till.execute("EXECUTE", "b")
    details = [
        event["health"].get("detail", "")
        for event in till.events()
        if event["type"] == "shim_health"
    ]
    assert [each for each in details if "defer_signal_drift" in each] == [
        "pack:pay: defer_signal_drift: unheard.of"
    ]


def test_a_secret_in_a_word_of_a_pack_is_masked(till: Till):
    secret = "ghp_" + "aB3d" * 9

    def odd(_envelope: Any, state: Any) -> Any:
        return Defer(state["said"], 1, ())

    till.pack = paying(state_guards=(odd,))
    till.execute("EXECUTE", state={"said": secret})
    assert any("drift" in event.get("health", {}).get("detail", "") for event in till.events())
    for file in till.home.rglob("*.jsonl"):
        assert secret.encode() not in file.read_bytes()


def test_a_pack_that_is_not_installed(own_home: Path):
    with pytest.raises(SubluminalError, match="`nobodys` is not installed"):
        open_kernel("nobodys")
