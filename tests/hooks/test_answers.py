"""What each client is told, byte for byte; `answers/CLIENT.json` has the cases.

The forms were tried with the real clients: what one of them takes as a refusal another ignores, and
runs the call.
"""

import json
import pathlib

import pytest
from tests.hooks.shapes import SHAPES

CASES = pathlib.Path(__file__).parent / "answers"
POLICY = """\
policy_id: answers
version: "1"
mode: guardrails
defaults: {decision_on_error: BLOCK}
rules:
  - rule_id: no-rm
    kind: deny
    match: {tool_name: {glob: [blocked]}}
    effect: {action: BLOCK, reason_code: DENIED, message: "not \\"that\\", please"}
  - rule_id: shorter
    kind: deny
    match: {tool_name: {glob: [hinted]}, args: {key_equals: {text: long}}}
    effect:
      action: REJECT_WITH_HINT
      reason_code: TOO_LONG
      message: the text is too long
      suggest: {text: {set: short}}
  - rule_id: slow
    kind: rate_limit
    match: {tool_name: {glob: [throttled]}}
    effect:
      rate_limit: {scope: tool, capacity: 1, refill_tokens: 1, refill_period_ms: 3600000, on_limit: THROTTLE, backoff_ms: 500}
  - rule_id: asks
    kind: allow
    match: {tool_name: {glob: [asked]}}
    effect: {action: ALLOW, reason_code: ASKED, message: pushing needs a person, require: approval}
  - rule_id: ends
    kind: budget
    match: {tool_name: {glob: [ended]}}
    effect: {budget: {scope: run, limit_calls: 0, on_exceed: TERMINATE_RUN}}
"""


@pytest.mark.parametrize("client", SHAPES)
def test_answers(start, household, client):
    household.write_policy(POLICY)
    agent = start(client)
    told = {"allowed": agent.before("fine", call="t0")}
    told["blocked"] = agent.before("blocked", call="t1")
    told["hinted"] = agent.before("hinted", {"text": "long"}, call="t2")
    agent.before("throttled", {"n": 1}, call="t3")
    told["throttled"] = agent.before("throttled", {"n": 2}, call="t4")
    told["ended"] = agent.before("ended", call="t6")
    told["after the end"] = agent.before("fine", call="t7")
    found = {
        name: {"code": said.code, "out": said.out, "err": said.err} for name, said in told.items()
    }
    path = CASES / f"{client}.json"
    assert found == json.loads(path.read_text()), json.dumps(found, indent=2)
