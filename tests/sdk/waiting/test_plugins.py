"""Plugins of a program: one more layer, which can only make a decision stricter."""

import asyncio
from typing import Any

import pytest
from tests.adapters.policies import deny
from tests.adapters.records import calls_of
from tests.requirements import requirement
from tests.sdk.waiting.conftest import Desk, asks, run_sub
from tests.sdk.waiting.test_callbacks import SECRET, Errors

from subluminal import Blocked, Guard, Rejected, RunTerminated, Throttled
from subluminal.contracts.call import ToolCall
from subluminal.contracts.decision import Decision, Hint, Terminate
from subluminal.contracts.vocabulary import Action, Severity


def decision(action: str, **more: Any) -> Decision:
    return Decision(
        action=action,  # type: ignore[arg-type] # as a program may write it
        rule_id="mine",
        severity=Severity.WARN,
        reason_code="MINE",
        summary="the plugin says so",
        **more,
    )


NO = decision("BLOCK")
SLOWER = decision("THROTTLE", backoff_ms=5)
OTHERWISE = decision("REJECT_WITH_HINT", hint=Hint(hint_text="ask nicely"))
OVER = decision("TERMINATE_RUN", terminate=Terminate(terminate_code="X", terminate_message="x"))


class Says:
    """A plugin that says one thing before the check, and notes everything."""

    def __init__(self, found: Any = None, name: str = "says", after: Any = None) -> None:
        self.name, self.found, self._after = name, found, after
        self.told: list[Any] = []

    def before_check(self, call: ToolCall) -> Any:
        self.told.append(("before", call.tool_name, call.args))
        return _said(self.found)

    def after_decision(self, call: ToolCall, decision: Decision) -> Any:
        self.told.append(("after", call.tool_name, decision.action))
        return _said(self._after)

    def after_execution(self, call: ToolCall, decision: Decision, result: Any, error: Any) -> None:
        self.told.append(("end", call.tool_name, result, error))


class SaysLater(Says):
    """The same with coroutines."""

    async def before_check(self, call: ToolCall) -> Any:
        await asyncio.sleep(0)
        return super().before_check(call)

    async def after_decision(self, call: ToolCall, decision: Decision) -> Any:
        await asyncio.sleep(0)
        return super().after_decision(call, decision)

    async def after_execution(self, *told: Any) -> None:
        await asyncio.sleep(0)
        super().after_execution(*told)


def _said(found: Any) -> Any:
    if isinstance(found, Exception):
        raise found
    return found


def double(guard: Guard, ran: list[int]) -> Any:
    @guard.tool
    def double(number: int) -> int:
        ran.append(number)
        return 2 * number

    return double


def double_later(guard: Guard, ran: list[int]) -> Any:
    @guard.tool(name="double")
    async def double(number: int) -> int:
        ran.append(number)
        return 2 * number

    return lambda number: asyncio.run(double(number))


KINDS = pytest.mark.parametrize("plugin_kind", [Says, SaysLater])
CALLERS = pytest.mark.parametrize("caller", [double, double_later])


@KINDS
@CALLERS
def test_hooks_are_told_what_happens(desk: Desk, plugin_kind: Any, caller: Any) -> None:
    plugin = plugin_kind()
    assert caller(desk.guard(plugins=[plugin]), [])(3) == 6
    assert plugin.told == [
        ("before", "double", {"number": 3}),
        ("after", "double", Action.ALLOW),
        ("end", "double", 6, None),
    ]


@requirement("sdk:plugins")
@KINDS
@CALLERS
@pytest.mark.parametrize(
    ("found", "kind"),
    [(NO, Blocked), (SLOWER, Throttled), (OTHERWISE, Rejected), (OVER, RunTerminated)],
)
def test_a_plugin_refuses(
    desk: Desk, plugin_kind: Any, caller: Any, found: Decision, kind: type[Exception]
) -> None:
    guard, ran = desk.guard(plugins=[plugin_kind(found)]), []
    with pytest.raises(kind, match="the plugin says so"):
        caller(guard, ran)(3)
    assert ran == []
    [[_, decided, *_]] = calls_of(desk.events())
    assert decided["decision"]["policy"]["policy_id"] == "plugin:says"
    assert (decided["decision"]["action"], decided["decision"]["rule_id"]) == (found.action, "mine")


@requirement("sdk:plugins")
@pytest.mark.parametrize(
    ("said", "holds"),
    [
        ([decision("ALLOW")], "test"),
        ([SLOWER], "test"),
        ([OVER], "plugin:one"),
        ([NO], "test"),  # the earlier layer on a tie
        ([NO, OVER], "plugin:two"),
    ],
)
def test_the_strictest_holds(desk: Desk, said: list[Decision], holds: str) -> None:
    plugins = [Says(each, name) for each, name in zip(said, ("one", "two"), strict=False)]
    guard = desk.guard(deny("double"), plugins=plugins)
    guard.check("double", {"number": 3})
    [[_, decided, *_]] = calls_of(desk.events())
    assert decided["decision"]["policy"]["policy_id"] == holds


@requirement("sdk:plugins")
def test_no_grant_and_no_callback_answers_a_plugin(desk: Desk) -> None:
    asked: list[object] = []
    guard = desk.guard(asks("double"), approvals=asked.append, plugins=[Says(NO)])
    with pytest.raises(Blocked):
        double(guard, [])(3)
    assert asked == []
    assert not [e for e in desk.events() if e["type"] == "approval_requested"]


@requirement("sdk:plugins")
def test_a_grant_does_not_pass_a_plugin(desk: Desk) -> None:
    plugin = Says()
    guard = desk.guard(asks("double"), plugins=[plugin])
    guard.check("double", {"number": 3})
    run_sub("approve", desk.pending())
    plugin.found = NO
    assert guard.check("double", {"number": 3}).reason_code == "MINE"
    plugin.found = None
    assert guard.check("double", {"number": 3}).reason_code == "APPROVAL_GRANTED"


@requirement("sdk:plugins")
@KINDS
def test_a_plugin_refuses_after_the_decision(desk: Desk, plugin_kind: Any) -> None:
    guard, ran = desk.guard(plugins=[plugin_kind(after=NO)]), []
    with pytest.raises(Blocked, match="the plugin says so"):
        double(guard, ran)(3)
    assert ran == []
    passed, refused = calls_of(desk.events())
    assert (passed[1]["decision"]["action"], passed[2]["status"]) == ("ALLOW", "CANCELLED")
    assert refused[0]["call"]["retry_of"] == passed[0]["call"]["call_id"]
    assert refused[1]["decision"]["policy"]["policy_id"] == "plugin:says"


@requirement("sdk:plugin-fails")
@KINDS
@pytest.mark.parametrize("hook", ["found", "after"])
@pytest.mark.parametrize(
    "failure",
    [
        RuntimeError(f"no connection with {SECRET}"),
        "yes",
        decision("MAYBE"),
        decision("THROTTLE"),
        decision("REJECT_WITH_HINT"),
        decision("TERMINATE_RUN"),
    ],
)
def test_a_plugin_that_fails_denies(
    desk: Desk, plugin_kind: Any, hook: str, failure: object
) -> None:
    errors = Errors()
    guard, ran = desk.guard(plugins=[plugin_kind(**{hook: failure})], on_error=errors), []
    with pytest.raises(Blocked, match="plugin `says` failed") as refused:
        double(guard, ran)(3)
    assert ran == []
    assert refused.value.reason_code == "PLUGIN_ERROR"
    assert SECRET not in str(refused.value)
    where = "before_check" if hook == "found" else "after_decision"
    assert [each for _, each in errors] == [f"{where} of plugin says"]


@requirement("sdk:plugin-fails")
def test_a_plugin_that_fails_open_refuses_nothing(desk: Desk) -> None:
    errors, plugin = Errors(), Says(RuntimeError("no"), after=RuntimeError("no"))
    plugin.fail_open = True  # type: ignore[attr-defined]
    assert double(desk.guard(plugins=[plugin], on_error=errors), [])(3) == 6
    assert len(errors) == 2


@requirement("sdk:errors-told")
def test_a_plugin_that_fails_after_the_end_changes_nothing(desk: Desk) -> None:
    class Fails:
        name = "fails"

        def after_execution(self, *_: object) -> None:
            raise RuntimeError("too late")

    errors = Errors()
    assert double(desk.guard(plugins=[Fails()], on_error=errors), [])(3) == 6
    assert errors == [("RuntimeError", "after_execution of plugin fails")]


@requirement("sdk:errors-told")
def test_a_bug_of_ours_is_told(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    errors = Errors()
    guard = desk.guard(deny("rm"), on_error=errors)
    guard.check("t", {})
    broken = ZeroDivisionError("ours")
    monkeypatch.setattr(
        "subluminal.policy.evaluation.Engine.evaluate", lambda *_, **__: _said(broken)
    )
    assert guard.check("t", {}).action == "BLOCK"  # decision_on_error
    assert errors == [("ZeroDivisionError", "a bug in subluminal")]


def test_a_plugin_cannot_change_the_arguments(desk: Desk) -> None:
    class Changes:
        name = "changes"

        def before_check(self, call: ToolCall) -> None:
            assert call.args is not None
            call.args.clear()

    guard = desk.guard(plugins=[Changes()])
    assert double(guard, [])(3) == 6
    [[start, *_]] = calls_of(desk.events())
    assert "3" in start["call"]["preview"]["args_preview"]


@pytest.mark.parametrize("plugins", [[object()], [Says(name="")], [Says(), Says()]])
def test_plugins_that_cannot_be_meant(plugins: list[Any]) -> None:
    with pytest.raises(ValueError, match="name"):
        Guard(plugins=plugins)


def test_a_call_that_is_cancelled_while_plugins_are_told_ends(desk: Desk) -> None:
    class Slow:
        name = "slow"

        async def after_decision(self, _call: ToolCall, _decision: Decision) -> None:
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
            await asyncio.sleep(0)

    async def main(guard: Guard) -> None:
        async with guard.call("refund", {}):
            raise AssertionError

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(main(desk.guard(plugins=[Slow()])))
    ((_, made, end),) = calls_of(desk.events())
    assert (made["decision"]["action"], end["status"]) == ("ALLOW", "CANCELLED")


def test_a_function_gets_the_arguments_that_were_decided(desk: Desk) -> None:
    """Whoever runs between the decision and the function, such as during a wait for a person."""
    orders = ["A-7"]

    class Adds:
        name = "adds"

        def after_decision(self, _call: ToolCall, _decision: Decision) -> None:
            orders.append("B-8")

    guard = desk.guard(plugins=[Adds()])

    @guard.tool
    def refund(orders: list[str]) -> None:
        raise AssertionError(orders)

    with pytest.raises(Blocked, match="changed while it was decided"):
        refund(orders)
    passed, refused = calls_of(desk.events())
    assert passed[-1]["status"] == "CANCELLED"
    assert refused[0]["call"]["retry_of"] == passed[0]["call"]["call_id"]


def test_only_true_lets_a_call_pass_that_a_plugin_failed_to_judge(desk: Desk) -> None:
    class Fails:
        name = "fails"
        fail_open = "no"

        def before_check(self, _call: ToolCall) -> None:
            raise RuntimeError("no")

    assert desk.guard(plugins=[Fails()]).check("refund", {}).reason_code == "PLUGIN_ERROR"
