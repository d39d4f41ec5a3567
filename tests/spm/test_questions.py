"""Questions to people: who may answer, what ends the wait, and what is left behind."""

import asyncio
import json
import os
import threading
from typing import Any

import msgspec
import pytest
from tests.adapters.records import calls_of, events_of
from tests.processes import wait_until
from tests.requirements import requirement
from tests.sdk.waiting.conftest import Background
from tests.spm.conftest import PAY, Bureau, rule
from tests.spm.test_plugins import Saying

from subluminal.adapters.in_process.guarding.asking import is_left_to_program
from subluminal.config.places import Places, places
from subluminal.config.settings import ApprovalSettings
from subluminal.contracts.vocabulary import Layer
from subluminal.core.controls.grants import find_waiting
from subluminal.core.controls.passphrase import set_passphrase
from subluminal.operator.approving import approve, deny, list_approvals
from subluminal.spm import AgentActionRequest, AgentSecurity, Decision, doors, kill_switch

PARAMS: dict[str, Any] = {"tool_args": {"to": 7}, "agent_id": "support"}


def home() -> Places:
    return places(os.environ)


def pending() -> str:
    """Waits for an approval that is open; returns its id."""

    def find() -> str:
        found = list_approvals(home()).approvals
        return found[0].approval_id if found else ""

    return str(wait_until(find, "an open approval"))


class Slow:
    """A callback that answers when it is told to."""

    def __init__(self) -> None:
        self.asked, self.go = threading.Event(), threading.Event()

    def __call__(self, _request: AgentActionRequest, _decision: Decision) -> bool:
        self.asked.set()
        return self.go.wait()


@requirement("sdk:spm-wait-ends")
@pytest.mark.parametrize(
    ("end", "allowed", "outcomes"),
    [
        ("approve", True, ["REQUIRE_APPROVAL", "APPROVED"]),
        ("deny", False, ["REQUIRE_APPROVAL", "REJECTED"]),
        ("kill", False, ["REQUIRE_APPROVAL", "KILL_SWITCH"]),
    ],
)
def test_a_person_may_be_faster_than_the_callback(
    bureau: Bureau, end: str, allowed: bool, outcomes: list[str]
) -> None:
    slow = Slow()
    security = bureau.security(PAY, on_approval_required=slow)
    waiting = Background(lambda: security.check_tool_call_sync(tool_name="pay", **PARAMS))
    assert slow.asked.wait(10)
    if end == "kill":
        kill_switch().kill("support")
    elif end == "approve":
        approve(home(), pending(), settings=ApprovalSettings())
    else:
        deny(home(), pending())
    result = waiting.done()
    slow.go.set()
    assert result.allowed == allowed
    assert [each.outcome for each in security.get_audit_log()] == outcomes
    if end == "kill":
        assert result.decision.reasons[0].code == "AGENT_KILL_SWITCH"


@requirement("sdk:spm-many-agents")
def test_no_guard_is_closed_under_a_call(bureau: Bureau, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only so many guards are kept open, but a call that waits keeps its own."""
    monkeypatch.setattr(doors, "_MOST_GUARDS", 2)
    slow = Slow()
    security = bureau.security(PAY, on_approval_required=slow)
    waiting = Background(lambda: security.check_tool_call_sync(tool_name="pay", **PARAMS))
    assert slow.asked.wait(10)
    for agent in ("a", "b", "c"):
        assert bureau.check(security, "ls", agent_id=agent).allowed
    slow.go.set()
    assert waiting.done().allowed


@requirement("sdk:spm-wait-ends")
def test_a_kill_ends_the_wait_for_what_a_plugin_requires(bureau: Bureau) -> None:
    slow = Slow()
    security = bureau.security(plugins=[Saying("REQUIRE_HUMAN")], on_human_required=slow)
    waiting = Background(lambda: security.check_tool_call_sync(tool_name="ls", **PARAMS))
    assert slow.asked.wait(10)
    kill_switch().kill_all()
    assert waiting.done().decision.reasons[0].code == "GLOBAL_KILL_SWITCH"
    slow.go.set()


@requirement("sdk:spm-timeout")
def test_a_plugin_s_question_ends_in_time(bureau: Bureau) -> None:
    slow = Slow()
    security = bureau.security(
        plugins=[Saying("STEP_UP")], on_step_up_required=slow, approval_timeout_ms=20
    )
    found = security.check_tool_call_sync(tool_name="ls", **PARAMS)
    slow.go.set()
    assert [each.code for each in found.decision.reasons] == ["PLUGIN", "STEP_UP_ERROR"]
    assert [each.outcome for each in security.get_audit_log()] == ["STEP_UP", "TIMEOUT"]
    assert [each[2] for each in bureau.decided()] == ["STEP_UP_REQUIRED", "APPROVAL_TIMEOUT"]


@requirement("sdk:spm-may-answer")
def test_no_callback_answers_in_place_of_a_passphrase_or_for_the_managed_layer(
    bureau: Bureau,
) -> None:
    asked: list[str] = []

    def agree(request: AgentActionRequest, _decision: Decision) -> bool:
        asked.append(request.action.tool_name)
        return True

    security = bureau.security(
        PAY, rule("STEP", "step", "STEP_UP"), on_approval_required=agree, on_step_up_required=agree
    )
    assert bureau.check(security, "pay").allowed
    assert bureau.check(security, "step").allowed
    assert asked == ["pay", "step"]
    request = find_waiting(home(), list_approvals(home(), every=True).approvals[0].approval_id)
    managed = msgspec.structs.replace(request.request.approval, layer=Layer.MANAGED)
    assert not is_left_to_program(
        msgspec.structs.replace(request.request, approval=managed), home().state
    )
    set_passphrase(home().state, "open sesame")
    found = bureau.check(security, "pay")
    assert (found.allowed, found.decision.outcome) == (False, "REQUIRE_APPROVAL")
    assert asked == ["pay", "step"]
    assert pending()


@requirement("sdk:spm-ticket")
def test_the_text_is_the_grant_s_ticket_and_may_not_be_accepted(bureau: Bureau) -> None:
    bureau.home.mkdir(parents=True, exist_ok=True)
    (bureau.home / "config.toml").write_text('[approvals]\nticket_pattern = "OPS-[0-9]+"\n')
    said = [" OPS-17 ", "17", True]
    errors: list[str] = []
    security = bureau.security(
        rule("TICKET", "t", "REQUIRE_TICKET"),
        on_ticket_required=lambda _request, _decision: said.pop(0),
        on_error=lambda error, where: errors.append(f"{where}: {error}"),
    )
    found = [bureau.check(security, "t").decision.reasons[-1].code for _ in range(3)]
    assert found == ["TICKET_VALIDATED", "TICKET_ERROR", "TICKET_MISSING"]
    assert len(errors) == 1
    assert "on_ticket_required" in errors[0]
    bureau.close()
    events = events_of(bureau.home, threads=True)
    given = [event["approval"] for event in events if event["type"] == "approval_decided"]
    assert [each["ticket"] for each in given] == ["OPS-17"]


@requirement("sdk:spm-both-ask")
@pytest.mark.parametrize("hook", ["before", "after"])
@pytest.mark.parametrize("answers", [(True, True), (True, False), (False, True)])
def test_what_plugins_and_the_policy_require_is_asked_for(
    bureau: Bureau, hook: str, answers: tuple[bool, bool]
) -> None:
    asked: list[str] = []

    def human(_request: AgentActionRequest, decision: Decision) -> bool:
        asked.append(decision.outcome)
        return answers[0]

    def approval(_request: AgentActionRequest, decision: Decision) -> bool:
        asked.append(decision.outcome)
        return answers[1]

    security = bureau.security(
        PAY,
        plugins=[Saying(**{hook: "REQUIRE_HUMAN"})],
        on_human_required=human,
        on_approval_required=approval,
    )
    result = bureau.check(security, "pay")
    assert asked == ["REQUIRE_HUMAN", "REQUIRE_APPROVAL"][: 1 + answers[0]]
    assert (result.allowed, result.event.outcome) == (all(answers), "REQUIRE_HUMAN")


@requirement("sdk:spm-both-ask")
def test_without_a_callback_the_strictest_requirement_is_told(bureau: Bureau) -> None:
    security = bureau.security(
        PAY,
        plugins=[Saying("REQUIRE_HUMAN")],
        on_approval_required=lambda _request, _decision: True,
    )
    result = bureau.check(security, "pay")
    assert (result.allowed, result.decision.outcome) == (False, "REQUIRE_HUMAN")
    assert result.event.plugin_source == "saying"


@requirement("sdk:spm-asked-once")
def test_hooks_are_called_once_although_the_call_is_tried_again(bureau: Bureau) -> None:
    called: list[str] = []

    class Noting:
        name = "noting"

        def before_check(self, _context: object) -> None:
            called.append("before_check")

        async def after_decision(self, _context: object) -> None:
            called.append("after_decision")

        def after_execution(self, context: Any) -> None:
            called.append(f"after_execution {context.decision.outcome}")

    security = bureau.security(
        PAY, plugins=[Noting()], on_approval_required=lambda _request, _decision: True
    )
    assert security.protect("pay", lambda to: to, agent_id="support")(7) == 7
    assert called == ["before_check", "after_decision", "after_execution ALLOW"]
    assert len(bureau.calls()) == 2


@requirement("sdk:spm-cancelled")
@pytest.mark.parametrize("where", ["on_allow", "after_decision", "on_approval_required"])
def test_a_cancelled_check_leaves_no_call_open(bureau: Bureau, where: str) -> None:
    async def scene() -> None:
        reached = asyncio.Event()

        async def stay(*_: object) -> None:
            reached.set()
            await asyncio.Event().wait()

        class Staying:
            name = "staying"

        plugin, options = Staying(), {}
        if where == "after_decision":
            plugin.after_decision = stay  # type: ignore[attr-defined]
        else:
            options[where] = stay
        security = bureau.security(PAY, plugins=[plugin], **options)
        tool = "pay" if where == "on_approval_required" else "ls"
        task = asyncio.create_task(security.check_tool_call(tool_name=tool, **PARAMS))
        await reached.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(scene())
    (call,) = bureau.calls()
    assert call[-1]["status"] == ("ERROR" if where == "on_approval_required" else "CANCELLED")


def test_a_sync_check_asks_async_callbacks_and_the_other_way_round(bureau: Bureau) -> None:
    async def agree(_request: AgentActionRequest, _decision: Decision) -> bool:
        await asyncio.sleep(0)
        return True

    security = bureau.security(PAY, on_approval_required=agree)
    assert security.check_tool_call_sync(tool_name="pay", **PARAMS).allowed
    assert isinstance(security, AgentSecurity)


def test_the_request_of_a_check_is_named_in_the_record(bureau: Bureau) -> None:
    result = bureau.check(bureau.security(), "t")
    bureau.close()
    ((start, *_),) = calls_of(events_of(bureau.home, threads=True))
    assert result.event.request_id in json.dumps(start)
