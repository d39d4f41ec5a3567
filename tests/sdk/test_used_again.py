"""What a program does twice, drops, or carries to another process or context."""

import asyncio
import copy
import gc
import pickle
from contextvars import copy_context
from enum import StrEnum
from typing import Any

import pytest
from tests.adapters.policies import deny
from tests.sdk.conftest import Office

from subluminal import Blocked
from subluminal.spm import Decision, Reason, SecurityError


class Quiet:
    """A plugin that has nothing to say: calls of its guard take the longer way."""

    name = "quiet"


@pytest.mark.parametrize("plugins", [(), (Quiet(),)])
@pytest.mark.parametrize("kind", ["with", "async with"])
def test_a_decision_is_for_one_execution(office: Office, kind: str, plugins: Any) -> None:
    """A loop that tries a refused call again must not find it begun, and go on."""
    guard = office.guard(deny("rm"), plugins=plugins)
    ran: list[str] = []

    def use(call: Any) -> None:
        with call:
            ran.append("sync")

    async def use_async(call: Any) -> None:
        async with call:
            ran.append("async")

    for tool, first in (("rm", pytest.raises(Blocked)), ("ls", None)):
        call = guard.call(tool, {})
        for expected in (first, pytest.raises(RuntimeError, match="was made already")):
            try:
                use(call) if kind == "with" else asyncio.run(use_async(call))
            except BaseException as error:
                assert expected is not None
                with expected:
                    raise error from None
            else:
                assert expected is None
    assert len(ran) == 1
    assert len(office.calls()) == 2


def test_a_refusal_can_be_carried_to_another_process(office: Office) -> None:
    """A pool of processes that cannot read what its worker raised is broken, or hangs."""
    guard = office.guard(deny("rm"))
    with pytest.raises(Blocked) as caught, guard.call("rm", {"order": 7}):
        pass
    refused = caught.value
    for found in (pickle.loads(pickle.dumps(refused)), copy.copy(refused)):
        assert type(found) is Blocked
        assert str(found) == str(refused)
        assert vars(found) == vars(refused)
        assert found.reason_code == refused.reason_code
    error = SecurityError(Decision(outcome="DENY", reasons=(Reason("NO", "not here"),)))
    found = pickle.loads(pickle.dumps(error))
    assert (str(found), found.decision) == (str(error), error.decision)


def test_a_scope_that_is_left_in_another_context_ends_its_run(office: Office) -> None:
    """As frameworks do with generators that they enter and leave in different threads."""
    guard = office.guard()
    scope = guard.run("a")
    copy_context().run(scope.__enter__)
    copy_context().run(scope.__exit__, None, None, None)
    assert guard.run_id == "run-1"
    ends = [each["run_id"] for each in office.events() if each["type"] == "run_end"]
    assert ends[0] == "a"


def test_a_scope_is_entered_once(office: Office) -> None:
    guard = office.guard()
    scope = guard.run("a")
    with scope, pytest.raises(RuntimeError, match="entered before"):
        scope.__enter__()
    assert guard.run_id == "run-1"
    with pytest.raises(RuntimeError, match="entered before"):
        scope.__enter__()


class Ticket:
    """What some libraries return: something to await that is no coroutine."""

    def __await__(self) -> Any:
        yield


@pytest.mark.parametrize("kind", ["generator", "async generator", "awaitable"])
def test_a_result_that_nobody_begins_to_use_ends_its_call(office: Office, kind: str) -> None:
    guard = office.guard()

    async def items() -> Any:
        yield 1

    made: dict[str, Any] = {
        "generator": lambda: (each for each in [1]),
        "async generator": items,
        "awaitable": Ticket,
    }
    result = guard.tool(name="t")(lambda: made[kind]())()
    if kind == "awaitable":
        result.close()  # or Python warns
    del result
    gc.collect()
    (end,) = office.ends()
    assert end == ("CANCELLED", "GeneratorExit: nobody used the result")


class Tool(StrEnum):
    REMOVE = "rm"


def test_a_member_of_an_enum_may_name_a_tool(office: Office) -> None:
    assert office.guard(deny("rm")).check(Tool.REMOVE, {}).action == "BLOCK"
