"""Hints about calls with a secret in their arguments: what leaves the shim, and what is recorded.

A mask in suggested arguments would be sent on by the agent as if it were a value.
"""

import json

import pytest
from tests.shim.household import ALLOW_ALL
from tests.shim.test_shared_runs import leave

TOKEN = "ghp_" + "Ab1" * 12
MASK = "[REDACTED"
RULE = """\
  - rule_id: few
    kind: deny
    enabled: true
    severity: warn
    match: {{tool_name: {{glob: [echo]}}, args: {{has_keys: [n]}}}}
    effect:
      action: REJECT_WITH_HINT
      reason_code: TOO_MANY
      message: too many
      suggest: {suggest}
"""
OWN = "retry with your own arguments"


@pytest.fixture
def refused(household, person):
    """Makes a call that is refused; returns every hint that was given about it, and the message."""

    def make(suggest, args):
        text = ALLOW_ALL.format(policy_id="p", on_error="BLOCK") + RULE.format(suggest=suggest)
        household.write_policy(text)
        shim = household.start().ready()
        error = shim.call("echo", args)["error"]
        leave(shim)
        (issued,) = household.events("hint_issued")
        (decided,) = household.events("tool_call_decision")
        hints = [
            error["data"]["subluminal"]["hint"],
            issued["hint"],
            decided["decision"]["hint"],
            json.loads(person("hints", "--json", "--limit", "1")),
        ]
        everything = json.dumps([error, issued, decided, hints])
        assert TOKEN not in everything
        return hints, error["message"]

    return make


@pytest.mark.parametrize(
    ("suggest", "args", "suggested", "advice", "said"),
    [
        (
            "{n: {remove: true}, limit: {set: 9}}",
            {"text": TOKEN, "n": 50},
            {"limit": 9},
            f"{OWN}, changed as suggested and without n",
            'Suggested arguments: your own with {"limit":9}.',
        ),
        (
            "{n: {remove: true}}",
            {"text": TOKEN, "n": 50},
            None,
            f"{OWN}, without n",
            "Retry with your own arguments, without n.",
        ),
        (
            f'{{n: {{remove: true}}, text: {{set: "{TOKEN}"}}}}',
            {"text": "x", "n": 50},
            None,
            "do not retry this call unchanged",
            "Do not retry this call unchanged.",
        ),
        (
            "{n: {remove: true}, limit: {set: 9}}",
            {TOKEN: 1, "n": 50},
            {"limit": 9},
            f"{OWN}, changed as suggested and without n",
            'Suggested arguments: your own with {"limit":9}.',
        ),
        (
            "{n: {remove: true}, limit: {set: 9}}",
            {"text": "[REDACTED:github]", "n": 50},
            {"limit": 9},
            f"{OWN}, changed as suggested and without n",
            'Suggested arguments: your own with {"limit":9}.',
        ),
        (
            "{n: {remove: true}}",
            {"text": "plain", "n": 50},
            {"text": "plain"},
            "retry with the suggested arguments",
            'Suggested arguments: {"text":"plain"}.',
        ),
    ],
    ids=["changed", "removed", "secret in the policy", "secret key", "sent mask", "no secret"],
)
def test_suggested_arguments_never_contain_a_mask(refused, suggest, args, suggested, advice, said):
    hints, message = refused(suggest, args)

    assert [hint["suggested_args"] for hint in hints] == [suggested] * 4
    assert [hint["retry_advice"] for hint in hints] == [advice] * 4
    partial = True if suggested == {"limit": 9} else None
    assert [hint.get("partial") for hint in hints[:3]] == [partial] * 3
    assert said in message
    assert MASK not in message
