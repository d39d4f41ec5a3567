"""What queries answer with: the rows of spec 001 section 11.3 in the contracts' words."""

from typing import Any

from msgspec import Struct


class PreviewRecord(Struct, frozen=True):
    """What may be shown of a call's arguments and result."""

    truncated: bool
    args_preview: str | None
    result_preview: str | None
    redaction_flags: list[str]


class CallRecord(Struct, frozen=True):
    """One tool call."""

    id: int
    """its place in the order of ingest"""
    call_id: str
    run_id: str
    server_name: str
    tool_name: str
    args_hash: str
    decision: str | None
    rule_id: str | None
    status: str | None
    """empty while the call is under way"""
    latency_ms: int | None
    bytes_in: int | None
    bytes_out: int | None
    preview_truncated: bool
    created_at: str
    ts: str
    reason_code: str | None
    severity: str | None
    would_be: str | None
    error_class: str | None
    seq: int | None
    transport: str | None
    preview: PreviewRecord


class CallPage(Struct, frozen=True):
    """Calls, and where the next page begins."""

    calls: list[CallRecord]
    next: str | None


class CallDetail(Struct, frozen=True):
    """One call, whole: its row, its hint, and its events as they were chained."""

    call: CallRecord
    hint: "HintRecord | None"
    events: list[Any]


class RunRecord(Struct, frozen=True):
    """One run."""

    id: int
    run_id: str
    agent_id: str
    client: str
    env: str
    principal: str | None
    started_at: str
    ended_at: str | None
    status: str | None
    mode: str | None
    policy_id: str | None
    policy_version: str | None
    policy_hash: str | None
    metadata: Any
    workload: Any
    summary: Any
    last_event_at: str
    calls: int


class RunPage(Struct, frozen=True):
    """Runs, and where the next page begins."""

    runs: list[RunRecord]
    next: str | None


class HintRecord(Struct, frozen=True):
    """A hint, and what came of it."""

    id: int
    hint_id: str | None
    call_id: str
    run_id: str
    rule_id: str | None
    hint_kind: str
    hint_text: str
    suggested_args: Any
    retry_advice: str | None
    created_at: str
    outcome: str
    """followed, retried, gave_up or pending"""
    server_name: str
    tool_name: str
    args_hash: str
    """of the call that was refused"""
    next_call_id: str | None
    """the next call of that tool in the run, by which the outcome was judged"""


class HintPage(Struct, frozen=True):
    """Hints, and where the next page begins."""

    hints: list[HintRecord]
    next: str | None


class RecoveryRecord(Struct, frozen=True):
    """How often hints helped."""

    rule_id: str | None
    client: str | None
    issued: int
    followed: int
    retried: int
    gave_up: int
    pending: int


class ToolRecord(Struct, frozen=True):
    """A tool that was listed or called, and how often it was called."""

    server_name: str
    tool_name: str
    calls: int
    refused: int
    errors: int
    """calls that were forwarded and did not end OK, as on the scoreboard"""
    definition_hash: str | None
    """of the definition that its server gave last; None if it was never listed"""
    definitions: int
    """how many different ones its server ever gave"""
    changed_at: str | None
    """when the last one took the place of another; None if it never did"""
    listed_at: str | None
    """when it was last told"""


class PolicyRecord(Struct, frozen=True):
    """A policy that was in force."""

    policy_id: str
    version: str
    rules_hash: str
    """the `policy_hash` of events"""
    mode: str | None
    created_at: str
    rules: int | None
    """how many rules are enabled in it; None if no event told"""


class PolicyDetail(Struct, frozen=True):
    """One policy, whole."""

    policy: PolicyRecord
    snapshot: Any
    """as `sub policy compile` writes it; None if no event told"""


class AnswerRecord(Struct, frozen=True):
    """What a person said."""

    answer: str
    """approved or denied"""
    decided_at: str
    by: str
    reason: str | None
    ticket: str | None
    grant_id: str | None
    uses: int | None
    """how many calls it lets pass; None for a no, and where it is not counted"""
    used: int
    """how many calls passed by it"""
    expires_at: str | None


class ApprovalRecord(Struct, frozen=True):
    """Something that a person was asked, and what came of it."""

    approval_id: str
    run_id: str
    server_name: str
    tool_name: str
    args_hash: str
    args_preview: str | None
    rule_id: str
    reason_code: str
    requested_at: str
    expires_at: str
    state: str
    """pending, approved, denied, used or expired"""
    layer: str
    requirement: str
    severity: str
    message: str
    approver_role: str | None
    call_id: str
    """of the first call that asked"""
    agent_id: str | None
    client: str | None
    env: str | None
    principal: str | None
    answer: AnswerRecord | None
    """the last one, if there were several"""


class ApprovalPage(Struct, frozen=True):
    """Approvals, and where the next page begins."""

    approvals: list[ApprovalRecord]
    next: str | None


class SwitchRecord(Struct, frozen=True):
    """One move of the kill switch."""

    switch_id: str
    """what `killed` made and `revived` lifted"""
    state: str
    """killed or revived"""
    scope: str
    target: str | None
    by: str
    hard: bool
    reason: str | None
    moved_at: str


class SwitchPage(Struct, frozen=True):
    """Moves of the kill switch, and where the next page begins."""

    switches: list[SwitchRecord]
    next: str | None
