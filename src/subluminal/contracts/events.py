"""Contract A: ten event types of the Pack, five of our own, and their envelope (Pack section 1).

Read tolerantly: unknown fields and unknown types are ignored (Pack 0.2). The hot path writes the
same bytes from `templates`, and a property test holds the two together.
"""

from typing import Any

from msgspec import UNSET, Raw, Struct, UnsetType, field

from subluminal.contracts.control import ApprovalAsked, ApprovalGiven, RefusedGrant, Switch
from subluminal.contracts.decision import GrantRef, Hint, LayeredPolicyRef, PolicyRef, Terminate
from subluminal.contracts.identity import Source, Workload
from subluminal.contracts.vocabulary import (
    Action,
    Client,
    Env,
    ErrorClass,
    EventType,
    Layer,
    Mode,
    RunStatus,
    Scope,
    SecretSource,
    Severity,
    Status,
    Transport,
)


class Event(Struct, frozen=True, kw_only=True, tag_field="type"):
    """The fields that every event carries (Pack 1.3)."""

    v: str
    ts: str
    """RFC 3339, UTC"""
    run_id: str
    agent_id: str
    client: Client
    env: Env
    source: Source
    principal: str | UnsetType = UNSET
    """recommended: who initiated the run"""
    workload: Workload | UnsetType = UNSET
    """recommended"""


class RunStarted(Struct, frozen=True, kw_only=True):
    """`run` of a run_start event."""

    started_at: str
    mode: Mode
    policy: PolicyRef
    meta: dict[str, Any] | UnsetType = UNSET
    """recommended, freeform: issue_id, repo, task_type"""


class RunStart(Event, frozen=True, kw_only=True, tag=EventType.RUN_START.value):
    """A run has begun (Pack 1.4). Emitted once per run, whichever shim comes first (shared-runs)."""

    run: RunStarted


class ArgsPreview(Struct, frozen=True, kw_only=True):
    """What may be shown of a call's arguments: redacted, then cut."""

    truncated: bool
    redaction_flags: list[str] | UnsetType = UNSET
    """additive: names of what was masked"""
    hash: str | UnsetType = UNSET
    """additive: SHA-256 of the preview text, so the chain holds when the text is dropped (provable-ledger)"""
    args_preview: str | UnsetType = UNSET


class ResultPreview(Struct, frozen=True, kw_only=True):
    """What may be shown of a call's result."""

    truncated: bool
    redaction_flags: list[str] | UnsetType = UNSET
    """additive"""
    hash: str | UnsetType = UNSET
    """additive, see ArgsPreview"""
    result_preview: str | UnsetType = UNSET


class CallRef(Struct, frozen=True, kw_only=True):
    """Which call an event is about."""

    call_id: str
    server_name: str
    tool_name: str
    args_hash: str


class CallStarted(CallRef, frozen=True, kw_only=True):
    """`call` of a tool_call_start event."""

    transport: Transport
    bytes_in: int
    """size of the message at the shim's boundary"""
    seq: int
    """index of the call within the run, from 1, across all its shims"""
    mono_ms: int | UnsetType = UNSET
    """additive: the monotonic clock that windows and buckets were asked with, for replay"""
    tags: list[str] | UnsetType = UNSET
    timeout_ms: int | UnsetType = UNSET
    args_stream_hash: str | UnsetType = UNSET
    """SHA-256 of the raw argument bytes, where they were too large to inspect (Pack 1.9.2)"""
    client_call_id: str | UnsetType = UNSET
    """additive: the client's own id of the call, for correlation with its hooks"""
    traceparent: str | UnsetType = UNSET
    """additive: W3C trace context that the call carried"""
    preview: ArgsPreview


class ToolCallStart(Event, frozen=True, kw_only=True, tag=EventType.TOOL_CALL_START.value):
    """A tool call has reached us. No decision has been made yet (Pack 1.5)."""

    call: CallStarted


class Explain(Struct, frozen=True, kw_only=True):
    """Why, for people and for machines."""

    summary: str
    reason_code: str


class WouldBe(Struct, frozen=True, kw_only=True):
    """Additive: what observe mode would have done (rule-evaluation)."""

    action: Action
    rule_id: str | None
    severity: Severity
    reason_code: str


class DecisionMade(Struct, frozen=True, kw_only=True):
    """`decision` of a tool_call_decision event."""

    action: Action
    rule_id: str | None
    severity: Severity
    explain: Explain
    policy: PolicyRef
    backoff_ms: int | UnsetType = UNSET
    hint: Hint | UnsetType = UNSET
    terminate: Terminate | UnsetType = UNSET
    would_be: WouldBe | UnsetType = UNSET
    """additive"""
    grant: GrantRef | UnsetType = UNSET
    """additive: the person's grant that let the call pass"""
    grants: list[GrantRef] | UnsetType = UNSET
    """additive: all of them, where several rules had to be passed"""
    policies: list[LayeredPolicyRef] | UnsetType = UNSET
    """additive: every layer that was asked (policy-layers)"""


class ToolCallDecision(Event, frozen=True, kw_only=True, tag=EventType.TOOL_CALL_DECISION.value):
    """What was decided (Pack 1.6)."""

    call: CallRef
    decision: DecisionMade


class ErrorDetail(Struct, frozen=True, kw_only=True):
    """Why a call did not end OK. Safe to show: no secrets."""

    class_: ErrorClass = field(name="class")
    message: str
    code: str | int | UnsetType = UNSET
    retryable: bool | UnsetType = UNSET


class ToolCallEnd(Event, frozen=True, kw_only=True, tag=EventType.TOOL_CALL_END.value):
    """A tool call is over, forwarded or not (Pack 1.7)."""

    call: CallRef
    status: Status
    latency_ms: int
    bytes_out: int
    error: ErrorDetail | UnsetType = UNSET
    result_stream_hash: str | UnsetType = UNSET
    """SHA-256 of the raw result, where it was too large to inspect (Pack 1.9.2)"""
    after_seq: int | UnsetType = UNSET
    """additive: the last `seq` of the run when its breakers learnt of this end, if they did"""
    mono_ms: int | UnsetType = UNSET
    """additive: the monotonic clock then"""
    preview: ResultPreview


class RunSummary(Struct, frozen=True, kw_only=True):
    """Totals of a run, over all its shims (shared-runs)."""

    calls_total: int
    calls_allowed: int
    calls_blocked: int
    """BLOCK, REJECT_WITH_HINT and TERMINATE_RUN"""
    calls_throttled: int
    errors_total: int
    """calls that did not end OK, refused ones included"""
    duration_ms: int


class RunEnded(Struct, frozen=True, kw_only=True):
    """`run` of a run_end event."""

    ended_at: str
    status: RunStatus
    summary: RunSummary
    reason: str | UnsetType = UNSET
    """additive: why, where the status alone does not say it"""


class RunEnd(Event, frozen=True, kw_only=True, tag=EventType.RUN_END.value):
    """A run is over (Pack 1.8). A later shim reopens it; then the last run_end counts (shared-runs)."""

    run: RunEnded


class HintedCall(Struct, frozen=True, kw_only=True):
    """`call` of a hint_issued event; the Pack requires only call_id."""

    call_id: str
    server_name: str | UnsetType = UNSET
    tool_name: str | UnsetType = UNSET


class HintIssued(Event, frozen=True, kw_only=True, tag=EventType.HINT_ISSUED.value):
    """The agent was told how to do better (Pack 3.3)."""

    call: HintedCall
    hint: Hint
    hint_id: str | UnsetType = UNSET
    """additive: what `sub promote` takes"""
    rule_id: str | UnsetType | None = UNSET
    """additive"""


class PolicyLoad(Struct, frozen=True, kw_only=True):
    """`load` of a policy_loaded event. Additive: the Pack names the event, not its fields."""

    layer: Layer
    ok: bool
    mode: Mode | UnsetType = UNSET
    file: str | UnsetType = UNSET
    problem: str | UnsetType = UNSET
    """why it was refused; the last good one stays in force (fast-start)"""


class PolicyLoaded(Event, frozen=True, kw_only=True, tag=EventType.POLICY_LOADED.value):
    """A policy came into force, or was refused."""

    policy: PolicyRef | UnsetType = UNSET
    load: PolicyLoad
    snapshot: Raw | UnsetType = UNSET
    """the compiled policy as `sub policy compile` writes it, so that what decided can be read and
    asked again wherever the event goes; left out above MAX_POLICY_EVENT_BYTES"""


class Injection(Struct, frozen=True, kw_only=True):
    """`injection` of a secret_injection event: metadata, never a value (Pack 4.1)."""

    inject_as: str
    secret_ref: str
    source: SecretSource
    success: bool
    server_name: str | UnsetType = UNSET


class SecretInjection(Event, frozen=True, kw_only=True, tag=EventType.SECRET_INJECTION.value):
    """A secret was, or could not be, given to an upstream server."""

    injection: Injection


class Health(Struct, frozen=True, kw_only=True):
    """`health` of a shim_health event. Additive: the Pack names the event, not its fields."""

    state: str
    """alive, spawned, exited, killed, stopping, degraded"""
    server_name: str | UnsetType = UNSET
    pid: int | UnsetType = UNSET
    """of the upstream process the state is about"""
    exit_code: int | UnsetType = UNSET
    signal: int | UnsetType = UNSET
    detail: str | UnsetType = UNSET
    calls_open: int | UnsetType = UNSET
    events_lost: int | UnsetType = UNSET
    """what a full disk cost (journal-first); the gap is committed to the chain"""


class ShimHealth(Event, frozen=True, kw_only=True, tag=EventType.SHIM_HEALTH.value):
    """A heartbeat, or a step in the life of the upstream process (no-orphans)."""

    health: Health


class Trip(Struct, frozen=True, kw_only=True):
    """`breaker` of a breaker_trip event. Additive: the Pack names the event, not its fields."""

    rule_id: str
    scope: Scope
    action: Action
    cause: str
    """errors, repeats or latency"""
    count: int


class BreakerTrip(Event, frozen=True, kw_only=True, tag=EventType.BREAKER_TRIP.value):
    """A breaker refused a call."""

    call: CallRef
    breaker: Trip


class ListedTool(Struct, frozen=True, kw_only=True):
    """A tool as its server describes it."""

    name: str
    hash: str
    """SHA-256 of the canonical definition, as the server sent it"""
    definition: str | UnsetType = UNSET
    """the canonical definition, redacted; left out where the event would be too large"""


class ToolListing(Struct, frozen=True, kw_only=True):
    """`listing` of a tools_listed event: one page of an answer to tools/list."""

    server_name: str
    tools: list[ListedTool]
    truncated: bool
    """whether tools or definitions were left out, because the answer was too large"""


class ToolsListed(Event, frozen=True, kw_only=True, tag=EventType.TOOLS_LISTED.value):
    """Which tools a server offers: when first told, and when that changed. Additive."""

    listing: ToolListing


class ApprovalRequested(Event, frozen=True, kw_only=True, tag=EventType.APPROVAL_REQUESTED.value):
    """A call was refused until a person approves it (no-call-waits). Once, however often it is repeated."""

    call: CallRef
    approval: ApprovalAsked


class ApprovalDecided(Event, frozen=True, kw_only=True, tag=EventType.APPROVAL_DECIDED.value):
    """A person answered, in a record of their own beside those of the run's shims."""

    approval: ApprovalGiven


class GrantRefused(Event, frozen=True, kw_only=True, tag=EventType.GRANT_REFUSED.value):
    """A grant lay there for a call, and was not taken."""

    call: CallRef
    grant: RefusedGrant


class KillSwitch(Event, frozen=True, kw_only=True, tag=EventType.KILL_SWITCH.value):
    """A person stopped a run, an agent, a tool or everything, or lifted that (shared-runs).

    It stands in the record of every living run that it concerns; where there is none, in that of
    the run `operator`.
    """

    switch: Switch


AnyEvent = (
    RunStart
    | ToolCallStart
    | ToolCallDecision
    | ToolCallEnd
    | RunEnd
    | HintIssued
    | PolicyLoaded
    | SecretInjection
    | ShimHealth
    | BreakerTrip
    | ToolsListed
    | ApprovalRequested
    | ApprovalDecided
    | GrantRefused
    | KillSwitch
)

REQUIRED_EVENTS = (RunStart, ToolCallStart, ToolCallDecision, ToolCallEnd, RunEnd)
OPTIONAL_EVENTS = (
    HintIssued,
    PolicyLoaded,
    SecretInjection,
    ShimHealth,
    BreakerTrip,
    ToolsListed,
    ApprovalRequested,
    ApprovalDecided,
    GrantRefused,
    KillSwitch,
)
EVENTS = REQUIRED_EVENTS + OPTIONAL_EVENTS
