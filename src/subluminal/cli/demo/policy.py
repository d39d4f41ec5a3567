"""The demo's policy, as a person would write it."""

POLICY = """\
policy_id: demo
version: "1"
mode: guardrails
defaults: {decision_on_error: BLOCK}
selectors: {}
rules:
  - rule_id: no-deletes
    kind: deny
    enabled: true
    severity: critical
    match: {tool_name: {glob: ["delete_*"]}}
    effect: {action: BLOCK, reason_code: NO_DELETES, message: agents do not delete files here}

  - rule_id: small-searches
    kind: deny
    enabled: true
    severity: warn
    match: {tool_name: {glob: [search]}, args: {numeric_range: {limit: {min: 101}}}}
    effect:
      action: REJECT_WITH_HINT
      reason_code: LIMIT_TOO_LARGE
      message: a search returns at most 100 lines
      hint_text: ask for at most 100 lines
      suggest: {limit: {clamp_max: 100}}

  - rule_id: slowly
    kind: rate_limit
    enabled: true
    severity: info
    match: {tool_name: {glob: [list_files]}}
    effect:
      rate_limit: {scope: tool, capacity: 2, refill_tokens: 1, refill_period_ms: 1500,
                   on_limit: THROTTLE, backoff_ms: 1000}

  - rule_id: no-loops
    kind: breaker
    enabled: true
    severity: critical
    match: {tool_name: {glob: [read_file]}}
    effect:
      breaker: {scope: server_tool, repeat_threshold: 5, repeat_window_ms: 60000,
                on_trip: TERMINATE_RUN, terminate_code: LOOP}
"""
