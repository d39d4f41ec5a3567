"""Replay over what real shims recorded: several of one run, at once, with errors and people."""

import json

POLICY = """\
policy_id: p
version: "1"
mode: guardrails
defaults: {decision_on_error: BLOCK}
selectors: {}
rules:
  - {rule_id: no-rm, kind: deny, enabled: true, severity: warn, match: {tool_name: {glob: [rm]}},
     effect: {action: BLOCK, reason_code: NO, message: not that}}
  - {rule_id: ask, kind: deny, enabled: true, severity: warn, match: {tool_name: {glob: [deploy]}},
     effect: {action: BLOCK, reason_code: ASK, message: ask, require: approval}}
  - {rule_id: once, kind: dedupe, enabled: true, severity: warn, match: {tool_name: {glob: [put]}},
     effect: {dedupe: {scope: run, window_ms: 50, on_duplicate: BLOCK}}}
  - {rule_id: rate, kind: rate_limit, enabled: true, severity: warn, match: {tool_name: {glob: [get]}},
     effect: {rate_limit: {scope: run, capacity: 5, refill_tokens: 1, refill_period_ms: 3,
              on_limit: THROTTLE, backoff_ms: 5}}}
  - {rule_id: shaky, kind: breaker, enabled: true, severity: warn, match: {tool_name: {glob: [fail]}},
     effect: {breaker: {scope: run, error_threshold: 3, window_ms: 40, on_trip: BLOCK}}}
  - {rule_id: slow, kind: breaker, enabled: true, severity: warn, match: {tool_name: {glob: [get]}},
     effect: {breaker: {scope: run, latency_threshold_ms: 2, latency_count: 3, window_ms: 20,
              on_trip: BLOCK}}}
  - {rule_id: few, kind: budget, enabled: true, severity: warn, match: {tool_name: {glob: [echo]}},
     effect: {budget: {scope: run, limit_calls: 40, on_exceed: BLOCK}}}
"""
TOOLS = ["echo", "rm", "put", "get", "fail", "fail", "get", "echo", "put"]
SHIMS, ROUNDS = 3, 12


def test_what_real_shims_recorded_replays_without_a_difference(household, person):
    """Pipelined through three shims, so that calls and ends of each cross those of the others."""
    path = household.write_policy(POLICY)
    shims = [household.start().ready() for _ in range(SHIMS)]
    assert shims[0].code("deploy") != 0
    waiting = json.loads(person("approvals", "--json").splitlines()[0])
    person("approve", waiting["approval_id"])
    assert shims[1].code("deploy") == 0
    asked = [
        (shim, shim.ask(tool, {"n": number % 2}))
        for number in range(ROUNDS)
        for tool in TOOLS
        for shim in shims
    ]
    for shim, message_id in asked:
        shim.answer(message_id)
    for shim in shims:
        shim.close()
        shim.wait()
    try:
        out = person("policy", "replay", "--policy", str(path), "--json", "--all")
    finally:
        person("ledgerd", "stop")
    *rows, last = (json.loads(line) for line in out.splitlines())
    assert [row for row in rows if row["change"] != "same"] == []
    summary = last["summary"]
    assert summary["calls"] == summary["same"] == len(asked) + 2
    codes = {row["was"]["reason_code"] for row in rows}
    assert {
        "NO",
        "APPROVAL_REQUIRED",
        "APPROVAL_GRANTED",
        "DEDUPE_DUPLICATE",
        "BUDGET_EXCEEDED",
    } <= codes
