"""Outcomes: a decision in Agent-SPM's words (one-decision-language).

An outcome is never stored. It follows from the action, the reason code and whether a grant let the
call pass; the ledger's SQL is made from the tables below.
"""

from typing import TYPE_CHECKING

from subluminal.contracts.vocabulary import Action, Outcome, ReasonCode

if TYPE_CHECKING:
    from subluminal.policy.evaluation import Evaluation

BY_ACTION: dict[str, Outcome] = {
    Action.THROTTLE: Outcome.RATE_LIMITED,
    Action.TERMINATE_RUN: Outcome.KILL_SWITCH,
}
"""Outcomes of actions that have only one, whatever the reason."""

BY_REASON: dict[str, Outcome] = {
    ReasonCode.APPROVAL_REQUIRED: Outcome.REQUIRE_APPROVAL,
    ReasonCode.CONFIRMATION_REQUIRED: Outcome.REQUIRE_APPROVAL,
    ReasonCode.STEP_UP_REQUIRED: Outcome.STEP_UP,
    ReasonCode.TICKET_REQUIRED: Outcome.REQUIRE_TICKET,
    ReasonCode.HUMAN_REQUIRED: Outcome.REQUIRE_HUMAN,
    ReasonCode.APPROVAL_DENIED: Outcome.REJECTED,
    ReasonCode.APPROVAL_TIMEOUT: Outcome.TIMEOUT,
    ReasonCode.RATE_LIMITED: Outcome.RATE_LIMITED,
    ReasonCode.KILL_SWITCH: Outcome.KILL_SWITCH,
    ReasonCode.RUN_TERMINATED: Outcome.KILL_SWITCH,
}
"""Outcomes of a BLOCK or REJECT_WITH_HINT, by its reason code. All others are DENY."""

REFUSING = (Action.BLOCK, Action.REJECT_WITH_HINT)
"""Actions whose outcome depends on the reason code."""


def outcome_of(action: str, reason_code: str, *, has_grant: bool = False) -> Outcome | None:
    """Returns the outcome of a decision; None if a newer version made it, with another action.

    `has_grant` says whether a person's grant let the call pass.
    """
    if action == Action.ALLOW:
        return Outcome.APPROVED if has_grant else Outcome.ALLOW
    if action in REFUSING:
        return BY_REASON.get(reason_code, Outcome.DENY)
    return BY_ACTION.get(action)


def evaluated_outcome(evaluation: "Evaluation") -> Outcome | None:
    """Returns the outcome of an evaluation."""
    decision = evaluation.decision
    has_grant = bool(evaluation.grants_used)
    return outcome_of(decision.action, decision.reason_code, has_grant=has_grant)
