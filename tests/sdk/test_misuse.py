"""Mistakes of the program that uses a guard: said at once and in its words, never ignored."""

import asyncio
import traceback
from collections.abc import Callable
from typing import Any

import pytest
from tests.adapters.policies import bundle, deny
from tests.requirements import requirement
from tests.sdk.conftest import Office

from subluminal import Guard, PolicyError, Refused
from subluminal.adapters.in_process.guarding.calls import GuardedCall
from subluminal.errors import SubluminalError


@requirement("sdk:made-once")
@pytest.mark.parametrize("options", [{}, {"on_throttle": "wait"}])
def test_a_call_is_made_once(office: Office, options: dict[str, Any]) -> None:
    """The second block would run without a decision; after a refusal it would run at all."""
    guard = office.guard(deny("pay"), **options)
    allowed, refused, ran = guard.call("read", {}), guard.call("pay", {}), 0
    with allowed:
        ran += 1
    with pytest.raises(Refused), refused:
        ran += 1
    for call in allowed, refused:
        with pytest.raises(RuntimeError, match="this call was made already"), call:
            ran += 1
        with pytest.raises(RuntimeError, match="this call was made already"):
            asyncio.run(_enter(call))
    assert ran == 1
    assert [call[1]["decision"]["action"] for call in office.calls()] == [
        "ALLOW",
        "BLOCK",
    ]


async def _enter(call: GuardedCall) -> None:
    async with call:
        pytest.fail("it was entered")


def test_a_call_that_has_not_begun_says_so(office: Office) -> None:
    call = office.guard().call("read", {})
    for ask in (lambda: call.decision, lambda: call.call_id, call.offer):
        with pytest.raises(RuntimeError, match="this call has not begun"):
            ask()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"refusals": "Raise"}, '`refusals` must be "raise" or "return"'),
        ({"on_throttle": "Wait"}, '`on_throttle` must be "raise" or "wait"'),
        ({"approvals": "yes"}, '`approvals` must be None, "wait" or a function'),
        ({"approval_timeout_ms": -1}, "`approval_timeout_ms` must not be negative"),
        ({"on_error": "log"}, "`on_error` must be a function"),
        ({"plugins": [object()]}, "a plugin must have a `name`, which is a text"),
    ],
)
def test_an_option_that_does_not_exist_is_refused(
    office: Office, options: dict[str, Any], said: str
) -> None:
    with pytest.raises(ValueError) as caught:
        office.guard(**options)
    assert str(caught.value) == said


@pytest.mark.parametrize(
    "label",
    [
        lambda guard: guard.tool(labels="PII")(print),
        lambda guard: guard.call("read", {}, labels="PII"),
        lambda guard: guard.check("read", {}, labels="PII"),
    ],
)
def test_labels_are_not_the_letters_of_a_text(
    office: Office, label: Callable[[Guard], object]
) -> None:
    """A rule about PII would not match P and I."""
    with pytest.raises(TypeError, match=r"`labels` must be a list of texts, such as \['PII'\]"):
        label(office.guard())


def test_a_closed_guard_says_that_it_is_closed(office: Office) -> None:
    guard = office.guard()
    guard.close()
    with pytest.raises(SubluminalError, match="this guard or door is closed") as caught:
        guard.check("read", {})
    assert caught.value.hint == "open another one"


def test_the_traceback_of_a_policy_that_cannot_be_used_has_the_hint(office: Office) -> None:
    with pytest.raises(PolicyError) as caught:
        office.guard(policy={**bundle(), "rules": [{"rule_id": "a", "kind": "nope"}]})
    printed = "".join(traceback.format_exception(caught.value))
    assert f"hint: {caught.value.hint}" in printed


def test_a_policy_without_an_id_is_short_of_that_only(office: Office) -> None:
    with pytest.raises(PolicyError) as caught:
        office.guard(policy={"mode": "guardrails", "rules": []})
    assert str(caught.value) == "`policy` cannot be used: missing field `policy_id`"
