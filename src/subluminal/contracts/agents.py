"""Who acts: registrations, proofs, the facts that rules match, and what a caller says of itself.

A fact is proven; a claim is only said. A claim can make a decision stricter, never milder. All
additive; no behaviour.
"""

from typing import Any

from msgspec import UNSET, Struct, UnsetType, field

from subluminal.contracts.vocabulary import AgentState, ProofKind, TrustLevel


class AgentFacts(Struct, frozen=True, kw_only=True):
    """What is known about the agent of a run. The default is an agent that nobody registered."""

    registered: bool = False
    """whether the agent is registered and not revoked"""
    agent_type: str | None = None
    """type of the agent, as registered; None without a proof"""
    trust_level: TrustLevel = TrustLevel.UNTRUSTED
    """trust in the agent, all adjustments made"""
    trust_after_denials: TrustLevel = TrustLevel.UNTRUSTED
    """the same while more than three calls in a row have been refused"""
    roles: tuple[str, ...] = ()
    """roles of the agent, as registered; none without a proof"""
    delegation_depth: int = 0
    """number of agents that handed the work on; 0 if a person or a program started this one"""


class Said(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What somebody says of an agent. None for what is not said."""

    environment: str | None = None
    """environment"""
    agent_type: str | None = None
    """type of the agent"""
    trust_level: TrustLevel | None = None
    """trust in the agent"""
    roles: tuple[str, ...] | None = None
    """roles of the agent"""
    delegation_depth: int | None = None
    """number of agents that handed the work on"""


class Claims(Said, frozen=True, kw_only=True, omit_defaults=True):
    """What a caller says of itself in one call. None for what it does not say."""

    besides: tuple[Said, ...] = ()
    """what the agent's name and its process say without the call. A call is decided on each of
    these too, so that a claim does not take another one back"""

    @property
    def each(self) -> tuple[Said, ...]:
        """These claims, and those that hold without them."""
        return (self, *self.besides)


class Issuer(Struct, frozen=True, kw_only=True):
    """An issuer whose tokens prove an agent, and what such a token must say."""

    issuer: str
    """exact `iss` of the token"""
    subject: str
    """glob over the whole `sub` of the token"""
    audience: str = "subluminal"
    """audience that `aud` of the token must contain"""
    claims: dict[str, Any] = field(default_factory=dict)
    """JSON pointer into the token's claims to the value that must be there"""
    jwks: dict[str, Any]
    """public keys of the issuer (RFC 7517)"""


class Registration(Struct, frozen=True, kw_only=True):
    """An agent as a person registered it."""

    agent_id: str
    """name of the agent"""
    name: str
    """name for people"""
    owner: str
    """person or team"""
    environment: str
    """environment of the agent"""
    agent_type: str | None = None
    """type of the agent"""
    trust_level: TrustLevel = TrustLevel.BASIC
    """trust in the agent once it has proven itself"""
    unattested: TrustLevel = TrustLevel.BASIC
    """highest trust without a proof"""
    roles: list[str] = field(default_factory=list)
    """roles"""
    capabilities: list[str] = field(default_factory=list)
    """capabilities"""
    max_delegation_depth: int | None = None
    """depth of delegation above which trust is lowered"""
    issuers: list[Issuer] = field(default_factory=list)
    """issuers whose tokens prove the agent; the home's own tokens need no entry"""
    state: AgentState = AgentState.ACTIVE
    """whether the agent may act"""
    registered_at: str
    """time of the registration, RFC 3339"""
    registered_by: str
    """local user who registered the agent"""


class Proof(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How an agent proved itself. Never contains the token."""

    kind: ProofKind
    """kind of the proof"""
    issuer: str | None = None
    """`iss` of the token"""
    subject: str | None = None
    """`sub` of the token"""
    expires_at: str | None = None
    """time at which the proof expires, RFC 3339"""
    problem: str | None = None
    """why a token was refused"""


class AgentResolved(Struct, frozen=True, kw_only=True):
    """`agent` of run_start and agent_resolved events: the facts that rules were decided by."""

    agent_id: str
    """name of the agent"""
    environment: str
    """environment of the run, as written"""
    registered: bool
    """whether the agent is registered and not revoked"""
    agent_type: str | None
    """type of the agent"""
    trust_level: TrustLevel
    """trust in the agent"""
    trust_after_denials: TrustLevel
    """the same while more than three calls in a row have been refused"""
    roles: list[str]
    """roles of the agent"""
    delegation_depth: int
    """number of agents that handed the work on"""
    proof: Proof
    """how the agent proved itself"""


class AgentChange(Struct, frozen=True, kw_only=True):
    """`agent` of an agent_changed event: a registration after a person changed it."""

    agent_id: str
    """name of the agent"""
    state: AgentState
    """whether the agent may act"""
    by: str
    """local user who changed the registration"""
    trust_level: TrustLevel
    """trust in the agent once it has proven itself"""
    unattested: TrustLevel
    """highest trust without a proof"""
    agent_type: str | UnsetType = UNSET
    """type of the agent"""
    roles: list[str] = field(default_factory=list)
    """roles"""
    issuers: list[str] = field(default_factory=list)
    """issuers whose tokens prove the agent"""
    reason: str | UnsetType = UNSET
    """the user's reason"""
