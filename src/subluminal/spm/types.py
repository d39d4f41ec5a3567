"""What goes in and comes out: identities, requests, decisions, events, and what hooks get.

The fields are those of Agent-SPM's schema (v0.3).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Required, TypedDict

AgentTrustLevel = Literal["untrusted", "basic", "verified", "privileged", "system"]
DecisionOutcome = Literal[
    "ALLOW", "DENY", "REQUIRE_APPROVAL", "STEP_UP", "REQUIRE_TICKET", "REQUIRE_HUMAN"
]
EventOutcome = Literal[
    "ALLOW",
    "DENY",
    "REQUIRE_APPROVAL",
    "STEP_UP",
    "REQUIRE_TICKET",
    "REQUIRE_HUMAN",
    "APPROVED",
    "REJECTED",
    "KILL_SWITCH",
    "RATE_LIMITED",
    "TIMEOUT",
]
PolicyBundle = Mapping[str, Any]
"""A bundle of Agent-SPM as plain data."""

STRICTNESS: dict[DecisionOutcome, int] = {
    "ALLOW": 0,
    "REQUIRE_APPROVAL": 1,
    "STEP_UP": 2,
    "REQUIRE_TICKET": 3,
    "REQUIRE_HUMAN": 4,
    "DENY": 5,
}
"""Rank of an outcome: of two decisions about one call the higher one holds."""


@dataclass(frozen=True, kw_only=True)
class AgentAttestation:
    """A proof of who the agent is. Only `signature` proves something: it is the token (a JWT)."""

    issuer: str
    issued_at: str
    expires_at: str | None = None
    signature: str | None = None


@dataclass(frozen=True, kw_only=True)
class AgentIdentity:
    """An agent as it describes itself, or as it is registered."""

    agent_id: str
    name: str
    owner: str
    environment: str
    agent_type: str | None = None
    trust_level: AgentTrustLevel | None = None
    roles: tuple[str, ...] | None = None
    capabilities: tuple[str, ...] | None = None
    max_delegation_depth: int | None = None
    attestation: AgentAttestation | None = None


@dataclass(frozen=True, kw_only=True)
class ToolIdentity:
    """A tool, its provider, and the hash of its manifest."""

    tool_name: str
    version: str | None = None
    provider: str | None = None
    manifest_hash: str | None = None
    permissions_required: tuple[str, ...] | None = None
    data_access: tuple[str, ...] | None = None
    verified: bool | None = None


@dataclass(frozen=True, kw_only=True)
class RequestedAction:
    """What the agent wants to do: `action` of a request."""

    type: str
    tool_name: str
    tool_args: dict[str, Any]
    tool_identity: ToolIdentity | None = None


@dataclass(frozen=True, kw_only=True)
class AgentActionRequest:
    """One call as plugins and callbacks see it. What it says of the agent is a claim."""

    request_id: str
    timestamp: str
    agent: AgentIdentity
    action: RequestedAction
    context: dict[str, Any]


@dataclass(frozen=True)
class Reason:
    """Why: a rule's id or a code, and a sentence."""

    code: str
    message: str


@dataclass(frozen=True, kw_only=True)
class Decision:
    """The decision about a call."""

    outcome: DecisionOutcome
    reasons: tuple[Reason, ...]
    approver_role: str | None = None
    constraints: dict[str, Any] | None = None


@dataclass(frozen=True, kw_only=True)
class Event:
    """One entry of the audit log."""

    event_id: str
    timestamp: str
    request_id: str
    agent_id: str
    tool_name: str
    outcome: EventOutcome
    reasons: tuple[Reason, ...]
    safe_payload: dict[str, Any]
    plugin_source: str | None = None


@dataclass(frozen=True)
class BeforeCheckContext:
    """What `before_check` of a plugin gets."""

    request: AgentActionRequest


@dataclass(frozen=True)
class AfterDecisionContext:
    """What `after_decision` of a plugin gets."""

    request: AgentActionRequest
    decision: Decision


@dataclass(frozen=True)
class AfterExecutionContext:
    """What `after_execution` of a plugin gets."""

    request: AgentActionRequest
    decision: Decision
    result: Any = None
    error: BaseException | None = None


@dataclass(frozen=True)
class PluginResult:
    """What a hook may return.

    A `decision` is one more layer: the strictest holds. After the execution, ALLOW puts its reasons
    on the audit log, and any other outcome withholds the result. `modified_request` replaces the
    request for what follows; it must have the same agent, tool and arguments.
    """

    decision: Decision | None = None
    modified_request: AgentActionRequest | None = None


@dataclass(frozen=True)
class SecurityCheckResult:
    """The result of a check. `event` is its first event; answers to questions are further ones."""

    allowed: bool
    decision: Decision
    event: Event


class SecurityError(Exception):
    """A guarded function was not run, or its result is withheld."""

    def __init__(self, decision: Decision) -> None:
        said = "; ".join(f"{each.code}: {each.message}" for each in decision.reasons)
        super().__init__(f"{decision.outcome}: {said}")
        self.decision = decision

    def __reduce__(self) -> tuple[Any, ...]:
        """Pools of processes pickle what a function raises."""
        return type(self), (self.decision,)


class CheckOptions(TypedDict, total=False):
    """The parameters of a check that may be missing."""

    agent_name: str | None
    environment: str | None
    owner: str | None
    action_type: str
    user_input: str | None
    data_labels: Iterable[str]
    risk_hints: Iterable[str]
    session_id: str | None
    parent_agent_id: str | None
    agent_type: str | None
    trust_level: AgentTrustLevel | None
    roles: Iterable[str] | None
    capabilities: Iterable[str] | None
    max_delegation_depth: int | None
    attestation: AgentAttestation | None
    tool_identity: ToolIdentity | None
    delegation_chain: Iterable[str] | None
    context: Mapping[str, Any] | None


class CheckToolCallParams(CheckOptions, total=False):
    """The parameters of a check, for programs that pass them on."""

    tool_name: Required[str]
    tool_args: Required[Mapping[str, Any]]
    agent_id: Required[str]


@dataclass(frozen=True, kw_only=True)
class About:
    """The parameters of a check that may be missing, as they are kept."""

    agent_name: str | None = None
    environment: str | None = None
    owner: str | None = None
    action_type: str = "tool_call"
    user_input: str | None = None
    data_labels: Iterable[str] = ()
    risk_hints: Iterable[str] = ()
    session_id: str | None = None
    parent_agent_id: str | None = None
    agent_type: str | None = None
    trust_level: AgentTrustLevel | None = None
    roles: Iterable[str] | None = None
    capabilities: Iterable[str] | None = None
    max_delegation_depth: int | None = None
    attestation: AgentAttestation | None = None
    tool_identity: ToolIdentity | None = None
    delegation_chain: Iterable[str] | None = None
    context: Mapping[str, Any] | None = None
    """further data, which rules can test"""

    def __post_init__(self) -> None:
        """Keeps lists as tuples: iterators could be read once only, and lists may change."""
        for name in ("data_labels", "risk_hints", "roles", "capabilities", "delegation_chain"):
            given = getattr(self, name)
            if isinstance(given, str):
                raise TypeError(f"{name} must be a list of texts")
            if given is not None:
                object.__setattr__(self, name, tuple(given))
