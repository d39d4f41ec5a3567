"""One check: the policy, callbacks, what is on record and on the audit log."""

import asyncio
import json
import os
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.requirements import requirement
from tests.spm.conftest import PAY, REMOVE, Bureau, policy, rule
from tests.trust.issued import registration

from subluminal import PolicyError
from subluminal.config.places import places
from subluminal.core.controls.agents import register
from subluminal.core.controls.grants import all_waiting
from subluminal.errors import SubluminalError
from subluminal.policy.dialects.agent_spm.signing import signature_of
from subluminal.spm import (
    AgentActionRequest,
    AgentSecurity,
    Decision,
    Event,
    Reason,
    SecurityError,
    output_validator,
)

KEY = "0123456789abcdef0123456789abcdef"


# The policy


def test_first_match_decides_with_its_code_and_role(bureau: Bureau) -> None:
    security = bureau.security(REMOVE, PAY)
    denied = bureau.check(security, "rm")
    assert (denied.allowed, denied.decision) == (
        False,
        Decision(outcome="DENY", reasons=(Reason("NO_REMOVE", "nothing is removed"),)),
    )
    asked = bureau.check(security, "pay").decision
    assert (asked.outcome, asked.reasons[0].code, asked.approver_role) == (
        "REQUIRE_APPROVAL",
        "PAY",
        "finance",
    )
    passed = bureau.check(security, "ls")
    assert (passed.allowed, passed.decision.reasons[0].code) == (True, "DEFAULT_ALLOW")
    assert bureau.decided() == [
        ("rm", "BLOCK", "NO_REMOVE"),
        ("pay", "REJECT_WITH_HINT", "APPROVAL_REQUIRED"),
        ("ls", "ALLOW", "DEFAULT_ALLOW"),
    ]


def test_parameters_are_checked(bureau: Bureau) -> None:
    security = bureau.security()
    for wrong in ({"tool_name": ""}, {"agent_id": ""}, {"tool_args": [1]}, {"tool_name": 7}):
        given: dict[str, Any] = {"tool_name": "t", "tool_args": {}, "agent_id": "a", **wrong}
        with pytest.raises(TypeError):
            security.check_tool_call_sync(**given)
    with pytest.raises(TypeError, match="one of policy_path"):
        AgentSecurity()
    with pytest.raises(TypeError, match="one of policy_path"):
        AgentSecurity(policy_json="{}", policy_bundle=policy())


def test_nothing_of_the_policy_is_left_behind(bureau: Bureau) -> None:
    security = bureau.security()
    bureau.check(security, "t")
    given = Path(places({"SUB_HOME": str(bureau.home)}).cache, "given")
    (file,) = given.iterdir()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            allowed = security.check_tool_call_sync(tool_name="t", tool_args={}, agent_id="child")
            bureau.close()
            status = 0 if allowed.allowed and file.exists() else 2
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    assert bureau.check(security, "t", agent_id="late").allowed
    bureau.close()
    assert list(given.iterdir()) == []


@requirement("sdk:spm-signature")
def test_every_rule_is_signed(bureau: Bureau) -> None:
    """Upstream's constructor has no key, and its signature covers no rule."""
    bundle = policy(REMOVE)
    bundle["signature"] = signature_of(bundle, KEY.encode())
    security = bureau.security(policy_bundle=bundle, policy_hmac_key=KEY)
    assert not bureau.check(security, "rm").allowed
    bundle["rules"][0]["outcome"] = "ALLOW"
    for wrong in (bundle, policy(REMOVE)):
        with pytest.raises(PolicyError, match="signature"):
            AgentSecurity(policy_bundle=wrong, policy_hmac_key=KEY)


def test_a_pattern_that_upstream_skips_is_enforced(bureau: Bureau) -> None:
    when = {"matches_regex": "(a+)+b"}
    security = bureau.security(rule("NO_AB", "*", "DENY", when=when))
    assert bureau.codes(security, "t", tool_args={"x": "aab"}) == ["NO_AB"]


@requirement("sdk:spm-reload")
def test_a_policy_is_reloaded_and_a_broken_one_is_not(bureau: Bureau, tmp_path: Path) -> None:
    file = tmp_path / "policy.json"
    file.write_text(json.dumps(policy(REMOVE)))
    security = bureau.security(policy_path=file)
    assert not bureau.check(security, "rm").allowed
    file.write_text(json.dumps(policy()))
    assert not bureau.check(security, "rm").allowed
    security.reload_policy()
    assert bureau.check(security, "rm").allowed
    file.write_text("{}")
    with pytest.raises(PolicyError, match=rf"^{re.escape(str(file))}:1:1: "):
        security.reload_policy()
    assert bureau.check(security, "rm").allowed
    assert security.get_policy_bundle() == policy()


def test_a_function_gives_the_policy(bureau: Bureau) -> None:
    given = [policy(REMOVE), json.dumps(policy())]

    async def load() -> Any:
        return given.pop(0)

    security = bureau.security(policy_loader=load)
    assert security.get_policy_bundle() is None
    assert not bureau.check(security, "rm").allowed
    with pytest.raises(SubluminalError, match="function"):
        security.reload_policy()
    asyncio.run(security.reload_policy_async())
    assert bureau.check(security, "rm").allowed


# Claims


@requirement("sdk:spm-claims")
def test_what_a_caller_says_of_itself_only_tightens(bureau: Bureau) -> None:
    """Upstream takes the caller's word for its level and its roles."""
    trusted = rule("TRUSTED", "deploy", "ALLOW", trust_level_min="verified")
    admins = rule("ADMINS", "grant", "ALLOW", agent_roles_any=["admin"])
    strangers = rule("NO_PR_AGENT", "ls", "DENY", agent_type="pr_agent")
    bundle = policy(trusted, admins, strangers, rule("REST", "*", "DENY"))
    bundle["rules"].insert(3, rule("LS", "ls", "ALLOW"))
    state = places({"SUB_HOME": str(bureau.home)}).state
    register(state, registration(agent_id="support"))
    security = bureau.security(policy_bundle=bundle)
    claims: dict[str, Any] = {"trust_level": "system", "roles": ["admin"]}
    assert bureau.codes(security, "deploy", **claims) == ["REST"]
    assert bureau.codes(security, "grant", **claims) == ["REST"]
    assert bureau.codes(security, "ls", agent_id="other") == ["LS"]
    assert bureau.codes(security, "ls", agent_id="other", agent_type="pr_agent") == ["NO_PR_AGENT"]


# Callbacks


@requirement("sdk:spm-answers")
@pytest.mark.parametrize(
    ("outcome", "callback", "yes", "codes"),
    [
        ("REQUIRE_APPROVAL", "on_approval_required", True, ("APPROVED", "REJECTED")),
        ("STEP_UP", "on_step_up_required", True, ("STEP_UP_PASSED", "STEP_UP_FAILED")),
        ("REQUIRE_TICKET", "on_ticket_required", "T-1", ("TICKET_VALIDATED", "TICKET_MISSING")),
        ("REQUIRE_HUMAN", "on_human_required", True, ("HUMAN_APPROVED", "HUMAN_REJECTED")),
    ],
)
def test_a_callback_answers_and_both_calls_are_on_record(
    bureau: Bureau, outcome: str, callback: str, yes: Any, codes: tuple[str, str]
) -> None:
    answers = [yes, None]
    told: list[tuple[str, str]] = []

    async def answer(request: AgentActionRequest, decision: Decision) -> Any:
        told.append((request.action.tool_name, decision.outcome))
        return answers.pop(0)

    security = bureau.security(rule("ASK", "t", outcome), **{callback: answer})
    first = bureau.check(security, "t")
    second = bureau.check(security, "t")
    assert (first.allowed, first.decision.outcome, first.event.outcome) == (True, "ALLOW", outcome)
    assert [each.code for each in first.decision.reasons] == ["ASK", codes[0]]
    assert (second.allowed, second.decision.outcome) == (False, "DENY")
    assert [each.code for each in second.decision.reasons] == ["ASK", codes[1]]
    assert told == [("t", outcome)] * 2
    events = [each.outcome for each in security.get_audit_log()]
    assert events == [outcome, "APPROVED", outcome, "REJECTED"]
    calls = bureau.calls()
    assert [call[1]["decision"]["action"] for call in calls] == [
        *("REJECT_WITH_HINT", "ALLOW"),
        *("REJECT_WITH_HINT", "BLOCK"),
    ]
    assert calls[3][1]["decision"]["explain"]["reason_code"] == "APPROVAL_DENIED"
    for first_try, retry in (calls[:2], calls[2:]):
        assert retry[0]["call"]["retry_of"] == first_try[0]["call"]["call_id"]


@requirement("sdk:spm-timeout")
def test_a_callback_that_does_not_answer_is_a_timeout(bureau: Bureau) -> None:
    """Also one that blocks its thread."""
    never = threading.Event()
    errors: list[str] = []
    security = bureau.security(
        PAY,
        rule("STEP", "step", "STEP_UP"),
        on_approval_required=lambda _request, _decision: never.wait(),
        on_step_up_required=lambda _request, _decision: 1 / 0,
        on_error=lambda error, where: errors.append(f"{where}: {type(error).__name__}"),
        approval_timeout_ms=50,
    )
    late = bureau.check(security, "pay")
    assert [each.code for each in late.decision.reasons] == ["PAY", "APPROVAL_TIMEOUT"]
    assert [each.outcome for each in security.get_audit_log()] == ["REQUIRE_APPROVAL", "TIMEOUT"]
    failed = bureau.check(security, "step")
    assert [each.code for each in failed.decision.reasons] == ["STEP", "STEP_UP_ERROR"]
    assert errors == ["on_step_up_required: ZeroDivisionError"]
    never.set()
    assert [each[2] for each in bureau.decided()][:2] == ["APPROVAL_REQUIRED", "APPROVAL_TIMEOUT"]


def test_without_a_callback_the_call_is_refused_and_waits_for_sub_approve(bureau: Bureau) -> None:
    denied: list[str] = []
    security = bureau.security(PAY, on_deny=lambda request, _: denied.append(request.agent.name))
    result = bureau.check(security, "pay", agent_name="Support")
    assert (result.allowed, result.decision.outcome) == (False, "REQUIRE_APPROVAL")
    assert denied == ["Support"]
    (waiting,) = all_waiting(places({"SUB_HOME": str(bureau.home)}))
    assert waiting.request.call.tool_name == "pay"


@requirement("sdk:spm-no-mutex")
@pytest.mark.parametrize("is_async", [True, False])
def test_an_open_approval_blocks_nobody(bureau: Bureau, is_async: bool) -> None:
    """Upstream's mutex holds every call up until the person has answered."""

    async def scene() -> list[bool]:
        asked, answered = asyncio.Event(), asyncio.Event()
        loop, blocking = asyncio.get_running_loop(), threading.Event()

        async def on_async(_request: AgentActionRequest, _decision: Decision) -> bool:
            asked.set()
            return await answered.wait()

        def on_sync(_request: AgentActionRequest, _decision: Decision) -> bool:
            loop.call_soon_threadsafe(asked.set)
            return blocking.wait(5)

        security = bureau.security(PAY, on_approval_required=on_async if is_async else on_sync)

        async def check(tool: str) -> bool:
            params: dict[str, Any] = {"tool_args": {}, "agent_id": "support"}
            return (await security.check_tool_call(tool_name=tool, **params)).allowed

        waiting = asyncio.create_task(check("pay"))
        await asked.wait()
        others = [await check("ls"), await check("ls")]
        assert not waiting.done()
        answered.set()
        blocking.set()
        return [*others, await waiting]

    assert asyncio.run(scene()) == [True, True, True]


@requirement("sdk:spm-one-grant-each")
def test_equal_calls_at_once_are_each_granted_once(bureau: Bureau) -> None:
    asked: list[str] = []

    async def agree(request: AgentActionRequest, _decision: Decision) -> bool:
        asked.append(request.request_id)
        await asyncio.sleep(0)
        return True

    async def scene() -> list[bool]:
        security = bureau.security(PAY, on_approval_required=agree)
        params: dict[str, Any] = {"tool_name": "pay", "tool_args": {"to": 7}, "agent_id": "a"}
        found = await asyncio.gather(*(security.check_tool_call(**params) for _ in range(8)))
        return [each.allowed for each in found]

    assert asyncio.run(scene()) == [True] * 8
    granted = [call[1]["decision"] for call in bureau.calls() if "grant" in call[1]["decision"]]
    grants = [each["grant"]["grant_id"] for each in granted]
    assert len(grants) == len(set(grants)) == 8


# The record and the audit log


@requirement("sdk:spm-record")
def test_records_and_events_hold_neither_arguments_nor_what_the_user_said(bureau: Bureau) -> None:
    said = "my dog is called Rex"
    when = {"contains_any": ["rex"]}
    security = bureau.security(rule("NO_DOGS", "*", "DENY", when=when))
    result = bureau.check(
        security, "t", tool_args={"to": "ann"}, user_input=said, environment="lab"
    )
    assert result.decision.reasons[0].code == "NO_DOGS"
    assert result.event.safe_payload == {
        "agent_id": "support",
        "tool_name": "t",
        "environment": "lab",
        "outcome": "DENY",
    }
    (call,) = bureau.calls()
    assert "Rex" not in json.dumps(call)
    assert "user_input_hash" in json.dumps(call)


def test_the_audit_log_drops_the_oldest(bureau: Bureau) -> None:
    seen: list[Event] = []
    security = bureau.security(max_audit_log_size=2, on_audit_event=seen.append)
    for tool in ("a", "b", "c"):
        bureau.check(security, tool)
    assert [each.tool_name for each in security.get_audit_log()] == ["b", "c"]
    assert [each.tool_name for each in seen] == ["a", "b", "c"]
    security.clear_audit_log()
    assert security.get_audit_log() == []
    endless = bureau.security(max_audit_log_size=0)
    for tool in ("a", "b", "c"):
        bureau.check(endless, tool)
    assert len(endless.get_audit_log()) == 3


def test_callbacks_may_be_coroutine_functions(bureau: Bureau) -> None:
    told: list[str] = []
    failed = threading.Event()

    async def on_allow(_request: AgentActionRequest, decision: Decision) -> None:
        told.append(decision.outcome)

    async def on_deny(_request: AgentActionRequest, decision: Decision) -> None:
        told.append(decision.outcome)
        raise ValueError("broken")

    async def on_audit_event(event: Event) -> None:
        told.append(f"event {event.outcome}")

    async def on_error(error: BaseException, where: str) -> None:
        told.append(f"{where}: {error}")
        failed.set()

    security = bureau.security(
        REMOVE, on_allow=on_allow, on_deny=on_deny, on_audit_event=on_audit_event, on_error=on_error
    )
    assert bureau.check(security, "ls").allowed
    assert not security.check_tool_call_sync(tool_name="rm", tool_args={}, agent_id="a").allowed
    assert failed.wait(10)
    assert told == ["event ALLOW", "ALLOW", "event DENY", "DENY", "on_deny: broken"]


def test_callbacks_that_fail_change_nothing(bureau: Bureau) -> None:
    def fail(*_: object) -> None:
        raise ValueError

    security = bureau.security(
        REMOVE, on_allow=fail, on_deny=fail, on_audit_event=fail, on_error=fail
    )
    assert bureau.check(security, "ls").allowed
    assert not bureau.check(security, "rm").allowed


# Guarded functions


@requirement("sdk:spm-protect")
def test_functions_and_coroutines_are_guarded(bureau: Bureau) -> None:
    ran: list[Any] = []

    def send(to: str, subject: str = "hello") -> str:
        ran.append(to)
        return f"{subject} {to}"

    async def remove(path: str) -> None:
        ran.append(path)

    when = {"tool_args_match": {"subject": "spam"}}
    security = bureau.security(REMOVE, rule("NO_SPAM", "send", "DENY", when=when))
    total = security.protect(
        "sum", sum, agent_id="support", extract_tool_args=lambda numbers: {"numbers": numbers}
    )
    assert total([1, 2]) == 3
    guarded = security.protect("send", send, agent_id="support")
    assert guarded("ann") == "hello ann"
    with pytest.raises(SecurityError, match="NO_SPAM") as refused:
        guarded("bob", subject="spam")
    assert refused.value.decision.outcome == "DENY"
    removing = security.protect(
        "rm", remove, agent_id="support", extract_tool_args=lambda path: {"p": path}
    )
    with pytest.raises(SecurityError, match="NO_REMOVE"):
        asyncio.run(removing("/"))
    assert ran == ["ann"]
    with pytest.raises(TypeError, match="no_such"):
        security.protect("send", send, agent_id="support", no_such=1)
    _, first, *_ = bureau.calls()
    assert first[-1]["status"] == "OK"
    assert "hello ann" in json.dumps(first[-1]["preview"])


def test_a_function_that_fails_is_on_record_and_hooks_see_it(bureau: Bureau) -> None:
    seen: list[Any] = []

    class Watcher:
        name = "watcher"

        async def after_execution(self, context: Any) -> None:
            seen.append((context.request.action.tool_name, context.result, str(context.error)))
            raise ValueError("broken watcher")

    errors: list[str] = []

    def fail() -> None:
        raise KeyError("gone")

    security = bureau.security(plugins=[Watcher()], on_error=lambda _, where: errors.append(where))
    with pytest.raises(KeyError):
        security.protect("fail", fail, agent_id="support")()
    assert seen == [("fail", None, "'gone'")]
    assert errors == ["after_execution of plugin watcher"]
    ((*_, end),) = bureau.calls()
    assert end["status"] == "ERROR"


@requirement("sdk:spm-output")
def test_a_result_is_flagged_or_withheld(bureau: Bureau) -> None:
    def read() -> dict[str, str]:
        return {"note": "the code is TOP-4711"}

    for on_violation in ("flag", "withhold"):
        validator = output_validator(
            patterns=[r"TOP-\d+"],
            forbidden_keywords=["CODE"],
            max_size=5,
            on_violation=on_violation,  # type: ignore[arg-type]
        )
        security = bureau.security(plugins=[validator])
        guarded = security.protect("read", read, agent_id="support")
        if on_violation == "flag":
            assert guarded() == read()
        else:
            with pytest.raises(SecurityError) as withheld:
                guarded()
            assert len(withheld.value.decision.reasons) == 3
        last = security.get_audit_log()[-1]
        assert last.plugin_source == "output-validator"
        codes = [each.code for each in last.reasons]
        assert codes == ["sensitive_data", "forbidden_keyword", "oversized_output"]
    shown, hidden = (json.dumps(call) for call in bureau.calls())
    assert "TOP-4711" in shown
    assert "TOP-4711" not in hidden
    with pytest.raises(ValueError, match="flag"):
        output_validator(on_violation="no")  # type: ignore[arg-type]


def test_a_check_inside_of_a_loop_may_be_sync(bureau: Bureau) -> None:
    security = bureau.security(REMOVE)

    async def scene() -> bool:
        params: dict[str, Any] = {"tool_args": {}, "agent_id": "support"}
        return security.check_tool_call_sync(tool_name="rm", **params).allowed

    assert asyncio.run(scene()) is False


def test_generators_are_guarded(bureau: Bureau) -> None:
    def lines(number: int) -> Iterator[str]:
        for each in range(number):
            yield f"line {each}"

    security = bureau.security(REMOVE)
    assert list(security.protect("read", lines, agent_id="support")(2)) == ["line 0", "line 1"]
    with pytest.raises(SecurityError, match="NO_REMOVE"):
        list(security.protect("rm", lines, agent_id="support")(2))
    read, _ = bureau.calls()
    assert "line 1" in json.dumps(read[-1]["preview"])


@requirement("sdk:spm-output")
def test_a_result_that_cannot_be_read_is_withheld(bureau: Bureau) -> None:
    class Odd:
        def __str__(self) -> str:
            raise ValueError

    validator = output_validator(patterns=["x"], on_violation="withhold")
    security = bureau.security(plugins=[validator])
    with pytest.raises(SecurityError, match="PLUGIN_ERROR"):
        security.protect("read", Odd, agent_id="support")()
    with pytest.raises(SecurityError, match="sensitive_data"):
        security.protect("read", lambda: "\ud800 x", agent_id="support")()


@requirement("sdk:spm-output")
def test_patterns_take_linear_time(bureau: Bureau) -> None:
    """Upstream runs them on an engine that may take minutes."""
    validator = output_validator(patterns=["(a+)+$"])
    assert not validator.violations("a" * 50_000 + "b")
    with pytest.raises(ValueError, match="lookahead"):
        output_validator(patterns=["(?=x)"])


def test_lists_are_lists(bureau: Bureau) -> None:
    security = bureau.security(rule("NO_PHI", "*", "DENY", when={"data_labels_any": ["PHI"]}))
    with pytest.raises(TypeError, match="data_labels"):
        bureau.check(security, "t", data_labels="PHI")
    assert bureau.codes(security, "t", data_labels=iter(["PHI"])) == ["NO_PHI"]
    guarded = security.protect("t", lambda: 1, agent_id="a", data_labels=iter(["PHI"]))
    for _ in range(2):
        with pytest.raises(SecurityError):
            guarded()
