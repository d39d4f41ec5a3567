"""Outcomes: a decision in Agent-SPM's words (issue 19; one-decision-language)."""

import pytest
from tests.requirements import requirement

from subluminal.contracts.vocabulary import Action, Outcome, ReasonCode
from subluminal.policy.outcomes import BY_REASON, outcome_of

EXPECTED = {
    ("ALLOW", "DEFAULT_ALLOW", False): "ALLOW",
    ("ALLOW", "CLIENT_ASKED", False): "ALLOW",
    ("ALLOW", "APPROVAL_GRANTED", True): "APPROVED",
    ("ALLOW", "KILL_SWITCH", False): "ALLOW",
    ("ALLOW", "KILL_SWITCH", True): "APPROVED",
    ("BLOCK", "MY_OWN", False): "DENY",
    ("BLOCK", "AGENT_REVOKED", False): "DENY",
    ("BLOCK", "BUDGET_EXCEEDED", False): "DENY",
    ("BLOCK", "APPROVAL_DENIED", False): "REJECTED",
    ("BLOCK", "APPROVAL_TIMEOUT", False): "TIMEOUT",
    ("BLOCK", "RATE_LIMITED", False): "RATE_LIMITED",
    ("BLOCK", "KILL_SWITCH", False): "KILL_SWITCH",
    ("BLOCK", "RUN_TERMINATED", False): "KILL_SWITCH",
    ("THROTTLE", "RATE_LIMITED", False): "RATE_LIMITED",
    ("THROTTLE", "DEFERRED", False): "RATE_LIMITED",
    ("TERMINATE_RUN", "RUN_TERMINATED", False): "KILL_SWITCH",
    ("TERMINATE_RUN", "BUDGET_EXCEEDED", False): "KILL_SWITCH",
    ("REJECT_WITH_HINT", "MY_OWN", False): "DENY",
    ("REJECT_WITH_HINT", "SIGNAL_REQUIRED", False): "DENY",
    ("REJECT_WITH_HINT", "REWRITE_OFFERED", False): "DENY",
    ("REJECT_WITH_HINT", "APPROVAL_REQUIRED", False): "REQUIRE_APPROVAL",
    ("REJECT_WITH_HINT", "CONFIRMATION_REQUIRED", False): "REQUIRE_APPROVAL",
    ("REJECT_WITH_HINT", "STEP_UP_REQUIRED", False): "STEP_UP",
    ("REJECT_WITH_HINT", "TICKET_REQUIRED", False): "REQUIRE_TICKET",
    ("REJECT_WITH_HINT", "HUMAN_REQUIRED", False): "REQUIRE_HUMAN",
}


@requirement("trust:outcomes")
@pytest.mark.parametrize(("decided", "outcome"), EXPECTED.items(), ids=str)
def test_every_outcome_follows_from_action_reason_and_grant(decided, outcome):
    action, reason_code, has_grant = decided
    assert outcome_of(action, reason_code, has_grant=has_grant) == outcome


def test_every_outcome_and_every_action_is_covered():
    assert set(EXPECTED.values()) == set(Outcome)
    assert {action for action, _, _ in EXPECTED} == set(Action)
    assert set(BY_REASON) <= set(ReasonCode)


def test_an_action_of_a_newer_version_has_no_outcome():
    assert outcome_of("REWRITE", "KILL_SWITCH") is None
