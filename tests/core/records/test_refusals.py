"""Refusals with secrets masked, where the mask depends on more than one value."""

import pytest

from subluminal.contracts.decision import Decision, Hint
from subluminal.contracts.vocabulary import Action, Severity
from subluminal.core.records.refusals import masked_refusal


def refusal(suggested):
    return Decision(
        action=Action.REJECT_WITH_HINT,
        rule_id="r",
        severity=Severity.WARN,
        reason_code="NO",
        summary="no",
        hint=Hint(hint_text="key:", suggested_args=suggested),
    )


@pytest.mark.parametrize(
    ("secret", "suggested"),
    [
        ('"key:","suggested_args":{"a":1', None),
        ('{"a":1}', None),
        ("nothing of this", {"a": 1}),
    ],
)
def test_a_mask_that_reaches_into_the_suggestion_leaves_none(secret, suggested):
    shown = masked_refusal(
        refusal({"a": 1}), {"a": 2}, lambda text: text.replace(secret, '"[REDACTED:x]"')
    )

    assert shown.hint.suggested_args == suggested


def test_a_mask_inside_the_suggestion_of_the_whole_text_leaves_none():
    def mask(text):
        return text.replace('"a":1', '"a":"[REDACTED:x]"') if "summary" in text else text

    shown = masked_refusal(refusal({"a": 1}), {"a": 2}, mask)

    assert shown.hint.suggested_args is None
