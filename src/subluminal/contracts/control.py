"""What events say of approvals, grants and the kill switch (one-decision-language, no-call-waits). All of it is additive.

The bodies only: the events that carry them are in `events`, with all others.
"""

from msgspec import UNSET, Struct, UnsetType

from subluminal.contracts.vocabulary import (
    ApprovalAnswer,
    GrantProblem,
    Layer,
    Requirement,
    Severity,
    StopScope,
    SwitchState,
)

KILLED = "KILLED"
"""`terminate_code` of a run that a person stopped."""


class ApprovalAsked(Struct, frozen=True, kw_only=True):
    """`approval` of an approval_requested event: what waits for a person, and why."""

    approval_id: str
    layer: Layer
    rule_id: str
    """the rule that asks; with `layer`, what a grant is bound to"""
    requirement: Requirement
    reason_code: str
    severity: Severity
    message: str
    requested_at: str
    expires_at: str
    """unanswered until then, it is dropped; asking again moves it"""
    approver_role: str | UnsetType = UNSET
    """who should decide, in the policy's own words"""
    grant_ms: int | UnsetType = UNSET
    """the longest that a grant may last: the rule's `expires_ms`"""


class ApprovalGiven(Struct, frozen=True, kw_only=True):
    """`approval` of an approval_decided event: a person's answer, or a grant that needed none."""

    answer: ApprovalAnswer
    by: str
    """the local user who answered"""
    layer: Layer
    rule_id: str
    server_name: str
    tool_name: str
    args_hash: str | UnsetType = UNSET
    """missing where the grant holds for all arguments (`sub promote --session`)"""
    approval_id: str | UnsetType = UNSET
    """missing where nobody had asked"""
    reason: str | UnsetType = UNSET
    ticket: str | UnsetType = UNSET
    grant_id: str | UnsetType = UNSET
    """approved: what the decision of a call that passes by it will name"""
    uses: int | UnsetType = UNSET
    """approved: how many calls it lets pass; missing where it is not counted"""
    expires_at: str | UnsetType = UNSET
    """approved"""


class RefusedGrant(Struct, frozen=True, kw_only=True):
    """`grant` of a grant_refused event."""

    problem: GrantProblem
    detail: str
    grant_id: str | UnsetType = UNSET
    """missing where the grant cannot be believed"""
    approval_id: str | UnsetType = UNSET


class Switch(Struct, frozen=True, kw_only=True):
    """`switch` of a kill_switch event."""

    switch_id: str
    """one act may stand in the records of several runs"""
    state: SwitchState
    scope: StopScope
    target: str | UnsetType = UNSET
    """run_id, agent_id or SERVER/TOOL; missing for `all`"""
    by: str
    """the local user who pulled it"""
    hard: bool
    """whether the servers were stopped too"""
    reason: str | UnsetType = UNSET
