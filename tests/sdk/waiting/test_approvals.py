"""Calls that wait for a person, because the program chose to (no-call-waits)."""

import asyncio
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.adapters.policies import bundle, rule
from tests.processes import WITHIN_S, wait_until
from tests.requirements import requirement
from tests.sdk.waiting.conftest import Background, Desk, asks, run_sub

from subluminal import Blocked, Guard, Rejected, RunTerminated
from subluminal.config.places import places
from subluminal.core.controls.grants import find_waiting

ASKED = ("REJECT_WITH_HINT", "APPROVAL_REQUIRED", None)
GRANTED = ("ALLOW", "APPROVAL_GRANTED", 0)
DENIED = ("BLOCK", "APPROVAL_DENIED", 0)


def refund_of(guard: Guard, ran: list[int]) -> Any:
    @guard.tool
    def refund(amount: int) -> str:
        ran.append(amount)
        return "paid"

    return refund


@requirement("sdk:approvals-off")
def test_without_approvals_a_refusal_is_raised_at_once(desk: Desk) -> None:
    refund = refund_of(desk.guard(asks()), ran := [])
    with pytest.raises(Rejected, match="this is approval") as refused:
        refund(5)
    assert refused.value.approval_id == desk.pending()
    assert ran == []
    assert desk.tries() == [ASKED]


@requirement("sdk:approvals-wait")
def test_a_call_waits_for_sub_approve_while_others_go_on(desk: Desk) -> None:
    guard = desk.guard(asks(), approvals="wait")
    waiting = Background(lambda: refund_of(guard, [])(5))
    approval = desk.pending()
    for number in range(20):
        assert guard.check("other", {"n": number}).action == "ALLOW"
    assert not waiting.is_over
    run_sub("approve", approval)
    assert waiting.done() == "paid"
    assert desk.tries() == [ASKED, GRANTED]


@requirement("sdk:approvals-wait")
def test_a_no_ends_the_wait(desk: Desk) -> None:
    refund = refund_of(desk.guard(asks(), approvals="wait"), ran := [])
    waiting = Background(lambda: refund(5))
    run_sub("deny", desk.pending(), "--reason", "too much")
    refused = waiting.done()
    assert isinstance(refused, Blocked)
    assert "too much" in str(refused)
    assert ran == []
    assert desk.tries() == [ASKED, DENIED]


@requirement("sdk:approval-timeout")
def test_nobody_answers_in_time(desk: Desk) -> None:
    refund = refund_of(desk.guard(asks(), approvals="wait", approval_timeout_ms=1), ran := [])
    with pytest.raises(Blocked, match="nobody answered") as refused:
        refund(5)
    assert (refused.value.outcome, refused.value.rule_id) == ("TIMEOUT", "ask-refund")
    assert ran == []
    assert desk.tries() == [ASKED, ("BLOCK", "APPROVAL_TIMEOUT", 0)]


@requirement("sdk:approvals-wait")
def test_tasks_wait_without_holding_up_their_loop(desk: Desk) -> None:
    guard = desk.guard(asks(), approvals="wait")

    @guard.tool
    async def refund(amount: int) -> str:
        return "paid"

    async def work() -> tuple[str, int]:
        waiting = asyncio.create_task(refund(5))
        others = 0
        while not waiting.done():
            async with guard.call("other", {"n": others}):
                others += 1
            if others == 3:
                loop = asyncio.get_running_loop()
                approval = await loop.run_in_executor(None, desk.pending)
                await loop.run_in_executor(None, run_sub, "approve", approval)
            await asyncio.sleep(0)
        return await waiting, others

    result, others = asyncio.run(work())
    assert result == "paid"
    assert others >= 3  # before anybody answered
    assert desk.tries() == [ASKED, GRANTED]


@requirement("sdk:wait-ends")
def test_a_kill_ends_the_wait(desk: Desk) -> None:
    refund = refund_of(desk.guard(asks(), approvals="wait"), ran := [])
    waiting = Background(lambda: refund(5))
    desk.pending()
    run_sub("kill", "run-1")
    assert isinstance(waiting.done(), RunTerminated)
    assert ran == []
    assert desk.tries() == [ASKED, ("TERMINATE_RUN", "RUN_TERMINATED", 0)]


@requirement("sdk:wait-ends")
def test_a_rule_that_ends_the_run_ends_the_wait(desk: Desk) -> None:
    once = {"scope": "run", "limit_calls": 1, "on_exceed": "TERMINATE_RUN"}
    ends = rule("once", "budget", {"budget": once}, tool_name={"glob": ["last"]})
    guard = desk.guard(asks(), ends, approvals="wait")
    waiting = Background(lambda: refund_of(guard, [])(5))
    desk.pending()
    guard.check("last", {})
    assert not waiting.is_over
    guard.check("last", {})
    assert isinstance(waiting.done(), RunTerminated)


@requirement("sdk:wait-ends")
def test_a_guard_that_is_closed_ends_the_wait(desk: Desk) -> None:
    guard = desk.guard(asks(), approvals="wait")
    waiting = Background(lambda: refund_of(guard, [])(5))
    desk.pending()
    guard.close()
    assert isinstance(waiting.done(), Rejected)
    assert desk.tries() == [ASKED]


PROGRAM = """
import sys, threading
from concurrent.futures import ThreadPoolExecutor
from subluminal import Guard
guard = Guard(policy=sys.argv[1], approvals="wait", run_id="run-1")
def wait():
    with guard.call("refund", {"amount": 5}):
        pass
if sys.argv[2] == "pool":
    ThreadPoolExecutor(1).submit(wait)
elif sys.argv[2] == "thread":
    threading.Thread(target=wait).start()
else:
    import os
    if os.fork() == 0:
        wait()
        os.write(1, b"passed")
    else:
        os.wait()
    print("", *{"asyncio"} & set(sys.modules))
    os._exit(0)
print("leaving", flush=True)
sys.stdin.readline()
"""


def program(desk: Desk, tmp_path: Path, mode: str) -> subprocess.Popen[str]:
    policy = tmp_path / "policy.json"
    policy.write_text(json.dumps(bundle(asks())))
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(policy), mode],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


@requirement("sdk:wait-ends")
@pytest.mark.parametrize("mode", ["pool", "thread"])
def test_the_end_of_the_interpreter_ends_the_wait(desk: Desk, tmp_path: Path, mode: str) -> None:
    with program(desk, tmp_path, mode) as process:
        desk.pending()
        try:
            process.communicate("\n", timeout=WITHIN_S)
        finally:
            process.kill()
        assert process.returncode == 0


@requirement("sdk:approvals-wait")
def test_a_forked_child_waits_for_itself_and_loads_no_asyncio(desk: Desk, tmp_path: Path) -> None:
    with program(desk, tmp_path, "fork") as process:
        run_sub("approve", desk.pending())
        out, _ = process.communicate(timeout=WITHIN_S)
    assert out.split() == ["passed"]


@requirement("sdk:grant-once")
@pytest.mark.parametrize("kind", ["threads", "tasks"])
def test_eight_wait_and_one_passes(desk: Desk, kind: str) -> None:
    guard, ran = desk.guard(asks(), approvals="wait"), []

    async def one() -> None:
        async with guard.call("refund", {"amount": 5}):
            ran.append(5)

    async def all_of_them() -> list[Any]:
        return await asyncio.gather(*(one() for _ in range(8)), return_exceptions=True)

    if kind == "threads":
        waiting = [Background(lambda: refund_of(guard, ran)(5)) for _ in range(8)]
    else:
        waiting = [Background(lambda: asyncio.run(all_of_them()))]
    first = desk.pending()
    wait_until(lambda: _asked(first) == 8, "eight calls that wait")
    run_sub("approve", first)
    second = desk.pending(besides=first)
    wait_until(lambda: _asked(second) == 7, "seven calls that wait again")
    assert ran == [5]
    run_sub("deny", second)
    found = [each.done() for each in waiting]
    refused = found if kind == "threads" else found[0]
    assert sum(isinstance(each, Blocked) for each in refused) == 7
    assert ran == [5]
    actions = [action for action, _, _ in desk.tries()]
    assert actions.count("ALLOW") == 1


def _asked(approval_id: str) -> int:
    return find_waiting(places(os.environ), approval_id).request.asked


@requirement("sdk:wait-ends")
def test_a_cancelled_task_waits_no_more(desk: Desk) -> None:
    cancelled = threading.Event()

    async def ask(_refused: object) -> None:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    guard = desk.guard(asks(), approvals=ask)

    async def work() -> None:
        async def one() -> None:
            async with guard.call("refund", {"amount": 5}):
                pass

        task = asyncio.create_task(one())
        await asyncio.get_running_loop().run_in_executor(None, desk.pending)
        while len(asyncio.all_tasks()) < 3:  # this one, the call and the callback
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        while not cancelled.is_set():
            await asyncio.sleep(0)

    asyncio.run(asyncio.wait_for(work(), WITHIN_S))
    assert desk.tries() == [ASKED]


def test_check_never_waits(desk: Desk) -> None:
    guard = desk.guard(asks(), approvals="wait")
    assert guard.check("refund", {"amount": 5}).reason_code == "APPROVAL_REQUIRED"
    assert desk.tries() == [ASKED]


@pytest.mark.parametrize(
    "options", [{"approvals": "ask"}, {"on_throttle": "no"}, {"approval_timeout_ms": -1}]
)
def test_options_that_cannot_be_meant(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must"):
        Guard(**options)
