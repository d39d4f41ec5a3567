"""Bodies of events about what a person does: approvals, grants, stops, releases. All additive.

The events that carry these bodies are in `events`, with all other events.
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
"""The `terminate_code` of a run that a person stopped."""


class ApprovalAsked(Struct, frozen=True, kw_only=True):
    """`approval` of an approval_requested event: a call that is waiting for approval, and why."""

    approval_id: str
    """id of the pending approval, which `sub approve` takes"""
    layer: Layer
    """layer of the policy that contains the rule"""
    rule_id: str
    """rule that requires the approval; a grant is bound to `layer` and `rule_id`"""
    requirement: Requirement
    """what the rule asks of a person"""
    reason_code: str
    """reason_code of the refusal"""
    severity: Severity
    """severity of the rule"""
    message: str
    """message of the rule"""
    requested_at: str
    """time of the first refused call, RFC 3339"""
    expires_at: str
    """time at which an unanswered approval is dropped, RFC 3339; a repeated call postpones it"""
    approver_role: str | UnsetType = UNSET
    """role of the person who should decide, as the policy names it"""
    grant_ms: int | UnsetType = UNSET
    """longest duration of a grant in milliseconds: `expires_ms` of the rule"""


class ApprovalGiven(Struct, frozen=True, kw_only=True):
    """`approval` of an approval_decided event: a person's answer, or a grant given unasked."""

    answer: ApprovalAnswer
    """the person's answer"""
    by: str
    """local user who answered"""
    layer: Layer
    """layer of the policy that contains the rule"""
    rule_id: str
    """rule that required the approval"""
    server_name: str
    """server of the call"""
    tool_name: str
    """tool of the call"""
    args_hash: str | UnsetType = UNSET
    """args_hash of the call; missing if the grant covers all arguments (`sub promote --session` of
    an allow or deny rule)"""
    approval_id: str | UnsetType = UNSET
    """id of the pending approval; missing if the grant was given unasked"""
    reason: str | UnsetType = UNSET
    """the person's reason"""
    requirement: Requirement | UnsetType = UNSET
    """if approved: requirement that the person met; missing if the grant was given unasked"""
    ticket: str | UnsetType = UNSET
    """ticket that the person named"""
    grant_id: str | UnsetType = UNSET
    """if approved: id of the grant, which the decision of each call that uses it repeats"""
    uses: int | UnsetType = UNSET
    """if approved: number of calls that the grant lets pass; missing if unlimited"""
    expires_at: str | UnsetType = UNSET
    """if approved: time at which the grant expires, RFC 3339"""


class RefusedGrant(Struct, frozen=True, kw_only=True):
    """`grant` of a grant_refused event."""

    problem: GrantProblem
    """why the grant was refused"""
    detail: str
    """the same, in words"""
    grant_id: str | UnsetType = UNSET
    """id of the grant; missing if its content cannot be trusted"""
    approval_id: str | UnsetType = UNSET
    """id of the approval that the grant answers"""


class Switch(Struct, frozen=True, kw_only=True):
    """`switch` of a kill_switch event."""

    switch_id: str
    """id of the stop; the events of all affected runs share it"""
    state: SwitchState
    """whether something was stopped or revived"""
    scope: StopScope
    """what was stopped"""
    target: str | UnsetType = UNSET
    """run_id, agent_id or SERVER/TOOL; missing for `all`"""
    by: str
    """local user who used the kill switch"""
    hard: bool
    """whether the servers were stopped too"""
    reason: str | UnsetType = UNSET
    """the user's reason"""


class Released(Struct, frozen=True, kw_only=True):
    """`intent` of an intent_released event."""

    intent_hash: str
    """hash of the intent, which may now execute again"""
    intent_kind: str
    """kind of the intent"""
    session_id: str
    """session that claimed the execution"""
    claimed_at: str
    """time of the claim, RFC 3339"""
    by: str
    """local user who released the intent"""
    reason: str
    """the user's reason"""
