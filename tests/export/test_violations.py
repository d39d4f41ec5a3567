"""What is a violation, and which of them fail a run (issue 9: --strict, --fail-on)."""

import pytest
from tests.export.shims import HASH, decided, ref, would_be

from subluminal.contracts.vocabulary import Severity
from subluminal.export.violations import Demands, Strict, violation_in

NOTHING = Demands()
STRICT = Demands(Strict.REFUSED)
THROTTLE = Demands(Strict.THROTTLE)
WARN = Demands(None, Severity.WARN)
BLOCK = decided("BLOCK", "r", "info", "NO")
NO_POLICY = decided(policy=ref("none", "none"))


def judged(decision, demands):
    call = {"call_id": "c", "server_name": "s", "tool_name": "t", "args_hash": HASH}
    found = violation_in({"ts": "T", "call": call, "decision": decision}, 7, demands)
    return None if found is None else (found.kind.value, found.fails)


@pytest.mark.parametrize("action", ["BLOCK", "REJECT_WITH_HINT", "TERMINATE_RUN"])
def test_strict_fails_on_every_refusal(action):
    refused = decided(action, "r", "info", "NO")
    assert judged(refused, NOTHING) == ("refused", False)
    assert judged(refused, STRICT) == ("refused", True)
    assert judged(refused, THROTTLE) == ("refused", True)


@pytest.mark.parametrize(
    ("demands", "fails"), [(NOTHING, False), (STRICT, False), (THROTTLE, True)]
)
def test_throttling_fails_where_that_was_asked_for(demands, fails):
    assert judged(decided("THROTTLE", "r", "info", "SLOW"), demands) == ("throttled", fails)


@pytest.mark.parametrize("demands", [NOTHING, STRICT, THROTTLE, WARN])
def test_what_no_rule_minds_is_no_violation(demands):
    assert judged(decided(), demands) is None
    assert judged(decided(rule_id="ok", reason_code="OK"), demands) is None


def test_observe_mode_fails_by_severity_only():
    seen = decided("ALLOW", "r", "critical", "NO", would_be=would_be())
    assert judged(seen, STRICT) == ("observed", False)
    assert judged(seen, WARN) == ("observed", True)
    mild = decided("ALLOW", "r", "info", "NO", would_be=would_be(severity="info"))
    assert judged(mild, WARN) == ("observed", False)


def test_the_more_serious_of_decision_and_observation_counts():
    """One layer allows, another only observes and would have blocked."""
    seen = decided("ALLOW", "ok", "info", "OK", would_be=would_be(severity="critical"))
    assert judged(seen, Demands(None, Severity.CRITICAL)) == ("observed", True)


def test_any_decision_of_the_severity_fails():
    """Also one that allows; a call that no rule spoke of has no severity of its own."""
    assert judged(decided("ALLOW", "risky", "warn", "OK"), WARN) == ("flagged", True)
    assert judged(decided("ALLOW", None, "critical", "EVALUATION_ERROR"), WARN) == ("flagged", True)
    assert judged(decided("ALLOW", "risky", "warn", "OK"), STRICT) is None
    assert judged(decided(), Demands(None, Severity.INFO)) is None
    assert judged(BLOCK, WARN) == ("refused", False)
    assert judged(BLOCK, Demands(None, Severity.INFO)) == ("refused", True)


@pytest.mark.parametrize(
    "passed", [NO_POLICY, decided(reason_code="POLICY_NOT_APPLICABLE")], ids=["none", "selectors"]
)
def test_without_a_policy_a_strict_run_fails(passed):
    assert judged(passed, STRICT) == ("ungoverned", True)
    assert judged(passed, NOTHING) is None
    assert judged(passed, WARN) is None


def test_what_was_asked_for_is_read_back_from_the_record():
    for demands in (NOTHING, STRICT, THROTTLE, WARN, Demands(Strict.REFUSED, Severity.CRITICAL)):
        assert Demands.recorded(demands.meta()) == demands
    assert Demands.recorded({"strict": "unheard of", "fail_on": 7}) == NOTHING


def test_an_unknown_severity_is_the_mildest():
    assert judged(decided("BLOCK", "r", "odd", "NO"), WARN) == ("refused", False)
