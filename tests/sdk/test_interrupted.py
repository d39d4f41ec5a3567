"""Code that Python runs in the middle of a guarded call, in the same thread."""

import gc
import sys
from collections.abc import Callable, Generator
from typing import Any

import pytest
from tests.adapters.policies import deny
from tests.requirements import requirement
from tests.sdk.conftest import Office

from subluminal import Blocked
from subluminal.contracts.vocabulary import Taint
from subluminal.core.enforcer import Enforcer
from subluminal.core.records.previews import Previewer


@requirement("sdk:interrupted")
def test_streams_that_are_collected_inside_of_other_calls_end_all_the_same(office: Office) -> None:
    """The collector runs at every allocation, so that it also runs where locks are held."""
    guard = office.guard()

    @guard.tool
    def stream(number: int) -> Generator[int, None, None]:
        yield number

    def abandoned(number: int) -> None:
        cycle: list[Any] = [stream(number)]
        next(cycle[0])
        cycle.append(cycle)

    for number in range(30):
        abandoned(number)
        before = gc.get_threshold()
        gc.set_threshold(1)
        try:
            guard.check("other", {"n": number})
        finally:
            gc.set_threshold(*before)
    gc.collect()
    guard.check("last", {})
    calls = office.calls()
    assert len(calls) == 61
    assert {len(call) for call in calls} == {3}


@requirement("sdk:interrupted")
@pytest.mark.parametrize("on_error", ["BLOCK", "ALLOW"])
def test_a_call_that_interrupts_another_follows_decision_on_error(
    office: Office, monkeypatch: pytest.MonkeyPatch, on_error: str
) -> None:
    """As from a signal handler that comes while a call is being decided."""
    from tests.adapters.policies import bundle

    guard = office.guard(policy=bundle(deny("rm"), decision_on_error=on_error))
    inner: list[str] = []
    masked = Enforcer.masked

    def interrupted(self: Enforcer, *args: Any) -> Any:
        if not inner:
            inner.append("…")
            inner[0] = guard.check("inner", {}).reason_code
        return masked(self, *args)

    monkeypatch.setattr(Enforcer, "masked", interrupted)
    with pytest.raises(Blocked), guard.call("rm", {}):
        pass
    monkeypatch.undo()
    assert guard.check("after", {}).action == "ALLOW"
    assert inner == ["EVALUATION_ERROR" if on_error == "BLOCK" else "JOURNAL_UNAVAILABLE"]
    assert len(office.calls()) == 2


@requirement("sdk:interrupted")
def test_an_end_that_comes_while_another_call_is_written_waits(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As from the collector, between the number of an event and its line."""
    guard = office.guard()

    @guard.tool
    def stream() -> Generator[int, None, None]:
        yield 1

    left = [stream()]
    next(left[0])
    shown = Previewer.args

    def collected(self: Previewer, *args: Any) -> Any:
        while left:
            left.pop().close()
        return shown(self, *args)

    monkeypatch.setattr(Previewer, "args", collected)
    guard.check("other", {})
    monkeypatch.undo()
    assert [call[-1].get("status") for call in office.calls()] == ["CANCELLED", "OK"]


@requirement("sdk:interrupted")
@pytest.mark.parametrize("what", ["is_over", "refuse", "taint", "begin"])
def test_no_call_of_a_host_holds_what_an_interrupting_call_needs(office: Office, what: str) -> None:
    """A call comes at every step, as from a signal handler; a lock that is held would be forever.

    Waits for approvals ask every 50 ms whether the call is over.
    """
    guard = office.guard()
    with guard.call("x", {}) as outer:
        pass
    host, call = outer.host, outer.ruling.call
    works: dict[str, Callable[[], object]] = {
        "is_over": lambda: host.is_over(call),
        "refuse": lambda: host.refuse(call, "MINE", "no"),
        "taint": host.taint,
        "begin": lambda: guard.check("y", {}),
    }
    inner: list[str] = []

    def interrupt(_frame: object, _event: str, _given: object) -> None:
        sys.setprofile(None)
        inner.append(guard.check("inner", {}).reason_code)
        assert not host.is_over(call)
        assert host.taint() in (Taint.SYSTEM, Taint.UNTRUSTED)
        sys.setprofile(interrupt)

    sys.setprofile(interrupt)
    try:
        works[what]()
    finally:
        sys.setprofile(None)
    assert set(inner) == {"DEFAULT_ALLOW", "JOURNAL_UNAVAILABLE"}
