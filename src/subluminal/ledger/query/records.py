"""What queries return: the rows of spec 001 section 11.3 in the words of the contracts.

No SQL: every engine returns these records. The API sends them as JSON, and its OpenAPI document is
made from them. A page has `next`, the cursor of the next page; None if there is no other page.
"""

from typing import Any

from msgspec import Struct


class PreviewRecord(Struct, frozen=True):
    """The redacted previews of a call's arguments and result."""

    truncated: bool
    args_preview: str | None
    result_preview: str | None
    redaction_flags: list[str]


class KernelRecord(Struct, frozen=True):
    """What a pack decided about a call."""

    pack: str
    version: str
    fingerprint: str
    intent_kind: str
    intent_hash: str
    nonce: str | None
    """None if the call has no audit record; so is `principal`"""
    principal: str | None
    taint: str
    """level of the intent"""
    decision_kind: str
    refusal_code: str | None
    guard: str | None
    divergence: str | None


class CallRecord(Struct, frozen=True):
    """One tool call."""

    id: int
    """row id, ascending in the order of ingest"""
    call_id: str
    run_id: str
    server_name: str
    tool_name: str
    args_hash: str
    decision: str | None
    rule_id: str | None
    status: str | None
    """None while the call is under way"""
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
    taint: str | None
    """level of the run before the call; None if no policy spoke of it"""
    retry_of: str | None
    """call_id of the refused call that this call repeats; None if it repeats none"""
    outcome: str | None
    """the decision in Agent-SPM's words; None while there is none"""
    kernel: KernelRecord | None
    """what a pack decided; None if no pack was asked"""
    preview: PreviewRecord


class CallPage(Struct, frozen=True):
    """One page of calls."""

    calls: list[CallRecord]
    next: str | None


class CallDetail(Struct, frozen=True):
    """One call with its hint, and its events in their chained form."""

    call: CallRecord
    hint: "HintRecord | None"
    retries: list[str]
    """call_id of each call that repeats this one, oldest first"""
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
    agent: Any
    """who acted when the run began, if a rule asked: what was known of the agent, and its proof"""


class RunPage(Struct, frozen=True):
    """One page of runs."""

    runs: list[RunRecord]
    next: str | None


class Score(Struct, frozen=True):
    """One run with its calls counted."""

    run: RunRecord
    decisions: dict[str, int]
    """number of calls by decision"""
    errors: int
    """calls that were forwarded and did not end OK, except `unknown`"""
    unknown: int
    """calls that were forwarded and whose outcome is unknown: they have no end, or one with the
    error class `unknown`"""
    worst_severity: str | None
    """highest severity of a decision that was not a plain allow"""
    duration_ms: int
    """milliseconds from the start to the end; to the last event while the run goes on"""
    doors: list[str]
    """transports through which its calls came, such as `mcp_stdio` and `agent_hook`"""


class ScorePage(Struct, frozen=True):
    """One page of the scoreboard."""

    runs: list[Score]
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
    """arguments of the call that was refused"""
    next_call_id: str | None
    """the next call of that tool in the run, which decided the outcome"""


class HintPage(Struct, frozen=True):
    """One page of hints."""

    hints: list[HintRecord]
    next: str | None


class IntentRecord(Struct, frozen=True):
    """An intent that a pack decided. The status of its execution is in the execution ledger."""

    id: int
    """row id of its call"""
    ts: str
    run_id: str
    call_id: str
    pack: str
    version: str
    fingerprint: str
    intent_kind: str
    intent_hash: str
    nonce: str | None
    """None if the call has no audit record; so is `principal`"""
    principal: str | None
    taint: str
    decision_kind: str
    refusal_code: str | None
    guard: str | None
    divergence: str | None


class IntentPage(Struct, frozen=True):
    """One page of intents."""

    intents: list[IntentRecord]
    next: str | None


class RecoveryRecord(Struct, frozen=True):
    """How often hints helped, for a rule, a client, or both."""

    rule_id: str | None
    client: str | None
    issued: int
    followed: int
    retried: int
    gave_up: int
    pending: int


class ToolRecord(Struct, frozen=True):
    """A tool that was listed or called, with its counts."""

    server_name: str
    tool_name: str
    calls: int
    refused: int
    errors: int
    """calls that were forwarded and did not end OK"""
    definition_hash: str | None
    """hash of the latest definition; None if the tool was never listed"""
    definitions: int
    """number of different definitions that the server ever gave"""
    changed_at: str | None
    """when the latest definition replaced another; None if none did"""
    listed_at: str | None
    """when the tool was last listed"""


class PolicyRecord(Struct, frozen=True):
    """A policy that was in force."""

    policy_id: str
    version: str
    rules_hash: str
    """the `policy_hash` of events"""
    mode: str | None
    created_at: str
    rules: int | None
    """number of enabled rules; None if no event has the rules"""


class PolicyDetail(Struct, frozen=True):
    """One policy with its rules."""

    policy: PolicyRecord
    snapshot: Any
    """the policy as `sub policy compile` writes it; None if no event has it"""


class AnswerRecord(Struct, frozen=True):
    """A person's answer to an approval."""

    answer: str
    """approved or denied"""
    decided_at: str
    by: str
    reason: str | None
    ticket: str | None
    grant_id: str | None
    uses: int | None
    """number of calls that the grant lets pass; None if denied, or if uses are not counted"""
    used: int
    """number of calls that the grant has let pass"""
    expires_at: str | None


class ApprovalRecord(Struct, frozen=True):
    """An approval, and its answer."""

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
    """the first call that needed the approval"""
    agent_id: str | None
    client: str | None
    env: str | None
    principal: str | None
    answer: AnswerRecord | None
    """the latest answer"""


class ApprovalPage(Struct, frozen=True):
    """One page of approvals."""

    approvals: list[ApprovalRecord]
    next: str | None


class SwitchRecord(Struct, frozen=True):
    """One move of the kill switch."""

    switch_id: str
    """the stop that `killed` created and `revived` lifted"""
    state: str
    """killed or revived"""
    scope: str
    target: str | None
    by: str
    hard: bool
    reason: str | None
    moved_at: str


class SwitchPage(Struct, frozen=True):
    """One page of moves of the kill switch."""

    switches: list[SwitchRecord]
    next: str | None


class Facets(Struct, frozen=True):
    """For each dimension, the number of calls by value, among calls that pass all *other* filters.

    An empty name stands for calls without a value.
    """

    total: int
    server: dict[str, int]
    tool: dict[str, int]
    decision: dict[str, int]
    status: dict[str, int]
    rule: dict[str, int]


class Bar(Struct, frozen=True):
    """The calls of one interval, by decision."""

    start_ms: int
    counts: dict[str, int]


class Histogram(Struct, frozen=True):
    """Calls over time in intervals of equal width. Intervals without calls are left out."""

    bar_ms: int
    """width of a bar in milliseconds"""
    bars: list[Bar]
