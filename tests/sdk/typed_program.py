"""A program whose types mypy --strict must find as they are written here. It is never run."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from typing import assert_type

from subluminal import Blocked, Guard, Refused

guard = Guard(agent_id="billing", policy={"rules": []}, refusals="return")


@guard.tool
def refund(order: str, amount: int = 5) -> float:
    return amount / 2


@guard.tool(name="later", labels=["PII"], targets={"path": "file"})
async def refund_later(file: str, *, amount: int) -> float:
    return amount / 2


@guard.tool
def each(to: int) -> Generator[int, None, str]:
    yield to
    return "done"


@guard.tool
async def each_later(to: int) -> AsyncGenerator[int, None]:
    yield to


class Shop:
    @guard.tool
    def sell(self, item: str) -> bool:
        return bool(item)


async def main() -> None:
    assert_type(refund("a", amount=1), float)
    assert_type(await refund_later("f", amount=2), float)
    assert_type(each(3), Generator[int, None, str])
    assert_type(each_later(3), AsyncGenerator[int, None])
    assert_type(Shop().sell("x"), bool)
    taken: Callable[[str, int], float] = refund
    awaited: Awaitable[float] = refund_later("f", amount=1)
    refund(1)  # type: ignore[arg-type]
    refund("a", 1, 2)  # type: ignore[call-arg]
    with guard.call("refund", {"order": 7}) as call:
        call.result = [taken, awaited]
        assert_type(call.call_id, str)
        assert_type(call.offer(), dict[str, str])
    async with guard.run("r") as run, guard.delegate("helper").call("t", {}):
        assert_type(run.run_id, str)
    try:
        assert_type(guard.check("t", {}, labels={"PII"}).rule_id, str | None)
    except Blocked as blocked:
        assert_type(blocked.backoff_ms, int | None)
    except Refused as refused:
        assert_type(refused.hint, str | None)
    assert_type(guard.environ(), dict[str, str])
