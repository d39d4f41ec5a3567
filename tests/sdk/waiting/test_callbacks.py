"""A function of the program is asked whether a refused call may pass."""

import asyncio
import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.adapters.policies import rule
from tests.adapters.records import calls_of, lines_of
from tests.processes import WITHIN_S, wait_until
from tests.requirements import requirement
from tests.sdk.waiting.conftest import Background, Desk, asks, run_sub
from tests.sdk.waiting.test_approvals import ASKED, DENIED, GRANTED

from subluminal import Blocked, Guard, Refused
from subluminal.adapters.in_process.guarding.asking import Question, may_answer
from subluminal.adapters.in_process.guarding.waiting import Waits
from subluminal.config.places import places
from subluminal.contracts.vocabulary import Layer
from subluminal.core.controls.approval_files import Request
from subluminal.core.controls.grants import find_waiting
from subluminal.core.controls.passphrase import set_passphrase

SECRET = "ghp_" + "aB3d" * 9
TOO_LITTLE = {"action": "BLOCK", "reason_code": "TOO_LITTLE", "message": "too little"}
LITTLE = {"numeric_range": {"amount": {"max": 10}}}


def pay(guard: Guard) -> str:
    with guard.call("refund", {"amount": 5}):
        return "paid"


async def pay_later(guard: Guard) -> str:
    async with guard.call("refund", {"amount": 5}):
        return "paid"


class Errors(list[tuple[str, str]]):
    """What `on_error` is told."""

    def __call__(self, error: BaseException, where: str) -> None:
        self.append((type(error).__name__, where))


@requirement("sdk:callback")
@pytest.mark.parametrize("caller", ["thread", "task"])
@pytest.mark.parametrize("callback", ["plain", "coroutine", "returns a coroutine"])
def test_a_callback_says_yes(desk: Desk, caller: str, callback: str) -> None:
    asked: list[Any] = []

    def say(refused: Refused) -> bool:
        asked.append((refused.call and refused.call.args, refused.rule_id, refused.approval_id))
        return True

    async def say_later(refused: Refused) -> bool:
        await asyncio.sleep(0)
        return say(refused)

    ways = {"plain": say, "coroutine": say_later, "returns a coroutine": lambda r: say_later(r)}
    guard = desk.guard(asks(), approvals=ways[callback])
    paid = pay(guard) if caller == "thread" else asyncio.run(pay_later(guard))
    assert paid == "paid"
    [(args, rule_id, approval_id)] = asked
    assert (args, rule_id) == ({"amount": 5}, "ask-refund")
    answers = [e["approval"] for e in desk.events() if e["type"] == "approval_decided"]
    assert [each["approval_id"] for each in answers] == [approval_id]
    assert "callback" in answers[0]["reason"]
    assert desk.tries() == [ASKED, GRANTED]


@requirement("sdk:callback")
def test_a_coroutine_runs_on_the_loop_of_its_caller(desk: Desk) -> None:
    loops: list[object] = []

    async def say(_refused: Refused) -> bool:
        loops.append(asyncio.get_running_loop())
        return True

    guard = desk.guard(asks(), approvals=say)

    async def work() -> object:
        await pay_later(guard)
        return asyncio.get_running_loop()

    own = asyncio.run(work())
    assert loops == [own]


@requirement("sdk:callback")
def test_a_callback_says_no(desk: Desk) -> None:
    with pytest.raises(Blocked, match="said no"):
        pay(desk.guard(asks(), approvals=lambda _refused: False))
    assert desk.tries() == [ASKED, DENIED]


@requirement("sdk:callback")
def test_a_callback_that_says_nothing_leaves_it_to_a_person(desk: Desk) -> None:
    asked: list[str | None] = []
    guard = desk.guard(asks(), approvals=lambda refused: asked.append(refused.approval_id))
    waiting = Background(lambda: pay(guard))
    approval = desk.pending()
    wait_until(lambda: asked, "a question")
    run_sub("approve", approval)
    assert waiting.done() == "paid"
    assert asked == [approval]


@requirement("sdk:callback")
def test_the_first_answer_holds(desk: Desk) -> None:
    asked, go, late = threading.Event(), threading.Event(), threading.Event()

    def say(_refused: Refused) -> bool:
        asked.set()
        go.wait(WITHIN_S)
        late.set()
        return False

    guard = desk.guard(asks(), approvals=say)
    waiting = Background(lambda: pay(guard))
    assert asked.wait(WITHIN_S)
    run_sub("approve", desk.pending())
    assert waiting.done() == "paid"
    go.set()
    assert late.wait(WITHIN_S)
    wait_until(lambda: "subluminal" not in _threads(), "the end of the question")
    answers = [e["approval"]["answer"] for e in desk.events() if e["type"] == "approval_decided"]
    assert answers == ["approved"]


@requirement("sdk:callback")
def test_calls_that_wait_for_one_approval_ask_once(desk: Desk) -> None:
    asked: list[str | None] = []
    ready = threading.Event()

    def say(refused: Refused) -> bool:
        asked.append(refused.approval_id)
        ready.wait(WITHIN_S)
        return True

    guard = desk.guard(asks(), approvals=say)
    waiting = [Background(lambda: pay(guard)) for _ in range(4)]
    approval = desk.pending()
    where = places({"SUB_HOME": str(desk.home)})
    wait_until(lambda: find_waiting(where, approval).request.asked == 4, "four calls")
    wait_until(lambda: asked, "a question")
    assert asked == [approval]
    ready.set()
    assert [each.done() for each in waiting] == ["paid"] * 4
    assert len(asked) == len(set(asked)) == 4  # each yes is for one call
    grants = [call[1]["decision"].get("grant") for call in _calls(desk)]
    used = [grant["grant_id"] for grant in grants if grant]
    assert len(used) == len(set(used)) == 4


def test_nobody_asks_about_what_was_answered_meanwhile(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The call that asked before may get its answer between a look for it and the next question."""
    asked: list[str | None] = []

    def say(refused: Refused) -> bool:
        asked.append(refused.approval_id)
        return True

    claim = Waits._claim

    def answered_first(self: Waits, request: Request, question: Question) -> bool:
        run_sub("approve", request.approval.approval_id)
        return claim(self, request, question)

    monkeypatch.setattr(Waits, "_claim", answered_first)
    assert pay(desk.guard(asks(), approvals=say)) == "paid"
    assert asked == []


def _threads() -> list[str]:
    return [thread.name for thread in threading.enumerate()]


def _calls(desk: Desk) -> list[list[dict[str, Any]]]:
    return calls_of(desk.events())


@requirement("sdk:callback-fails")
@pytest.mark.parametrize("caller", ["thread", "task"])
def test_a_callback_that_raises_denies(desk: Desk, caller: str) -> None:
    errors = Errors()

    def say(_refused: Refused) -> bool:
        raise RuntimeError(f"no pager for {SECRET}")

    guard = desk.guard(asks(), approvals=say, on_error=errors)
    with pytest.raises(Blocked, match="RuntimeError: no pager") as refused:
        pay(guard) if caller == "thread" else asyncio.run(pay_later(guard))
    assert errors == [("RuntimeError", "approvals")]
    assert SECRET not in str(refused.value)
    assert desk.tries() == [ASKED, DENIED]
    assert not [line for _, line in lines_of(desk.home) if SECRET.encode() in line]


@requirement("sdk:callback-fails")
@pytest.mark.parametrize("answer", [1, "yes", {"ok": True}])
def test_an_answer_that_is_none_denies(desk: Desk, answer: object) -> None:
    errors = Errors()
    with pytest.raises(Blocked, match="not True, False or None"):
        pay(desk.guard(asks(), approvals=lambda _refused: answer, on_error=errors))
    assert errors == [("TypeError", "approvals")]


@requirement("sdk:errors-told")
def test_what_on_error_raises_changes_nothing(desk: Desk) -> None:
    def on_error(_error: BaseException, _where: str) -> None:
        raise KeyError("mine")

    with pytest.raises(Blocked):
        pay(desk.guard(asks(), approvals=lambda _refused: 1, on_error=on_error))
    assert desk.tries() == [ASKED, DENIED]


@requirement("sdk:callback-limits")
def test_a_callback_answers_for_a_human_but_no_step_up(desk: Desk) -> None:
    asked: list[str | None] = []

    def say(refused: Refused) -> bool:
        asked.append(refused.rule_id)
        return True

    guard = desk.guard(
        asks(require="human"), asks("wipe", "step_up"), approvals=say, approval_timeout_ms=1_000
    )
    assert pay(guard) == "paid"
    with pytest.raises(Blocked, match="nobody answered"), guard.call("wipe", {}):
        pass
    assert asked == ["ask-refund"]


@requirement("sdk:callback-limits")
def test_a_callback_answers_neither_the_managed_layer_nor_in_place_of_a_passphrase(
    desk: Desk,
) -> None:
    guard = desk.guard(asks())
    guard.check("refund", {"amount": 5})
    where = places({"SUB_HOME": str(desk.home)})
    request = find_waiting(where, desk.pending()).request
    managed = msgspec.structs.replace(request.approval, layer=Layer.MANAGED)
    assert may_answer(request, where.state)
    assert not may_answer(msgspec.structs.replace(request, approval=managed), where.state)
    set_passphrase(where.state, "open sesame")
    assert not may_answer(request, where.state)


@requirement("sdk:callback-ticket")
@pytest.mark.parametrize(
    ("answer", "said"),
    [("OPS-17", None), ("17", "does not match"), ("OPS-0", "closed"), (True, "requires a ticket")],
)
def test_the_text_of_a_callback_is_the_ticket(
    desk: Desk, tmp_path: Path, answer: object, said: str | None
) -> None:
    check = tmp_path / "check"
    check.write_text('#!/bin/sh\n[ "$1" = OPS-17 ] || { echo "$1 is closed"; exit 1; }\n')
    check.chmod(0o755)
    desk.home.mkdir(parents=True, exist_ok=True)
    (desk.home / "config.toml").write_text(
        f'[approvals]\nticket_pattern = "OPS-[0-9]+"\nticket_check = ["{check}"]\n'
    )
    guard = desk.guard(asks(require="ticket"), approvals=lambda _refused: answer)
    if said is None:
        assert pay(guard) == "paid"
    else:
        with pytest.raises(Blocked, match=said):
            pay(guard)
    [given] = [e["approval"] for e in desk.events() if e["type"] == "approval_decided"]
    assert given.get("ticket") == (None if said else answer)


def test_a_callback_that_is_cancelled_denies(desk: Desk) -> None:
    """Such as by a timeout of its own: the call must not wait for minutes for nobody."""

    async def say(_refused: Refused) -> bool:
        raise asyncio.CancelledError

    with pytest.raises(Blocked, match="CancelledError"):
        asyncio.run(pay_later(desk.guard(asks(), approvals=say)))
    assert desk.tries() == [ASKED, DENIED]


def test_a_callback_that_changes_the_arguments_changes_no_decision(desk: Desk) -> None:
    """The retry is decided on the arguments that the call has, whatever was made of the copy."""
    too_little = rule("little", "deny", TOO_LITTLE, args=LITTLE)

    def say(refused: Refused) -> bool:
        assert refused.call is not None
        assert refused.call.args is not None
        refused.call.args["amount"] = 5
        return True

    guard = desk.guard(too_little, asks(), approvals=say)
    with guard.call("refund", {"amount": 500}) as call:
        assert call.decision.action == "ALLOW"
