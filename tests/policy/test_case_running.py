"""Running cases: virtual time, outcomes, grants, coverage."""

import msgspec
import pytest
from tests.policy.bundles import plain, rule, tools

from subluminal.contracts.limits import MAX_COUNTERS
from subluminal.contracts.targets import Targets
from subluminal.errors import InvalidInput, SubluminalError
from subluminal.policy.case_running import run_case
from subluminal.policy.casefile import parse_cases
from subluminal.policy.compiling import compile_bundle


def run(calls, *rules, targets_of=None, **case):
    value = {"bundle": plain(*rules), "calls": calls, **case}
    (loaded,) = parse_cases(msgspec.json.encode(value), "c.json")
    layers = [(layer, compile_bundle(each.bundle)) for layer, each in loaded.policies]
    return run_case(loaded, layers, targets_of)


def call(action: str | None = None, **changes):
    want = {"want": {"action": action}} if action else {}
    return {"server": "s", "tool": "t", **want, **changes}


def test_a_failure_names_its_call_and_what_came():
    result = run([call("ALLOW"), call("BLOCK")], rule("allow"))
    assert not result.passed
    ((number, differences),) = result.failures
    assert number == 2
    assert differences == [("action", "BLOCK", "ALLOW")]


def test_time_is_virtual_and_stands_still_unless_told():
    limit = rule("rate_limit", capacity=1, refill_tokens=1, refill_period_ms=1000)
    calls = [call("ALLOW", at_ms=10), call("THROTTLE"), call("ALLOW", at_ms=1010)]
    assert run(calls, limit).passed


def test_outcomes_reach_the_breakers_before_the_next_call():
    breaker = rule(
        "breaker", error_threshold=1, window_ms=100, repeat_threshold=..., repeat_window_ms=...
    )
    failed = {"status": "ERROR"}
    assert run([call("ALLOW", outcome=failed), call("BLOCK")], breaker).passed
    assert run([call("ALLOW"), call("ALLOW")], breaker).passed


def test_a_refused_call_has_no_outcome():
    breaker = rule(
        "breaker", error_threshold=1, window_ms=100, repeat_threshold=..., repeat_window_ms=...
    )
    refused = call("BLOCK", tool="x", outcome={"status": "ERROR"})
    assert run([refused, call("ALLOW")], rule("deny", match=tools("x")), breaker).passed


def test_the_wall_clock_starts_where_the_case_says():
    night = rule("deny", match={"time": {"utc_hours": [[22, 6]]}})
    calls = [call("ALLOW"), call("BLOCK", at_ms=3_600_000)]
    assert run(calls, night, start="2026-01-31T21:00:00Z").passed


def test_grants_pass_the_rule_they_name():
    asks = rule("deny", require="approval")
    assert run([call("REJECT_WITH_HINT"), call("ALLOW", granted=["deny"])], asks).passed


def test_selectors_compare_the_identity_of_the_case():
    value = {
        "bundle": plain(rule("deny"), selectors={"env": ["ci"]}),
        "identity": {"env": "prod"},
        "calls": [{"server": "s", "tool": "t", "want": {"reason_code": "POLICY_NOT_APPLICABLE"}}],
    }
    (loaded,) = parse_cases(msgspec.json.encode(value), "c.json")
    layers = [(layer, compile_bundle(each.bundle)) for layer, each in loaded.policies]
    assert run_case(loaded, layers).passed


def test_rules_that_matched_are_counted():
    result = run([call()], rule("allow", match=tools("x")), rule("tag"), rule("budget"))
    assert {rule_id for _, rule_id in result.matched} == {"tag", "budget"}


def test_arguments_too_large_to_inspect_follow_decision_on_error():
    keyed = rule("deny", match={"args": {"has_keys": ["k"]}})
    assert run([call("BLOCK", args=None), call("ALLOW")], keyed).passed


def test_a_case_with_too_many_counters_is_refused_in_words():
    calls = [call(tool=f"t{n}") for n in range(MAX_COUNTERS + 1)]
    with pytest.raises(SubluminalError, match="case 1 needs more than 8192 counters"):
        run(calls, rule("budget", scope="tool", limit_calls=1))


def test_targets_are_read_in_the_directory_of_the_call():
    """`cwd` is `/repository` unless the case says otherwise; `args: null` is not read."""
    seen = []

    def targets_of(*asked):
        seen.append(asked)
        return Targets(commands=[["git"]])

    git = rule("deny", match={"targets": {"program": {"glob": ["git"]}}})
    calls = [call("BLOCK"), call("BLOCK", args={"a": 1}, cwd="/x"), call("BLOCK", args=None)]
    assert run(calls, git, targets_of=targets_of).passed
    assert seen == [("s", "t", {}, "/repository"), ("s", "t", {"a": 1}, "/x")]
    assert run([call("ALLOW")], git).passed
    assert run([call("ALLOW")], targets_of=lambda *_: pytest.fail("no rule asks")).passed


def test_the_directory_of_a_call_is_absolute():
    with pytest.raises(InvalidInput, match="`x` is not an absolute path"):
        run([call(cwd="x")])
