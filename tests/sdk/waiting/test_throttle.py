"""Calls that wait until a rate limit lets them pass."""

import asyncio
from typing import Any

import pytest
from tests.adapters.policies import rule, throttle
from tests.requirements import requirement
from tests.sdk.waiting.conftest import Background, Desk, run_sub

from subluminal import Guard, RunTerminated, Throttled

PASSED = ("ALLOW", "DEFAULT_ALLOW", None)
LIMITED = ("THROTTLE", "RATE_LIMITED", None)


def one_in(period_ms: int) -> dict[str, Any]:
    limit = {
        "scope": "run",
        "capacity": 1,
        "refill_tokens": 1,
        "refill_period_ms": period_ms,
        "on_limit": "THROTTLE",
        "backoff_ms": period_ms,
    }
    return rule("rate", "rate_limit", {"rate_limit": limit})


def call(guard: Guard) -> None:
    with guard.call("t", {}):
        pass


async def call_later(guard: Guard) -> None:
    async with guard.call("t", {}):
        pass


@requirement("sdk:on-throttle")
@pytest.mark.parametrize("caller", ["thread", "task"])
def test_a_throttled_call_waits_and_passes(desk: Desk, caller: str) -> None:
    guard = desk.guard(one_in(300), on_throttle="wait")
    for _ in range(2):
        call(guard) if caller == "thread" else asyncio.run(call_later(guard))
    first, second, *more = desk.tries("t")
    assert (first, second) == (PASSED, LIMITED)
    assert [number for *_, number in more] == list(range(1, len(more) + 1))
    assert more[-1][:2] == PASSED[:2]


@requirement("sdk:on-throttle")
def test_by_default_a_throttled_call_is_refused(desk: Desk) -> None:
    guard = desk.guard(one_in(300))
    call(guard)
    with pytest.raises(Throttled):
        call(guard)


@requirement("sdk:on-throttle")
def test_a_wait_that_would_take_too_long_is_not_begun(desk: Desk) -> None:
    guard = desk.guard(throttle(1, 3_600_000), on_throttle="wait")
    call(guard)
    with pytest.raises(Throttled):
        call(guard)
    assert desk.tries("t") == [PASSED, LIMITED]


@requirement("sdk:wait-ends")
def test_a_kill_ends_a_wait_for_a_rate_limit(desk: Desk) -> None:
    guard = desk.guard(throttle(1, 200_000), on_throttle="wait")
    call(guard)
    waiting = Background(lambda: call(guard))
    run_sub("kill", "run-1")
    assert isinstance(waiting.done(), RunTerminated)
