"""What may be left out in YAML: the short and the long form of a policy are the same policy."""

import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from tests.policy.bundles import plain, rule

from subluminal.contracts.short_forms import BUNDLE, RULES, completed
from subluminal.errors import InvalidInput
from subluminal.policy.compiling import compile_bundle
from subluminal.policy.diff.diffing import diff
from subluminal.policy.lint.linting import lint
from subluminal.policy.loading import parse_bundle

SHORT = b"""\
policy_id: p
mode: guardrails
rules:
  - {rule_id: reads, kind: allow, match: {tool_name: {glob: ["read_*"]}}}
  - {rule_id: no-force, kind: deny, match: {args: {key_equals: {force: true}}}, effect: {message: no force}}
  - {rule_id: writes, kind: tag, effect: {tag: {add_risk_class: [write_like]}}}
  - {rule_id: few, kind: budget, effect: {budget: {limit_calls: 5}}}
  - {rule_id: slow, kind: rate_limit, effect: {rate_limit: {capacity: 1, refill_tokens: 1, refill_period_ms: 9}}}
  - {rule_id: loop, kind: breaker, effect: {breaker: {repeat_threshold: 3, repeat_window_ms: 9}}}
  - {rule_id: once, kind: dedupe, severity: critical, effect: {dedupe: {window_ms: 9}}}
"""
LONG = b"""\
policy_id: p
version: "1"
mode: guardrails
defaults: {decision_on_error: BLOCK}
selectors: {}
rules:
  - {rule_id: reads, kind: allow, enabled: true, severity: info, match: {tool_name: {glob: ["read_*"]}},
     effect: {action: ALLOW, reason_code: ALLOWED, message: this call is allowed}}
  - {rule_id: no-force, kind: deny, enabled: true, severity: warn, match: {args: {key_equals: {force: true}}},
     effect: {action: REJECT_WITH_HINT, reason_code: DENIED, message: no force}}
  - {rule_id: writes, kind: tag, enabled: true, severity: info, match: {}, effect: {tag: {add_risk_class: [write_like]}}}
  - {rule_id: few, kind: budget, enabled: true, severity: warn, match: {},
     effect: {budget: {scope: run, limit_calls: 5, on_exceed: REJECT_WITH_HINT}}}
  - {rule_id: slow, kind: rate_limit, enabled: true, severity: warn, match: {},
     effect: {rate_limit: {scope: run, capacity: 1, refill_tokens: 1, refill_period_ms: 9, on_limit: REJECT_WITH_HINT}}}
  - {rule_id: loop, kind: breaker, enabled: true, severity: warn, match: {},
     effect: {breaker: {scope: run, repeat_threshold: 3, repeat_window_ms: 9, on_trip: REJECT_WITH_HINT}}}
  - {rule_id: once, kind: dedupe, enabled: true, severity: critical, match: {},
     effect: {dedupe: {scope: run, window_ms: 9, on_duplicate: REJECT_WITH_HINT}}}
"""


def test_the_short_and_the_long_form_have_the_same_hash_and_no_difference():
    short, long = (parse_bundle(text, "p.yaml") for text in (SHORT, LONG))

    assert compile_bundle(short.bundle).policy_hash == compile_bundle(long.bundle).policy_hash
    assert diff(short.bundle, long.bundle) == []
    assert [each.message for each in lint(short)] == [each.message for each in lint(long)]


def test_defaults_may_be_left_out_one_by_one():
    text = SHORT + b"defaults: {fail_open_read_tools: true}\n"
    defaults = parse_bundle(text, "p.yaml").bundle.defaults
    assert (defaults.decision_on_error, defaults.fail_open_read_tools) == ("BLOCK", True)


def test_what_is_written_is_never_replaced():
    full = plain(*[rule(kind) for kind in RULES])
    assert completed(full) == full


@given(st.data())
def test_whatever_is_left_out_of_the_long_form_is_filled_in(data):
    """Any subset of the fields with a default may be missing."""
    long = yaml.safe_load(LONG)
    wanted = compile_bundle(parse_bundle(LONG, "p.yaml").bundle).policy_hash
    for name in data.draw(st.sets(st.sampled_from(sorted(BUNDLE)))):
        del long[name]
    for each in long["rules"]:
        _leave_out(each, RULES[each["kind"]], data)
    found = parse_bundle(yaml.safe_dump(long).encode(), "p.yaml")
    assert compile_bundle(found.bundle).policy_hash == wanted


def _leave_out(value, template, data):
    for name, default in template.items():
        if isinstance(default, dict) and default:
            _leave_out(value[name], default, data)
        elif value[name] == default and data.draw(st.booleans()):
            del value[name]


@pytest.mark.parametrize(
    ("path", "told"),
    [
        (("version",), "missing field `version`"),
        (("rules", 0, "enabled"), "rule `deny`: missing field `enabled`"),
        (("rules", 0, "effect", "message"), "rule `deny`: missing field `message` in `effect`"),
    ],
)
def test_a_bundle_in_json_is_complete(path, told):
    """Machines exchange Contract B as the Pack writes it."""
    value = plain(rule("deny"))
    inner = value
    for part in path[:-1]:
        inner = inner[part]
    del inner[path[-1]]

    with pytest.raises(InvalidInput) as raised:
        parse_bundle(json.dumps(value).encode(), "p.json")

    (problem,) = raised.value.problems
    assert problem.message == told
    assert problem.hint == "a bundle in JSON is complete; in YAML the field has a default"
    assert parse_bundle(yaml.safe_dump(value).encode(), "p.yaml").bundle


@pytest.mark.parametrize("name", ["policy_id", "mode", "rules"])
def test_what_only_the_author_knows_is_required(name):
    value = yaml.safe_load(SHORT)
    del value[name]
    with pytest.raises(InvalidInput, match=f"missing field `{name}`"):
        parse_bundle(yaml.safe_dump(value).encode(), "p.yaml")


@pytest.mark.parametrize(
    ("written", "told"),
    [
        (b"[]", "expected a mapping, got a list"),
        (b"{policy_id: p, mode: observe, rules: 7}", "`rules`: expected a list"),
        (b"{policy_id: p, mode: observe, rules: [7]}", "rule 1: expected a mapping"),
        (b"{policy_id: p, mode: observe, rules: [{rule_id: r, kind: [deny]}]}", "unknown rule kind"),
        (b"{policy_id: p, mode: observe, rules: [{rule_id: r, kind: deny, match: }]}", "`match`: expected a mapping, got nothing"),
        (b"{policy_id: p, mode: observe, rules: [{rule_id: r, kind: deny, effect: 7}]}", "`effect`: expected a mapping"),
        (b"{policy_id: p, mode: observe, rules: [{rule_id: r, kind: budget}]}", "`effect.budget`: needs `limit_calls`"),
        (b"{policy_id: p, mode: observe, rules: [{rule_id: r, kind: tag}]}", "missing field `effect`"),
    ],
)  # fmt: skip
def test_a_value_of_the_wrong_type_is_not_a_missing_one(written, told):
    with pytest.raises(InvalidInput) as raised:
        parse_bundle(written, "p.yaml")
    assert told in str(raised.value.problems[0])
