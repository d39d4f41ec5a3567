"""Contract A: the envelope of events, ten types of the Pack, ten additive types (Pack section 1).

Events are read tolerantly: unknown fields and unknown types are ignored (Pack 0.2). On the path of
a call, `templates` writes the same bytes; a property test compares the two.
"""

from typing import Any, Literal

from msgspec import UNSET, Raw, Struct, UnsetType, field

from subluminal.contracts.agents import AgentChange, AgentResolved, Claims
from subluminal.contracts.control import (
    ApprovalAsked,
    ApprovalGiven,
    RefusedGrant,
    Released,
    Switch,
)
from subluminal.contracts.decision import (
    Deferral,
    GrantRef,
    Hint,
    LayeredPolicyRef,
    PolicyRef,
    Terminate,
)
from subluminal.contracts.identity import Source, Workload
from subluminal.contracts.intents import KernelDecision
from subluminal.contracts.targets import Targets
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
    Taint,
    TaintCause,
    Transport,
)


class Event(Struct, frozen=True, kw_only=True, tag_field="type"):
    """The fields of every event (Pack 1.3)."""

    v: str
    """version of the Interface Pack"""
    ts: str
    """time of the event, RFC 3339 in UTC"""
    run_id: str
    """id of the run"""
    agent_id: str
    """name of the agent"""
    client: Client
    """agent client that started the run"""
    env: Env
    """environment of the run"""
    source: Source
    """producer of the event"""
    principal: str | UnsetType = UNSET
    """recommended: person or service on whose behalf the run acts"""
    workload: Workload | UnsetType = UNSET
    """recommended: where the run takes place"""


class RunStarted(Struct, frozen=True, kw_only=True):
    """`run` of a run_start event."""

    started_at: str
    """start of the run, RFC 3339"""
    mode: Mode
    """strictest mode of the policies that apply"""
    policy: PolicyRef
    """policy of the first layer that applies"""
    meta: dict[str, Any] | UnsetType = UNSET
    """recommended: any further data about the run, such as issue_id, repo, task_type. Additive, set
    by Subluminal: env_source, parent_run_id, servers, strict, fail_on, allow_silent"""
    policy_problem: str | UnsetType = UNSET
    """additive: why a policy that should be in force is not; until it is mended, every call is
    refused"""
    taint: Taint | UnsetType = UNSET
    """additive: level that the run starts with, if a policy or SUB_TAINT speaks of it"""
    agent: AgentResolved | UnsetType = UNSET
    """additive: who acts and how that was proven, if a policy asks for it"""


class RunStart(Event, frozen=True, kw_only=True, tag=EventType.RUN_START.value):
    """A run has begun (Pack 1.4). The first shim of the run emits it, once."""

    run: RunStarted
    """the run"""


class ArgsPreview(Struct, frozen=True, kw_only=True):
    """The recorded text of a call's arguments: redacted first, then cut to MAX_PREVIEW_BYTES."""

    truncated: bool
    """whether the text was cut"""
    redaction_flags: list[str] | UnsetType = UNSET
    """additive: names of what was masked"""
    hash: str | UnsetType = UNSET
    """additive: SHA-256 of the text in hex; the chain stays verifiable if the text is dropped"""
    args_preview: str | UnsetType = UNSET
    """the text"""


class ResultPreview(Struct, frozen=True, kw_only=True):
    """The recorded text of a call's result: redacted first, then cut to MAX_PREVIEW_BYTES."""

    truncated: bool
    """whether the text was cut"""
    redaction_flags: list[str] | UnsetType = UNSET
    """additive: names of what was masked"""
    hash: str | UnsetType = UNSET
    """additive: SHA-256 of the text in hex; the chain stays verifiable if the text is dropped"""
    result_preview: str | UnsetType = UNSET
    """the text"""


class CallRef(Struct, frozen=True, kw_only=True):
    """The call that an event is about."""

    call_id: str
    """id of the call"""
    server_name: str
    """exact name of the server in the client's configuration"""
    tool_name: str
    """exact name of the tool, as its server gives it"""
    args_hash: str
    """SHA-256 of the canonical arguments, in hex"""


GivenPart = Literal["labels", "context", "claims"]


class GivenPreview(Struct, frozen=True, kw_only=True):
    """Additive: what the program around a call said about it. Secrets are masked."""

    labels: list[str] | UnsetType = UNSET
    """labels of the data that the call handles"""
    context: str | UnsetType = UNSET
    """context of the call as JSON: redacted, then cut; missing if previews are off"""
    truncated: bool | UnsetType = UNSET
    """whether `context` was cut; missing if it was not"""
    user_input_hash: str | UnsetType = UNSET
    """SHA-256 of the user's text that led to the call, in hex"""
    claims: Claims | UnsetType = UNSET
    """what the caller says of itself"""
    redacted: list[GivenPart] | UnsetType = UNSET
    """members in which a secret was masked"""


class CallStarted(CallRef, frozen=True, kw_only=True):
    """`call` of a tool_call_start event."""

    transport: Transport
    """protocol through which the call came"""
    bytes_in: int
    """size of the message in bytes, as the shim received it"""
    seq: int
    """number of the call within the run, from 1, across all shims of the run; 0 if the run's state
    was out of reach"""
    after_seq: int | UnsetType = UNSET
    """additive: last `seq` of the run before a call that got none, for replay"""
    mono_ms: int | UnsetType = UNSET
    """additive: monotonic clock in milliseconds with which windows and token buckets were
    evaluated, for replay"""
    tags: list[str] | UnsetType = UNSET
    """risk classes of the call"""
    timeout_ms: int | UnsetType = UNSET
    """timeout of the call in milliseconds"""
    args_stream_hash: str | UnsetType = UNSET
    """SHA-256 of the raw argument bytes in hex, if they were too large to inspect (Pack 1.9.2)"""
    client_call_id: str | UnsetType = UNSET
    """additive: the client's own id of the call, for correlation with its hooks"""
    traceparent: str | UnsetType = UNSET
    """additive: W3C trace context of the call"""
    retry_of: str | UnsetType = UNSET
    """additive: id of the refused call that this call repeats, after a program waited for an
    approval or for a rate limit"""
    targets: Targets | UnsetType = UNSET
    """additive: what the call touches, if a rule asked for it; secrets are masked"""
    provider: str | UnsetType = UNSET
    """additive: what provides the tool, if it is not an MCP server: `built-in`, or a name that a
    program gives"""
    given: GivenPreview | UnsetType = UNSET
    """additive: what the program around the call said about it, if it said anything"""
    preview: ArgsPreview
    """recorded text of the arguments"""


class ToolCallStart(Event, frozen=True, kw_only=True, tag=EventType.TOOL_CALL_START.value):
    """A tool call has arrived. It has not been decided yet (Pack 1.5)."""

    call: CallStarted
    """the call"""


class Explain(Struct, frozen=True, kw_only=True):
    """The reason for a decision."""

    summary: str
    """the reason in one sentence"""
    reason_code: str
    """code of the reason"""


class WouldBe(Struct, frozen=True, kw_only=True):
    """Additive: the decision that observe mode did not enforce."""

    action: Action
    """what would have happened to the call"""
    rule_id: str | None
    """rule that would have decided; null if no rule would"""
    severity: Severity
    """severity of the rule"""
    reason_code: str
    """code of the reason"""


class DecisionMade(Struct, frozen=True, kw_only=True):
    """`decision` of a tool_call_decision event."""

    action: Action
    """what happens to the call"""
    rule_id: str | None
    """rule that decided; null if no rule did"""
    severity: Severity
    """severity of the rule"""
    explain: Explain
    """the reason"""
    policy: PolicyRef
    """policy that decided"""
    backoff_ms: int | UnsetType = UNSET
    """wait before a retry in milliseconds, for THROTTLE"""
    hint: Hint | UnsetType = UNSET
    """advice for the agent, for REJECT_WITH_HINT"""
    terminate: Terminate | UnsetType = UNSET
    """why the run ends, for TERMINATE_RUN"""
    would_be: WouldBe | UnsetType = UNSET
    """additive: the decision that observe mode did not enforce"""
    grant: GrantRef | UnsetType = UNSET
    """additive: grant that let the call pass"""
    grants: list[GrantRef] | UnsetType = UNSET
    """additive: all grants that let the call pass, if several rules required one"""
    policies: list[LayeredPolicyRef] | UnsetType = UNSET
    """additive: policies of all layers that were evaluated"""
    taint: Taint | UnsetType = UNSET
    """additive: level of the run before the call, if a policy speaks of it"""
    defer: Deferral | UnsetType = UNSET
    """additive: what the call waits for, with SIGNAL_REQUIRED"""
    kernel: KernelDecision | UnsetType = UNSET
    """additive: decision of a pack, if one was asked"""
    constraints: dict[str, Any] | UnsetType = UNSET
    """additive: what the rule tells the agent to keep to"""


class ToolCallDecision(Event, frozen=True, kw_only=True, tag=EventType.TOOL_CALL_DECISION.value):
    """A tool call has been decided (Pack 1.6)."""

    call: CallRef
    """the call"""
    decision: DecisionMade
    """the decision"""


class ErrorDetail(Struct, frozen=True, kw_only=True):
    """Why a call did not end OK. Contains no secrets."""

    class_: ErrorClass = field(name="class")
    """kind of error"""
    message: str
    """the error in words"""
    code: str | int | UnsetType = UNSET
    """error code of the server or of Subluminal"""
    retryable: bool | UnsetType = UNSET
    """whether a retry may succeed"""


class ToolCallEnd(Event, frozen=True, kw_only=True, tag=EventType.TOOL_CALL_END.value):
    """A tool call has ended, whether it was forwarded or refused (Pack 1.7)."""

    call: CallRef
    """the call"""
    status: Status
    """how the call ended"""
    latency_ms: int
    """time from the arrival of the call to its answer, in milliseconds"""
    bytes_out: int
    """size of the answer in bytes"""
    error: ErrorDetail | UnsetType = UNSET
    """why the call did not end OK"""
    result_stream_hash: str | UnsetType = UNSET
    """SHA-256 of the raw result in hex, if it was too large to inspect (Pack 1.9.2)"""
    executed_args_hash: str | UnsetType = UNSET
    """additive: hash of the arguments that were executed, if the client changed them after the
    decision"""
    after_seq: int | UnsetType = UNSET
    """additive: last `seq` of the run when a breaker counted this end; missing if none did"""
    mono_ms: int | UnsetType = UNSET
    """additive: monotonic clock at that moment, in milliseconds"""
    begun_by: str | UnsetType = UNSET
    """additive: `shim_id` of the process that recorded the start and the decision of the call, if
    another process records its end (a handover)"""
    preview: ResultPreview
    """recorded text of the result"""


class ServerFailure(Struct, frozen=True, kw_only=True):
    """How a server failed: it did not start, or it ended by an error code or a signal. Additive."""

    server_name: str
    """the server"""
    detail: str
    """the failure in words"""
    exit_code: int | UnsetType = UNSET
    """exit code of the server's process"""
    signal: int | UnsetType = UNSET
    """number of the signal that ended the server's process"""
    stderr: str | UnsetType = UNSET
    """last line of the server's standard error that is not part of a traceback, redacted"""


class RunSummary(Struct, frozen=True, kw_only=True):
    """The totals of a run, across all its shims."""

    calls_total: int
    """number of calls"""
    calls_allowed: int
    """number of calls with ALLOW"""
    calls_blocked: int
    """number of calls with BLOCK, REJECT_WITH_HINT or TERMINATE_RUN"""
    calls_throttled: int
    """number of calls with THROTTLE"""
    errors_total: int
    """number of calls that did not end OK, including refused ones"""
    duration_ms: int
    """duration of the run in milliseconds"""
    calls_lost: int | UnsetType = UNSET
    """additive: number of forwarded calls whose outcome is unknown, because their shim was killed;
    also part of `errors_total`"""
    reason: str | UnsetType = UNSET
    """additive: `run.reason`, for stores that keep the summary only"""
    server_failure: ServerFailure | UnsetType = UNSET
    """additive: first server that failed, even if the run did not"""


class RunEnded(Struct, frozen=True, kw_only=True):
    """`run` of a run_end event."""

    ended_at: str
    """end of the run, RFC 3339"""
    status: RunStatus
    """how the run ended"""
    summary: RunSummary
    """totals of the run"""
    reason: str | UnsetType = UNSET
    """additive: reason for the end, if the status alone does not say it; a FAILED run always has
    one"""


class RunEnd(Event, frozen=True, kw_only=True, tag=EventType.RUN_END.value):
    """A run has ended (Pack 1.8). A later shim reopens the run; then the last run_end counts."""

    run: RunEnded
    """the run"""


class HintedCall(Struct, frozen=True, kw_only=True):
    """`call` of a hint_issued event. The Pack requires only `call_id`."""

    call_id: str
    """id of the call"""
    server_name: str | UnsetType = UNSET
    """server of the call"""
    tool_name: str | UnsetType = UNSET
    """tool of the call"""


class HintIssued(Event, frozen=True, kw_only=True, tag=EventType.HINT_ISSUED.value):
    """A refused call was answered with a hint (Pack 3.3)."""

    call: HintedCall
    """the refused call"""
    hint: Hint
    """the hint"""
    hint_id: str | UnsetType = UNSET
    """additive: id of the hint, which `sub promote` takes"""
    rule_id: str | UnsetType | None = UNSET
    """additive: rule that refused the call"""


class PolicyLoad(Struct, frozen=True, kw_only=True):
    """`load` of a policy_loaded event. Additive: the Pack names the event, not its fields."""

    layer: Layer
    """where the policy comes from"""
    ok: bool
    """whether the policy came into force"""
    mode: Mode | UnsetType = UNSET
    """mode of the policy"""
    file: str | UnsetType = UNSET
    """path of the policy file"""
    problem: str | UnsetType = UNSET
    """why the policy was refused; the last good one stays in force"""


class PolicyLoaded(Event, frozen=True, kw_only=True, tag=EventType.POLICY_LOADED.value):
    """A policy came into force, or was refused."""

    policy: PolicyRef | UnsetType = UNSET
    """the policy"""
    load: PolicyLoad
    """where the policy came from, and whether it is in force"""
    snapshot: Raw | UnsetType = UNSET
    """compiled policy as `sub policy compile` writes it, so that every reader of the event can
    replay its decisions; missing above MAX_POLICY_EVENT_BYTES"""


class Injection(Struct, frozen=True, kw_only=True):
    """`injection` of a secret_injection event. Never contains the secret itself (Pack 4.1)."""

    inject_as: str
    """name of the environment variable that the server gets"""
    secret_ref: str
    """name of the secret in its source"""
    source: SecretSource
    """where the secret is read from"""
    success: bool
    """whether the secret was given to the server"""
    server_name: str | UnsetType = UNSET
    """server that gets the secret"""
    detail: str | UnsetType = UNSET
    """additive: why the secret was not given to the server, in words"""


class SecretInjection(Event, frozen=True, kw_only=True, tag=EventType.SECRET_INJECTION.value):
    """A secret was given to a server, or could not be."""

    injection: Injection
    """the secret and the server"""


class Health(Struct, frozen=True, kw_only=True):
    """`health` of a shim_health event. Additive: the Pack names the event, not its fields."""

    state: str
    """`alive`, `spawned`, `exited`, `killed`, `stopping`, `degraded`, or `silent`: the client is
    configured to start this server, and no shim of it took part in the run"""
    server_name: str | UnsetType = UNSET
    """server of the shim"""
    pid: int | UnsetType = UNSET
    """process id of the server"""
    exit_code: int | UnsetType = UNSET
    """exit code of the server's process"""
    signal: int | UnsetType = UNSET
    """number of the signal that ended the server's process"""
    detail: str | UnsetType = UNSET
    """the state in words"""
    stderr: str | UnsetType = UNSET
    """last line of the standard error of a server that failed, redacted"""
    calls_open: int | UnsetType = UNSET
    """number of calls that wait for an answer"""
    events_lost: int | UnsetType = UNSET
    """number of events that a full disk lost; the chain records the gap"""


class ShimHealth(Event, frozen=True, kw_only=True, tag=EventType.SHIM_HEALTH.value):
    """A sign of life of a shim, or the start or end of its server's process."""

    health: Health
    """the state"""


class Trip(Struct, frozen=True, kw_only=True):
    """`breaker` of a breaker_trip event. Additive: the Pack names the event, not its fields."""

    rule_id: str
    """the breaker's rule"""
    scope: Scope
    """calls that share the breaker"""
    action: Action
    """what the rule does"""
    cause: str
    """`errors`, `repeats` or `latency`"""
    count: int
    """number of errors, repeats or slow calls in the window"""


class BreakerTrip(Event, frozen=True, kw_only=True, tag=EventType.BREAKER_TRIP.value):
    """A breaker refused a call."""

    call: CallRef
    """the call"""
    breaker: Trip
    """the breaker"""


class ListedTool(Struct, frozen=True, kw_only=True):
    """A tool as its server describes it."""

    name: str
    """name of the tool"""
    hash: str
    """SHA-256 of the canonical definition in hex, as the server sent it"""
    definition: str | UnsetType = UNSET
    """canonical definition, redacted; missing if the event would be too large"""


class ToolListing(Struct, frozen=True, kw_only=True):
    """`listing` of a tools_listed event: one page of an answer to tools/list."""

    server_name: str
    """server that offers the tools"""
    tools: list[ListedTool]
    """tools of this page"""
    truncated: bool
    """whether tools or definitions are missing because the answer was too large"""


class ToolsListed(Event, frozen=True, kw_only=True, tag=EventType.TOOLS_LISTED.value):
    """Additive: a server listed its tools for the first time, or its list has changed."""

    listing: ToolListing
    """the tools"""


class ApprovalRequested(Event, frozen=True, kw_only=True, tag=EventType.APPROVAL_REQUESTED.value):
    """Additive: a call is waiting for a person's approval. Emitted once, however often the agent
    repeats the call."""

    call: CallRef
    """the refused call"""
    approval: ApprovalAsked
    """what is waiting, and why"""


class ApprovalDecided(Event, frozen=True, kw_only=True, tag=EventType.APPROVAL_DECIDED.value):
    """Additive: a person has answered, or gave a grant unasked. The event has a source of its own
    beside the shims of the run."""

    approval: ApprovalGiven
    """the answer"""


class GrantRefused(Event, frozen=True, kw_only=True, tag=EventType.GRANT_REFUSED.value):
    """Additive: there was a grant for a call, but it was refused."""

    call: CallRef
    """the call"""
    grant: RefusedGrant
    """the grant, and why it was refused"""


class KillSwitch(Event, frozen=True, kw_only=True, tag=EventType.KILL_SWITCH.value):
    """Additive: a person stopped a run, an agent, a tool or everything, or lifted such a stop.

    Every live run that is affected gets the event; if there is none, the run `operator` gets it.
    """

    switch: Switch
    """what was stopped or revived"""


class Prompt(Struct, frozen=True, kw_only=True):
    """The size and hash of a prompt; its text is never recorded."""

    bytes: int
    """size in bytes"""
    hash: str
    """SHA-256 in hex"""


class PromptSubmitted(Event, frozen=True, kw_only=True, tag=EventType.PROMPT_SUBMITTED.value):
    """A person sent a prompt to the agent. Additive; recorded if `[hooks] prompts` says so."""

    prompt: Prompt
    """the prompt"""


class TaintChange(Struct, frozen=True, kw_only=True):
    """`taint` of a taint_changed event."""

    from_: Taint = field(name="from")
    """level before"""
    to: Taint
    """level from now on"""
    seq: int
    """number of the call that lowered the level; if no call did, of the last call before"""
    by: TaintCause
    """what changed the level"""
    rule_id: str | UnsetType = UNSET
    """rule that lowered the level"""
    server_name: str | UnsetType = UNSET
    """server whose text lowered the level"""
    tool_name: str | UnsetType = UNSET
    """tool whose text lowered the level; `resources/read` or `prompts/get` if no tool did"""
    reason: str | UnsetType = UNSET
    """the reason in words"""


class TaintChanged(Event, frozen=True, kw_only=True, tag=EventType.TAINT_CHANGED.value):
    """Additive: the level of the run has changed. It is on record before a call that lowers it is
    forwarded."""

    taint: TaintChange
    """the change"""


class AuditRecorded(Event, frozen=True, kw_only=True, tag=EventType.AUDIT_RECORD.value):
    """Additive: the kernel's own record of a decision, in adjudicate's format, with secrets masked.
    It is on record before an allowed call is executed."""

    call: CallRef
    """the call"""
    audit: Raw
    """the record"""


class IntentReleased(Event, frozen=True, kw_only=True, tag=EventType.INTENT_RELEASED.value):
    """Additive: a person released an intent whose execution was `unknown`, so that it may execute
    again. The run that claimed it gets the event; if that is gone, the run `operator` gets it."""

    intent: Released
    """the intent, and why it was released"""


class AgentChanged(Event, frozen=True, kw_only=True, tag=EventType.AGENT_CHANGED.value):
    """Additive: a person registered, changed or revoked an agent. The run `operator` gets the
    event."""

    agent: AgentChange
    """the registration after the change"""


class AgentResolvedAgain(Event, frozen=True, kw_only=True, tag=EventType.AGENT_RESOLVED.value):
    """Additive: who acts, by the facts of one process of the run. Each process that enters the run
    after run_start writes it if a rule asks, and again when its facts change: a registration, a
    proof that expired, or a policy that asks for the first time."""

    agent: AgentResolved
    """who acts, and how that was proven"""
    seq: int
    """number of the last call that was decided by the facts before; 0 if there was none"""


class RoundCall(CallRef, frozen=True, kw_only=True):
    """`call` of a call_round event."""

    round: int
    """number of the round within its call, from 2: tool_call_start is about the first"""
    bytes_in: int
    """size of the round's message in bytes, as the shim received it"""


class CallRound(Event, frozen=True, kw_only=True, tag=EventType.CALL_ROUND.value):
    """Additive: the client continued a call after the server had asked for input, and this round
    was decided. It has the `call_id` of its call, and comes before the call's tool_call_end."""

    call: RoundCall
    """the call, and the number of the round"""
    decision: DecisionMade
    """the decision about this round; if it is a refusal, it ends the call, and the call counts as
    refused"""


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
    | CallRound
    | PromptSubmitted
    | TaintChanged
    | AuditRecorded
    | IntentReleased
    | AgentChanged
    | AgentResolvedAgain
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
    CallRound,
    PromptSubmitted,
    TaintChanged,
    AuditRecorded,
    IntentReleased,
    AgentChanged,
    AgentResolvedAgain,
)
EVENTS = REQUIRED_EVENTS + OPTIONAL_EVENTS
