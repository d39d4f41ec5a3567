"""Every closed set of words on the wire. No other module compares against a literal of these."""

from enum import IntEnum, StrEnum


class EventType(StrEnum):
    """Pack 1.2: the first five MUST be emitted, the next five MAY. The last five are additive."""

    RUN_START = "run_start"
    TOOL_CALL_START = "tool_call_start"
    TOOL_CALL_DECISION = "tool_call_decision"
    TOOL_CALL_END = "tool_call_end"
    RUN_END = "run_end"
    HINT_ISSUED = "hint_issued"
    POLICY_LOADED = "policy_loaded"
    SECRET_INJECTION = "secret_injection"
    SHIM_HEALTH = "shim_health"
    BREAKER_TRIP = "breaker_trip"
    TOOLS_LISTED = "tools_listed"
    APPROVAL_REQUESTED = "approval_requested"
    APPROVAL_DECIDED = "approval_decided"
    GRANT_REFUSED = "grant_refused"
    KILL_SWITCH = "kill_switch"


class Client(StrEnum):
    """Which agent client started the run (Pack 1.3)."""

    CLAUDE = "claude"
    CODEX = "codex"
    HEADLESS = "headless"
    CUSTOM = "custom"
    UNKNOWN = "unknown"


class Env(StrEnum):
    """Where the run happens (Pack 1.3)."""

    DEV = "dev"
    CI = "ci"
    PROD = "prod"
    UNKNOWN = "unknown"


class Mode(StrEnum):
    """How a policy acts (Pack 2.1, spec 001 section 9.1)."""

    OBSERVE = "observe"
    """decide and record, enforce nothing"""
    GUARDRAILS = "guardrails"
    """enforce as written"""
    CONTROL = "control"
    """enforce, and turn BLOCK into REJECT_WITH_HINT"""


class Transport(StrEnum):
    """Which door a tool call came through (Pack 1.5, 7.3)."""

    MCP_STDIO = "mcp_stdio"
    MCP_HTTP = "mcp_http"
    MESSAGES_API = "messages_api"
    HTTP = "http"
    UNKNOWN = "unknown"


class Action(StrEnum):
    """What happens to a tool call (Pack 1.6). Ordered from mildest to strictest (policy-layers)."""

    ALLOW = "ALLOW"
    THROTTLE = "THROTTLE"
    REJECT_WITH_HINT = "REJECT_WITH_HINT"
    BLOCK = "BLOCK"
    TERMINATE_RUN = "TERMINATE_RUN"


class Severity(StrEnum):
    """How much a decision or a policy change matters. Ordered."""

    INFO = "info"
    WARN = "warn"
    CRITICAL = "critical"


class Status(StrEnum):
    """How a tool call ended (Pack 1.7)."""

    OK = "OK"
    ERROR = "ERROR"
    TIMEOUT = "TIMEOUT"
    CANCELLED = "CANCELLED"


class RunStatus(StrEnum):
    """How a run ended (Pack 1.8)."""

    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    TERMINATED = "TERMINATED"
    CANCELLED = "CANCELLED"


class ErrorClass(StrEnum):
    """Whose fault an end was (Pack 1.7)."""

    UPSTREAM_ERROR = "upstream_error"
    POLICY_BLOCK = "policy_block"
    TIMEOUT = "timeout"
    TRANSPORT = "transport"
    UNKNOWN = "unknown"


class HintKind(StrEnum):
    """What sort of mending a hint offers (Pack 3.2.4)."""

    ARG_FIX = "ARG_FIX"
    BUDGET = "BUDGET"
    RATE = "RATE"
    SAFETY = "SAFETY"
    OTHER = "OTHER"


class RuleKind(StrEnum):
    """Pack 2.3, and `pin` (additive)."""

    ALLOW = "allow"
    DENY = "deny"
    BUDGET = "budget"
    RATE_LIMIT = "rate_limit"
    BREAKER = "breaker"
    DEDUPE = "dedupe"
    TAG = "tag"
    PIN = "pin"


class Scope(StrEnum):
    """What a counter counts over (Pack 2.5). `tool` spans servers, `server_tool` does not (rule-evaluation)."""

    RUN = "run"
    TOOL = "tool"
    SERVER_TOOL = "server_tool"


class SecretSource(StrEnum):
    """Where a secret's value is read (Pack 4.1)."""

    ENV = "env"
    KEYCHAIN = "keychain"
    FILE = "file"


class Layer(StrEnum):
    """Where a policy comes from (policy-layers), in order of precedence on a tie. Additive."""

    MANAGED = "managed"
    USER = "user"
    REPOSITORY = "repository"


class Requirement(StrEnum):
    """What a rule may ask of a person before a call passes (one-decision-language, no-call-waits). Additive."""

    APPROVAL = "approval"
    STEP_UP = "step_up"
    TICKET = "ticket"
    HUMAN = "human"
    CONFIRMATION = "confirmation"


class ApprovalAnswer(StrEnum):
    """What a person said to a pending approval (no-call-waits). Additive."""

    APPROVED = "approved"
    DENIED = "denied"


class GrantProblem(StrEnum):
    """Why a grant was not taken (no-call-waits, local-is-not-trusted). Additive."""

    SEAL = "seal"
    """this home did not write it as it stands: edited, or made in another home"""
    RUN = "run"
    """made for another run"""
    STATE = "state"
    """the run's state was removed since: what was spent cannot be told"""
    CALL = "call"
    """made for another call or another rule"""
    EXPIRED = "expired"
    SPENT = "spent"
    """used as often as it may be"""
    UNCOUNTED = "uncounted"
    """its use could not be counted, so it was not used"""


class StopScope(StrEnum):
    """What the kill switch stops. Additive."""

    RUN = "run"
    AGENT = "agent"
    TOOL = "tool"
    ALL = "all"


class SwitchState(StrEnum):
    """Which way the kill switch was moved. Additive."""

    KILLED = "killed"
    REVIVED = "revived"


class ReasonCode(StrEnum):
    """Reason codes of our own (rule-evaluation). A rule's effect may name others; those are the author's.

    Under each stand two paragraphs: what it means, and what to do. They are its reference page.
    """

    DEFAULT_ALLOW = "DEFAULT_ALLOW"
    """No rule had anything to say about this call, so it passed.

    Nothing. To refuse what no rule allows, end the policy with a `deny` rule whose `match` is
    `{}`."""
    POLICY_NOT_APPLICABLE = "POLICY_NOT_APPLICABLE"
    """The policy's `selectors` do not match this run, so the policy was not asked.

    Compare `selectors` with the `env`, `agent_id`, `client` and `workload` of the run's events.
    An empty `selectors: {}` applies to every run."""
    BUDGET_EXCEEDED = "BUDGET_EXCEEDED"
    """A `budget` rule counted more calls, or more cost, than it allows in its scope.

    The agent should finish with what it has. Raise `limit_calls` or `limit_cost_units` in the
    rule that `rule_id` names, or start a new run."""
    RATE_LIMITED = "RATE_LIMITED"
    """A `rate_limit` rule's bucket has no token left for this call.

    Wait for `backoff_ms`, then try again. If the limit is too tight, raise `capacity` or the
    refill of the rule."""
    BREAKER_TRIPPED = "BREAKER_TRIPPED"
    """A `breaker` rule saw too many errors, identical calls or slow calls in its window.

    Look at the calls before this one: the agent is looping, or the upstream server is failing.
    The breaker closes by itself when its window has passed."""
    DEDUPE_DUPLICATE = "DEDUPE_DUPLICATE"
    """A `dedupe` rule saw the same call, with the same arguments, inside its window.

    The first call was forwarded and took effect: use its result. To repeat it on purpose,
    change the arguments or wait for `window_ms`."""
    EVALUATION_ERROR = "EVALUATION_ERROR"
    """The policy could not be evaluated, so its `decision_on_error` was applied.

    Run `sub policy lint` on the policy and read the summary of the decision: it names what went
    wrong. Names or counters beyond the documented limits are the usual cause."""
    AMBIGUOUS_MESSAGE = "AMBIGUOUS_MESSAGE"
    """The client sent a message that two JSON parsers may read differently, so that what we judge
    need not be what the server does.

    Send strict JSON: no duplicate keys, no NaN, no lone surrogates, no nesting past 512 levels.
    `sub canonical` says what is wrong with a text."""
    JOURNAL_UNAVAILABLE = "JOURNAL_UNAVAILABLE"
    """The decision could not be recorded, because the journal cannot be written.
    `decision_on_error` was applied.

    Free some disk space, and check that the journal folder below SUB_HOME can be written. What
    was lost is counted in a `shim_health` event."""
    RUN_TERMINATED = "RUN_TERMINATED"
    """A rule, or a person with `sub kill`, ended this run earlier. Every later call of the run is
    refused.

    The summary says who or what ended it. Start a new run; `sub revive` lifts a person's stop, not
    a rule's."""
    KILL_SWITCH = "KILL_SWITCH"
    """A person stopped this tool, this agent or everything with `sub kill`.

    The summary says who stopped it, and why. `sub revive` lifts the stop."""
    APPROVAL_GRANTED = "APPROVAL_GRANTED"
    """A rule asks for a person, and a person's grant covers this call.

    Nothing. `grant` in the decision says who approved it."""
    APPROVAL_DENIED = "APPROVAL_DENIED"
    """A rule asks for a person, and the person said no to this very call.

    Do not repeat it: read the person's reason in the summary and find another way. The person can
    still change their mind with `sub approve`."""
    APPROVAL_REQUIRED = "APPROVAL_REQUIRED"
    """A rule lets this call pass only after a person approved it. The call was refused at once,
    and an approval is pending.

    A person runs `sub approvals` and `sub approve`; then the agent repeats the same call."""
    STEP_UP_REQUIRED = "STEP_UP_REQUIRED"
    """A rule asks for a stronger proof of identity before this call.

    The principal of the run authenticates again and approves the pending entry of `sub
    approvals`; then the agent repeats the same call."""
    TICKET_REQUIRED = "TICKET_REQUIRED"
    """A rule asks for a change ticket before this call.

    Open the ticket, approve the pending entry of `sub approvals` with it; then the agent
    repeats the same call."""
    HUMAN_REQUIRED = "HUMAN_REQUIRED"
    """A rule leaves this action to a person altogether.

    A person does it, or approves the pending entry of `sub approvals` so that the agent may
    repeat the call."""
    CONFIRMATION_REQUIRED = "CONFIRMATION_REQUIRED"
    """A rule asks that somebody confirms this very call.

    Read the arguments of the pending entry in `sub approvals` and approve it; then the agent
    repeats the same call."""


class ErrorCode(IntEnum):
    """JSON-RPC error codes reserved by Pack 3.2.1; they change only with a MAJOR version."""

    POLICY_BLOCKED = -32081
    POLICY_THROTTLED = -32082
    REJECT_WITH_HINT = -32083
    RUN_TERMINATED = -32084


class McpErrorCode(IntEnum):
    """The same outside the range that MCP 2026-07-28 reserves; setting `codes = "mcp"` (visible-hints)."""

    POLICY_BLOCKED = -31081
    POLICY_THROTTLED = -31082
    REJECT_WITH_HINT = -31083
    RUN_TERMINATED = -31084


ACTION_STRICTNESS = {action: rank for rank, action in enumerate(Action)}
SEVERITY_RANK = {severity: rank for rank, severity in enumerate(Severity)}
