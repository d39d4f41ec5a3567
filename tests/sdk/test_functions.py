"""Guarded functions of every kind: what they return, raise and leave on record."""

import asyncio
import functools
import gc
import inspect
import typing
from collections.abc import AsyncGenerator, Callable, Generator
from concurrent import futures
from typing import Any

import pytest
from tests.adapters.policies import bundle, deny, rule, throttle
from tests.requirements import requirement
from tests.sdk.conftest import Office

from subluminal import Blocked, Guard, PolicyError, Refused, Rejected, RunTerminated, Throttled
from subluminal.errors import SubluminalError

TOO_MUCH = {
    "action": "REJECT_WITH_HINT",
    "reason_code": "TOO_MUCH",
    "message": "too much",
    "suggest": {"amount": {"clamp_max": 99}},
}
NOT_MUCH = rule("limit", "deny", TOO_MUCH, args={"numeric_range": {"amount": {"min": 100}}})
SECRET = "ghp_" + "aB3d" * 9


def test_a_function_runs_as_before_and_is_on_record(office: Office) -> None:
    guard = office.guard()

    @guard.tool
    def refund(order: str, amount: int = 5) -> str:
        """Pays money back."""
        return f"{order}: {amount}"

    assert refund("a", amount=7) == "a: 7"
    assert refund.__name__ == "refund"
    assert refund.__doc__ == "Pays money back."
    assert list(inspect.signature(refund).parameters) == ["order", "amount"]
    assert typing.get_type_hints(refund) == {"order": str, "amount": int, "return": str}
    (call,) = office.calls()
    assert call[0]["call"]["server_name"] == "python"
    assert call[0]["call"]["tool_name"] == "refund"
    assert call[0]["call"]["transport"] == "in_process"
    assert call[0]["call"]["preview"]["args_preview"] == '{"amount":7,"order":"a"}'
    assert (call[2]["status"], call[2]["preview"]["result_preview"]) == ("OK", '"a: 7"')


@requirement("sdk:refusals")
def test_a_refusal_says_what_would_pass_and_the_function_does_not_run(office: Office) -> None:
    guard, ran = office.guard(NOT_MUCH), []

    @guard.tool
    def refund(order: str, amount: int) -> None:
        ran.append(amount)

    with pytest.raises(Rejected) as caught:
        refund("a", 500)
    refused = caught.value
    assert ran == []
    assert (refused.rule_id, refused.reason_code) == ("limit", "TOO_MUCH")
    assert refused.suggested_args == {"order": "a", "amount": 99}
    assert (refused.run_id, refused.outcome) == ("run-1", "DENY")
    assert str(refused) == (
        "Rejected by policy (rule limit): too much. Suggested arguments: "
        '{"order":"a","amount":99}. Retry with the suggested arguments.'
    )
    refund(**refused.suggested_args)
    assert ran == [99]
    calls = office.calls()
    assert calls[0][0]["call"]["call_id"] == refused.call_id
    assert calls[0][2]["error"]["message"] == "too much"


@requirement("sdk:refusals")
def test_each_action_has_its_own_exception(office: Office) -> None:
    ending = {"budget": {"scope": "tool", "limit_calls": 0, "on_exceed": "TERMINATE_RUN"}}
    guard = office.guard(
        deny("rm"),
        throttle(1, 250),
        rule("end", "budget", ending, tool_name={"glob": ["end"]}),
    )
    with guard.call("read", {}):
        pass
    with pytest.raises(Throttled) as slow, guard.call("read", {}):
        pass
    assert slow.value.backoff_ms is not None
    with pytest.raises(Blocked), guard.call("rm", {}):
        pass
    with pytest.raises(RunTerminated) as over, guard.call("end", {}):
        pass
    assert over.value.outcome == "KILL_SWITCH"
    with pytest.raises(RunTerminated), guard.call("read", {}):
        pass
    assert issubclass(RunTerminated, Refused)


@requirement("sdk:refusals-returned")
def test_refusals_can_be_returned_but_the_end_of_a_run_is_raised(office: Office) -> None:
    ending = {"budget": {"scope": "tool", "limit_calls": 0, "on_exceed": "TERMINATE_RUN"}}
    end = rule("end", "budget", ending, tool_name={"glob": ["end"]})
    guard = office.guard(deny("rm"), end, refusals="return")

    def rm() -> str:
        raise AssertionError("it ran")

    async def rm_later() -> str:
        raise AssertionError("it ran")

    def rm_each() -> Generator[str, None, None]:
        yield "it ran"

    async def rm_each_later() -> AsyncGenerator[str, None]:
        yield "it ran"

    named = guard.tool(name="rm")
    said = named(rm)()
    assert said.startswith("Blocked by policy")
    assert asyncio.run(named(rm_later)()) == said
    assert list(named(rm_each)()) == [said]

    async def collected() -> list[str]:
        return [each async for each in named(rm_each_later)()]

    assert asyncio.run(collected()) == [said]
    with pytest.raises(RunTerminated):
        guard.tool(name="end")(rm)()


def test_a_check_is_on_record_and_never_raises(office: Office) -> None:
    guard = office.guard(deny("rm"))
    assert guard.check("rm", {"path": "/"}).action == "BLOCK"
    decision = guard.check("ls", {"path": "/"})
    assert (decision.action, decision.reason_code) == ("ALLOW", "DEFAULT_ALLOW")
    statuses = [call[2]["status"] for call in office.calls()]
    assert statuses == ["ERROR", "OK"]


@requirement("sdk:ends")
def test_an_exception_is_an_error_with_its_secrets_masked(office: Office) -> None:
    guard = office.guard()

    @guard.tool
    def fail() -> None:
        raise ValueError(f"token {SECRET} is wrong")

    with pytest.raises(ValueError, match=SECRET):
        fail()
    (call,) = office.calls()
    assert (call[2]["status"], call[2]["error"]["code"]) == ("ERROR", "ValueError")
    assert call[2]["error"]["message"].startswith("ValueError: token ")
    assert SECRET not in str(call)


@requirement("sdk:ends")
@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit, futures.CancelledError])
def test_who_gives_up_cancels_the_call(office: Office, stop: type[BaseException]) -> None:
    guard = office.guard()
    with pytest.raises(stop), guard.call("t", {}):
        raise stop
    assert [status for status, _ in office.ends()] == ["CANCELLED"]


@requirement("sdk:ends")
def test_a_cancelled_task_cancels_its_call(office: Office) -> None:
    guard = office.guard()

    @guard.tool
    async def hang(started: str) -> None:
        waiting.set()
        await asyncio.Event().wait()

    async def main() -> None:
        global waiting
        waiting = asyncio.Event()
        task = asyncio.create_task(hang("x"))
        await waiting.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert [status for status, _ in office.ends()] == ["CANCELLED"]


waiting: asyncio.Event


@requirement("sdk:streams")
def test_a_stream_ends_when_it_is_exhausted_closed_or_fails(office: Office) -> None:
    guard = office.guard()

    @guard.tool
    def count(to: int, fail: bool = False) -> Generator[int, int, str]:
        got = 0
        for number in range(to):
            got += (yield number) or 0
        if fail:
            raise OSError("no more")
        return f"got {got}"

    assert inspect.isgeneratorfunction(count)
    assert list(count(3)) == [0, 1, 2]
    sent = count(2)
    next(sent)
    sent.send(5)
    with pytest.raises(StopIteration) as stopped:
        sent.send(6)
    assert stopped.value.value == "got 11"
    half = count(3)
    next(half)
    half.close()
    with pytest.raises(OSError, match="no more"):
        list(count(1, fail=True))
    thrown = count(3)
    next(thrown)
    with pytest.raises(KeyError):
        thrown.throw(KeyError("x"))
    left = count(3)
    next(left)
    del left
    gc.collect()
    count(3)  # never asked for an item: it has not run, and nothing is decided
    assert office.ends() == [
        ("OK", "[0,1,2]"),
        ("OK", "[0,1]"),
        ("CANCELLED", "GeneratorExit"),
        ("ERROR", "OSError: no more"),
        ("ERROR", "KeyError: 'x'"),
        ("CANCELLED", "GeneratorExit"),
    ]


@requirement("sdk:streams")
def test_an_asynchronous_stream_ends_likewise(office: Office) -> None:
    guard = office.guard()

    @guard.tool
    async def count(to: int, fail: bool = False) -> AsyncGenerator[int, int]:
        for number in range(to):
            await asyncio.sleep(0)
            yield number
        if fail:
            raise OSError("no more")

    async def main() -> None:
        assert [each async for each in count(2)] == [0, 1]
        half = count(3)
        await half.__anext__()
        await half.aclose()
        with pytest.raises(OSError, match="no more"):
            _ = [each async for each in count(1, fail=True)]
        thrown = count(3)
        await thrown.__anext__()
        with pytest.raises(KeyError):
            await thrown.athrow(KeyError("x"))
        left = count(3)
        await left.__anext__()
        del left
        gc.collect()
        await asyncio.sleep(0)

    assert inspect.isasyncgenfunction(count)
    asyncio.run(main())
    assert [status for status, _ in office.ends()] == [
        *("OK", "CANCELLED", "ERROR", "ERROR", "CANCELLED"),
    ]


def _take(a: int, /, b: str = "x", *rest: int, c: object = object, **more: int) -> list[Any]:
    return [a, b, rest, c, more]


@requirement("sdk:binding")
def test_wrong_arguments_fail_at_the_call_whatever_the_kind(office: Office) -> None:
    """As with the functions themselves: not at the first item, and not when they are awaited."""
    guard = office.guard()

    async def coroutine(a: int, /, b: str = "x", *rest: int, c: object = object, **d: int) -> Any:
        return _take(a, b, *rest, c=c, **d)

    def stream(a: int, /, b: str = "x", *rest: int, c: object = object, **d: int) -> Any:
        yield _take(a, b, *rest, c=c, **d)

    async def async_stream(
        a: int, /, b: str = "x", *rest: int, c: object = object, **d: int
    ) -> Any:
        yield _take(a, b, *rest, c=c, **d)

    async def first(found: Any) -> Any:
        return await found if inspect.isawaitable(found) else await anext(found)

    for function in (coroutine, stream, async_stream):
        tool: Any = guard.tool(function)
        for wrong in (lambda f: f(), lambda f: f(a=1), lambda f: f(1, "b", b="c")):
            with pytest.raises(TypeError) as told:
                wrong(tool)
            with pytest.raises(TypeError) as expected:
                wrong(function)
            assert str(told.value).split("()")[1:] == str(expected.value).split("()")[1:]
        for args, named in (((1,), {}), ((1, "b", 3), {"c": 4, "a": 5}), ((1,), {"b": "z"})):
            got = tool(*args, **named)
            value = next(got) if function is stream else asyncio.run(first(got))
            assert value == _take(*args, **named)
    assert len(office.calls()) == 9, "wrong calls are none"


def test_names_of_parameters_are_free(office: Office) -> None:
    """A wrapper has names of its own, which give way to those of the function."""
    guard = office.guard()

    @guard.tool
    async def count(stream: int, error: int, _0: int = 3, _1: int = 4) -> AsyncGenerator[int, None]:
        for each in (stream, error, _0, _1):
            yield each

    async def main() -> list[int]:
        return [each async for each in count(1, 2, _1=5)]

    assert asyncio.run(main()) == [1, 2, 3, 5]


def test_many_items_of_a_stream_are_counted_and_not_kept(office: Office) -> None:
    guard = office.guard()
    assert sum(guard.tool(name="n")(lambda: (n for n in range(1000)))()) == 499_500
    ((status, shown),) = office.ends()
    assert status == "OK"
    assert shown.startswith('{"items":1000,"first":[0,1,2,')
    assert shown.endswith("63]}")


def test_what_a_plain_function_returns_to_await_or_iterate_ends_its_call(office: Office) -> None:
    guard = office.guard()

    async def soon() -> str:
        return "soon"

    async def each() -> AsyncGenerator[int, None]:
        yield 1

    async def main() -> None:
        assert await guard.tool(name="a")(lambda: soon())() == "soon"
        assert [n async for n in guard.tool(name="b")(lambda: each())()] == [1]

    asyncio.run(main())
    assert office.ends() == [("OK", '"soon"'), ("OK", "[1]")]


class Shop:
    """Methods of every kind."""

    def __init__(self, guard: Guard) -> None:
        self.sell = guard.tool(self._sell)

    def _sell(self, item: str) -> str:
        return f"sold {item}"


def made(guard: Guard) -> type[Any]:
    class Till:
        @guard.tool
        def pay(self, amount: int) -> int:
            return amount

        @guard.tool
        @classmethod
        def of(cls, name: str) -> str:
            return f"{cls.__name__} {name}"

        @classmethod
        @guard.tool
        def same(cls, name: str) -> str:
            return f"{cls.__name__} {name}"

        @guard.tool
        @staticmethod
        def plain(name: str) -> str:
            return name

        @guard.tool
        async def later(self, amount: int) -> int:
            return amount

        def __call__(self, amount: int) -> int:
            return -amount

    return Till


@requirement("sdk:binding")
def test_methods_callables_and_partials_without_self(office: Office) -> None:
    guard = office.guard()
    till = made(guard)
    assert Shop(guard).sell("tea") == "sold tea"
    assert till().pay(3) == 3
    assert till.of("x") == "Till x"
    assert till.same("x") == "Till x"
    assert till.plain("y") == "y"
    assert asyncio.run(till().later(amount=4)) == 4
    assert guard.tool(till())(5) == -5
    add: Callable[..., int] = functools.partial(lambda a, b, c: a + b + c, 1, c=3)
    assert guard.tool(add)(2) == 6
    later = functools.partial(functools.partial(made(guard).later, till()), amount=6)
    assert inspect.iscoroutinefunction(guard.tool(later))
    calls = [call[0]["call"] for call in office.calls()]
    assert [(call["tool_name"], call["preview"]["args_preview"]) for call in calls] == [
        ("_sell", '{"item":"tea"}'),
        ("pay", '{"amount":3}'),
        ("of", '{"name":"x"}'),
        ("same", '{"name":"x"}'),
        ("plain", '{"name":"y"}'),
        ("later", '{"amount":4}'),
        ("Till", '{"amount":5}'),
        ("<lambda>", '{"b":2,"c":3}'),
    ]


def test_a_closed_guard_runs_nothing(office: Office) -> None:
    guard = office.guard()
    guard.close()
    with pytest.raises(SubluminalError, match="closed"):
        guard.tool(lambda: 1)()


@requirement("sdk:policy-error")
def test_a_policy_that_cannot_be_used_is_an_error_at_construction(
    office: Office, tmp_path: Any
) -> None:
    broken = tmp_path / "broken.yaml"
    broken.write_text("policy_id: [")
    wrong: list[Any] = [{"policy_id": "x"}, {"x": object()}, broken, str(tmp_path / "absent.yaml")]
    for policy in wrong:
        with pytest.raises(PolicyError):
            Guard(policy=policy)
    with pytest.raises(PolicyError, match=r"^`policy` cannot be used: missing field `mode`"):
        Guard(policy={"policy_id": "x"})
    with pytest.raises(PolicyError, match=r"broken.yaml:2:1"):
        Guard(policy=broken)
    guard = office.guard(policy=bundle(deny("rm")))
    assert guard.check("rm", {}).action == "BLOCK"


def test_a_policy_may_be_written_as_briefly_as_in_yaml(office: Office) -> None:
    short = {"rule_id": "no-rm", "kind": "deny", "match": {"tool_name": {"glob": ["rm"]}}}
    guard = office.guard(policy={"policy_id": "mine", "mode": "guardrails", "rules": [short]})
    told = guard.check("rm", {})
    assert (told.action, told.rule_id, told.reason_code) == ("REJECT_WITH_HINT", "no-rm", "DENIED")
    assert guard.check("ls", {}).action == "ALLOW"
