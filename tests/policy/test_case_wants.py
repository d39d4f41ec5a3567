"""`want` is flat and compares only the fields it names (cli.md)."""

import pytest

from subluminal.contracts.decision import Decision, Hint, PolicyRef, Terminate
from subluminal.contracts.events import WouldBe
from subluminal.contracts.vocabulary import Action, HintKind, Severity
from subluminal.policy.case_wants import WANTS, differences
from subluminal.policy.evaluation import Evaluation

POLICY = PolicyRef(policy_id="p", policy_version="1", policy_hash="h")


def evaluation(**changes) -> Evaluation:
    decision = Decision(
        action=Action.REJECT_WITH_HINT,
        rule_id="r",
        severity=Severity.WARN,
        reason_code="NO",
        summary="no",
        backoff_ms=5,
        hint=Hint(hint_text="t", suggested_args={"n": 1}, hint_kind=HintKind.ARG_FIX),
        terminate=Terminate(terminate_code="c", terminate_message="m"),
    )
    return Evaluation(decision, POLICY, False, [], **changes)


OBSERVED = WouldBe(action=Action.BLOCK, rule_id="r", severity=Severity.WARN, reason_code="NO")


@pytest.mark.parametrize(
    "want",
    [
        {},
        {"action": "REJECT_WITH_HINT", "rule_id": "r", "severity": "warn", "reason_code": "NO"},
        {"summary": "no", "backoff_ms": 5, "hint_text": "t", "retry_advice": None},
        {"suggested_args": {"n": 1.0}, "hint_kind": "ARG_FIX"},
        {"terminate_code": "c", "terminate_message": "m"},
        {"policy_id": "p", "policy_version": "1", "forwarded": False, "would_be": None},
        {"risk_classes": ["b", "a"]},
    ],
)
def test_what_is_as_wanted_makes_no_difference(want):
    assert differences(want, evaluation(risk_classes=frozenset("ab"))) == []


@pytest.mark.parametrize(
    "want", ["BLOCK", {"action": "BLOCK"}, {"rule_id": "r", "severity": "warn"}]
)
def test_an_observed_refusal_is_compared_by_action_or_fields(want):
    assert differences({"would_be": want}, evaluation(would_be=OBSERVED)) == []


@pytest.mark.parametrize(
    ("want", "got"),
    [
        ({"action": "ALLOW"}, "REJECT_WITH_HINT"),
        ({"rule_id": None}, "r"),
        ({"backoff_ms": "5"}, 5),
        ({"would_be": "BLOCK"}, None),
        ({"would_be": {"actoin": "BLOCK"}}, None),
        ({"risk_classes": "a"}, ["a"]),
    ],
)
def test_what_is_not_as_wanted_is_told_with_what_came(want, got):
    ((field, wanted, found),) = differences(want, evaluation(risk_classes=frozenset("a")))
    assert (field, wanted, found) == (*next(iter(want.items())), got)


def test_an_observed_refusal_that_is_not_wanted_is_told():
    (difference,) = differences({"would_be": None}, evaluation(would_be=OBSERVED))
    assert difference.got["action"] == "BLOCK"
    (difference,) = differences({"would_be": "THROTTLE"}, evaluation(would_be=OBSERVED))
    assert difference.got == "BLOCK"


def test_every_field_can_be_read_off_a_bare_decision():
    bare = Decision(
        action=Action.ALLOW, rule_id=None, severity=Severity.INFO, reason_code="X", summary="s"
    )
    found = Evaluation(bare, POLICY, True, [])
    assert [name for name in WANTS if WANTS[name](found) is None] == [
        "rule_id", "backoff_ms", "hint_text", "suggested_args", "retry_advice", "hint_kind",
        "terminate_code", "terminate_message", "would_be",
    ]  # fmt: skip
