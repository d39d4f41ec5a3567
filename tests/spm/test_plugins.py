"""Plugins: hooks, one more layer, what they may not change, and what their refusals leave alone."""

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest
from tests.adapters.policies import budget, bundle
from tests.requirements import requirement
from tests.spm.conftest import REMOVE, Bureau, policy, rule

from subluminal.spm import (
    AfterDecisionContext,
    AgentActionRequest,
    BeforeCheckContext,
    Decision,
    PluginResult,
    Reason,
)


def decision(outcome: Any, code: str = "PLUGIN") -> Decision:
    return Decision(outcome=outcome, reasons=(Reason(code, f"a plugin says {outcome}"),))


class Saying:
    """A plugin that gives the same answers all the time."""

    def __init__(self, before: Any = None, after: Any = None, name: str = "saying") -> None:
        self.name = name
        self._before, self._after = before, after
        self.shown: list[str] = []

    async def before_check(self, _context: BeforeCheckContext) -> PluginResult | None:
        return None if self._before is None else PluginResult(decision(self._before))

    def after_decision(self, context: AfterDecisionContext) -> PluginResult | None:
        self.shown.append(context.decision.outcome)
        return None if self._after is None else PluginResult(decision(self._after))


@requirement("sdk:spm-strictest")
@pytest.mark.parametrize(
    ("before", "after", "tool", "code"),
    [
        ("DENY", None, "ls", "PLUGIN"),
        (None, "DENY", "ls", "PLUGIN"),
        ("ALLOW", None, "rm", "NO_REMOVE"),
        (None, "ALLOW", "rm", "NO_REMOVE"),
        ("REQUIRE_APPROVAL", None, "rm", "NO_REMOVE"),
        (None, "REQUIRE_APPROVAL", "ls", "PLUGIN"),
        (None, None, "ls", "DEFAULT_ALLOW"),
    ],
)
def test_of_plugins_and_policy_the_strictest_holds(
    bureau: Bureau, before: Any, after: Any, tool: str, code: str
) -> None:
    """Upstream: an ALLOW before the check passes by the policy, one after it overrules a DENY."""
    security = bureau.security(REMOVE, plugins=[Saying(before, after)])
    result = bureau.check(security, tool)
    assert result.decision.reasons[0].code == code
    assert result.allowed == (code == "DEFAULT_ALLOW")
    assert result.event.plugin_source == ("saying" if code == "PLUGIN" else None)
    action = {"ALLOW": "ALLOW", "DENY": "BLOCK"}.get(result.decision.outcome, "REJECT_WITH_HINT")
    last = bureau.calls()[-1][1]["decision"]
    assert last["action"] == action
    assert (last["policy"]["policy_id"] == "plugin:saying") == (code == "PLUGIN")


def test_later_plugins_see_the_stricter_decision(bureau: Bureau) -> None:
    last = Saying(name="last")
    security = bureau.security(plugins=[Saying(after="STEP_UP"), last])
    bureau.check(security, "ls")
    assert last.shown == ["STEP_UP"]


@requirement("sdk:spm-plugin-asks")
@pytest.mark.parametrize("answer", [True, False])
@pytest.mark.parametrize("hook", ["before", "after"])
def test_what_a_plugin_requires_is_asked(bureau: Bureau, answer: bool, hook: str) -> None:
    """Upstream refuses such a call without asking anybody."""
    security = bureau.security(
        plugins=[Saying(**{hook: "REQUIRE_HUMAN"})],
        on_human_required=lambda _request, _decision: answer,
    )
    result = bureau.check(security, "ls")
    assert (result.allowed, result.event.outcome) == (answer, "REQUIRE_HUMAN")
    outcomes = [each.outcome for each in security.get_audit_log()]
    assert outcomes == ["REQUIRE_HUMAN", *(["APPROVED", "ALLOW"] if answer else ["REJECTED"])]
    *_, asked, last = bureau.calls()
    assert asked[1]["decision"]["explain"]["reason_code"] == "HUMAN_REQUIRED"
    code = "DEFAULT_ALLOW" if answer else "APPROVAL_DENIED"
    assert last[1]["decision"]["explain"]["reason_code"] == code
    assert last[0]["call"]["retry_of"] == asked[0]["call"]["call_id"]


@requirement("sdk:spm-plugin-error")
@pytest.mark.parametrize("hook", ["before_check", "after_decision"])
@pytest.mark.parametrize("fail_open", [False, True])
def test_a_plugin_that_fails_denies(bureau: Bureau, hook: str, fail_open: bool) -> None:
    def fail(_context: object) -> None:
        raise ValueError("broken")

    class Broken:
        name = "broken"

    plugin = Broken()
    setattr(plugin, hook, fail)
    if fail_open:
        plugin.fail_open = True  # type: ignore[attr-defined]
    errors: list[str] = []
    security = bureau.security(plugins=[plugin], on_error=lambda _, where: errors.append(where))
    result = bureau.check(security, "ls")
    assert result.allowed == fail_open
    assert result.decision.reasons[0].code == ("DEFAULT_ALLOW" if fail_open else "PLUGIN_ERROR")
    assert errors == [f"{hook} of plugin broken"]
    assert bureau.decided()[-1][2] == ("DEFAULT_ALLOW" if fail_open else "PLUGIN_ERROR")


def other_tool(request: AgentActionRequest) -> PluginResult:
    action = replace(request.action, tool_name="ls")
    return PluginResult(modified_request=replace(request, action=action))


def other_args(request: AgentActionRequest) -> PluginResult:
    action = replace(request.action, tool_args={"path": "/tmp"})
    return PluginResult(modified_request=replace(request, action=action))


def other_agent(request: AgentActionRequest) -> PluginResult:
    agent = replace(request.agent, agent_id="root")
    return PluginResult(modified_request=replace(request, agent=agent))


def in_place(request: AgentActionRequest) -> None:
    request.action.tool_args["list"].append(1)


@requirement("sdk:spm-same-call")
@pytest.mark.parametrize("change", [other_tool, other_args, other_agent, in_place])
def test_no_plugin_changes_what_is_called(bureau: Bureau, change: Any) -> None:
    class Changing:
        name = "changing"

        def before_check(self, context: BeforeCheckContext) -> Any:
            return change(context.request)

    security = bureau.security(plugins=[Changing()])
    assert bureau.codes(security, "send", tool_args={"list": []}) == ["PLUGIN_ERROR"]
    assert bureau.decided() == [("send", "BLOCK", "PLUGIN_ERROR")]


def test_a_plugin_may_add_labels(bureau: Bureau) -> None:
    class Labelling:
        name = "labelling"

        def before_check(self, context: BeforeCheckContext) -> PluginResult:
            request = context.request
            labels = {**request.context, "data_labels": ["PHI"]}
            return PluginResult(modified_request=replace(request, context=labels))

    when = {"data_labels_any": ["PHI"]}
    security = bureau.security(rule("NO_PHI", "*", "DENY", when=when), plugins=[Labelling()])
    assert bureau.codes(security, "send") == ["NO_PHI"]


def test_plugins_come_and_go(bureau: Bureau) -> None:
    seen: list[str] = []

    class Living:
        name = "living"

        async def initialize(self) -> None:
            seen.append("initialize")

        def before_check(self, _context: BeforeCheckContext) -> None:
            seen.append("before_check")

        def destroy(self) -> None:
            seen.append("destroy")

    async def scene() -> None:
        security = bureau.security()
        plugin = Living()
        await security.register_plugin(plugin)
        with pytest.raises(ValueError, match="living"):
            await security.register_plugin(Living())
        assert security.get_plugin("living") is plugin
        await security.check_tool_call(tool_name="t", tool_args={}, agent_id="a")
        assert await security.unregister_plugin("living")
        assert not await security.unregister_plugin("living")
        assert security.get_plugin("living") is None

    asyncio.run(scene())
    assert seen == ["initialize", "before_check", "destroy"]


@requirement("sdk:spm-init")
def test_no_check_comes_before_the_plugins_are_initialized(bureau: Bureau) -> None:
    seen: list[str] = []

    class Slow:
        name = "slow"

        async def initialize(self) -> None:
            seen.append("begins")
            await asyncio.sleep(0.02)
            seen.append("ready")

        def before_check(self, _context: BeforeCheckContext) -> None:
            seen.append("asked")

    async def scene() -> None:
        security = bureau.security(plugins=[Slow()])
        params: dict[str, Any] = {"tool_name": "t", "tool_args": {}, "agent_id": "a"}
        await asyncio.gather(*(security.check_tool_call(**params) for _ in range(3)))

    asyncio.run(scene())
    assert seen == ["begins", "ready", *["asked"] * 3]


@requirement("sdk:spm-init")
def test_a_plugin_that_cannot_start_lets_nothing_pass(bureau: Bureau) -> None:
    class Broken:
        name = "broken"

        def initialize(self) -> None:
            raise ConnectionError("no server")

    security = bureau.security(plugins=[Broken()])
    for _ in range(2):
        with pytest.raises(ConnectionError):
            bureau.check(security, "t")

    async def scene() -> None:
        other = bureau.security()
        with pytest.raises(ConnectionError):
            await other.register_plugin(Broken())
        assert other.get_plugin("broken") is None
        with pytest.raises(ValueError, match="name"):
            await other.register_plugin(object())  # type: ignore[arg-type]

    asyncio.run(scene())


@requirement("sdk:spm-plugin-error")
@pytest.mark.parametrize("said", ["DENY", PluginResult(decision("PERHAPS")), 7])
def test_a_hook_that_returns_something_else_has_failed(bureau: Bureau, said: Any) -> None:
    class Wrong:
        name = "wrong"

        def before_check(self, _context: BeforeCheckContext) -> Any:
            return said

    assert bureau.codes(bureau.security(plugins=[Wrong()]), "ls") == ["PLUGIN_ERROR"]


def test_arguments_that_cannot_be_compared_are_no_change(bureau: Bureau) -> None:
    class Array:
        """As arrays of numbers do it."""

        def __eq__(self, _other: object) -> bool:
            raise ValueError("more than one element")

        __hash__ = None  # type: ignore[assignment]

        def __repr__(self) -> str:
            return "Array()"

    security = bureau.security(plugins=[Saying()])
    assert bureau.check(security, "t", tool_args={"x": Array()}).allowed


# What refused calls leave alone


@requirement("sdk:spm-not-counted")
@pytest.mark.parametrize("plugin", [Saying("DENY"), Saying("STEP_UP")])
def test_what_a_plugin_refuses_uses_up_no_budget(bureau: Bureau, plugin: Saying) -> None:
    limit = budget(1)
    limit["effect"]["budget"]["count"] = "executed"
    bureau.home.mkdir(parents=True, exist_ok=True)
    (bureau.home / "policy.yaml").write_text(json.dumps(bundle(limit)))

    async def scene() -> list[bool]:
        security = bureau.security(policy_bundle=policy(), plugins=[plugin])
        params: dict[str, Any] = {"tool_name": "t", "tool_args": {}, "agent_id": "a"}
        found = [(await security.check_tool_call(**params)).allowed for _ in range(2)]
        await security.unregister_plugin("saying")
        found += [(await security.check_tool_call(**params)).allowed for _ in range(2)]
        return found

    assert asyncio.run(scene()) == [False, False, True, False]
