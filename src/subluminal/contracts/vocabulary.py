"""Every closed set of words on the wire. No other module compares against a literal of these."""

from enum import IntEnum, StrEnum


class EventType(StrEnum):
    """Pack 1.2: the first five MUST be emitted, the rest MAY."""

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
    """What happens to a tool call (Pack 1.6). Ordered from mildest to strictest (D17)."""

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
    """What a counter counts over (Pack 2.5). `tool` spans servers, `server_tool` does not (D10)."""

    RUN = "run"
    TOOL = "tool"
    SERVER_TOOL = "server_tool"


class SecretSource(StrEnum):
    """Where a secret's value is read (Pack 4.1)."""

    ENV = "env"
    KEYCHAIN = "keychain"
    FILE = "file"


class Layer(StrEnum):
    """Where a policy comes from (D17), in order of precedence on a tie. Additive."""

    MANAGED = "managed"
    USER = "user"
    REPOSITORY = "repository"


class Requirement(StrEnum):
    """What a rule may ask of a person before a call passes (D2, D3). Additive."""

    APPROVAL = "approval"
    STEP_UP = "step_up"
    TICKET = "ticket"
    HUMAN = "human"
    CONFIRMATION = "confirmation"


class ReasonCode(StrEnum):
    """Reason codes of our own (D10). A rule's effect may name others; those are the author's."""

    DEFAULT_ALLOW = "DEFAULT_ALLOW"
    POLICY_NOT_APPLICABLE = "POLICY_NOT_APPLICABLE"
    BUDGET_EXCEEDED = "BUDGET_EXCEEDED"
    RATE_LIMITED = "RATE_LIMITED"
    BREAKER_TRIPPED = "BREAKER_TRIPPED"
    DEDUPE_DUPLICATE = "DEDUPE_DUPLICATE"
    EVALUATION_ERROR = "EVALUATION_ERROR"
    AMBIGUOUS_MESSAGE = "AMBIGUOUS_MESSAGE"
    JOURNAL_UNAVAILABLE = "JOURNAL_UNAVAILABLE"
    RUN_TERMINATED = "RUN_TERMINATED"
    KILL_SWITCH = "KILL_SWITCH"
    APPROVAL_GRANTED = "APPROVAL_GRANTED"
    APPROVAL_REQUIRED = "APPROVAL_REQUIRED"
    STEP_UP_REQUIRED = "STEP_UP_REQUIRED"
    TICKET_REQUIRED = "TICKET_REQUIRED"
    HUMAN_REQUIRED = "HUMAN_REQUIRED"
    CONFIRMATION_REQUIRED = "CONFIRMATION_REQUIRED"


class ErrorCode(IntEnum):
    """JSON-RPC error codes reserved by Pack 3.2.1; they change only with a MAJOR version."""

    POLICY_BLOCKED = -32081
    POLICY_THROTTLED = -32082
    REJECT_WITH_HINT = -32083
    RUN_TERMINATED = -32084


class McpErrorCode(IntEnum):
    """The same outside the range that MCP 2026-07-28 reserves; setting `codes = "mcp"` (D8)."""

    POLICY_BLOCKED = -31081
    POLICY_THROTTLED = -31082
    REJECT_WITH_HINT = -31083
    RUN_TERMINATED = -31084


ACTION_STRICTNESS = {action: rank for rank, action in enumerate(Action)}
SEVERITY_RANK = {severity: rank for rank, severity in enumerate(Severity)}
