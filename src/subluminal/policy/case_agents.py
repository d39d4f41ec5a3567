"""Who acts in a policy case, and what the program around a call says: as people write it.

`sub policy explain` takes the same as options.
"""

from typing import Annotated, Any

from msgspec import Meta, Struct, field

from subluminal.contracts.agents import AgentFacts, Claims
from subluminal.contracts.call import MCP, Given
from subluminal.contracts.identity import Identity, Workload
from subluminal.contracts.vocabulary import Client, Env, TrustLevel
from subluminal.policy.agents import in_environment

Depth = Annotated[int, Meta(ge=0)]


class CaseWorkload(Workload, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A workload that refuses unknown fields."""


class CaseIdentity(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The identity of the run, which selectors compare, and the facts about its agent."""

    env: Env | None = None
    """environment that selectors compare; by default what `environment` says, else dev"""
    agent_id: str = "test"
    client: Client = Client.CUSTOM
    principal: str | None = None
    workload: CaseWorkload = CaseWorkload()
    environment: str | None = None
    """environment in any words; by default that of `env`"""
    agent_type: str | None = None
    """type of the agent, as registered"""
    trust_level: TrustLevel = TrustLevel.UNTRUSTED
    """trust in the agent"""
    trust_after_denials: TrustLevel | None = None
    """trust in the agent while more than three calls in a row have been refused; by default the
    same"""
    roles: list[str] = field(default_factory=list)
    """roles of the agent"""
    registered: bool = False
    """whether the agent is registered"""
    delegation_depth: Depth = 0
    """number of agents that handed the work on"""

    @property
    def identity(self) -> Identity:
        """The identity, as an Engine takes it."""
        placed = in_environment(Identity(env=Env.DEV), self.environment)
        return Identity(
            agent_id=self.agent_id,
            client=self.client,
            env=self.env or placed.env,
            environment=placed.environment,
            principal=self.principal,
            workload=self.workload,
        )

    @property
    def facts(self) -> AgentFacts:
        """The facts about the agent, as an Engine takes them."""
        return AgentFacts(
            registered=self.registered,
            agent_type=self.agent_type,
            trust_level=self.trust_level,
            trust_after_denials=self.trust_after_denials or self.trust_level,
            roles=tuple(self.roles),
            delegation_depth=self.delegation_depth,
        )


class CaseClaims(Claims, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Claims that refuse unknown fields."""

    delegation_depth: Depth | None = None
    """number of agents that handed the work on"""


class CaseGiven(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a door or a program says about one call."""

    provider: str = MCP
    """what provides the tool: `mcp`, `built-in`, or a name that a program gives"""
    labels: list[str] = field(default_factory=list)
    """labels of the data that the call handles"""
    context: dict[str, Any] = field(default_factory=dict)
    """further data that the program gives with the call"""
    user_input: str | None = None
    """text of the user that led to the call"""
    claims: CaseClaims | None = None
    """what the caller says of itself"""

    @property
    def given(self) -> Given | None:
        """What the program says, as a Call takes it; None if it says nothing."""
        if not (self.labels or self.context or self.claims or self.user_input is not None):
            return None
        return Given(
            labels=frozenset(self.labels),
            context=self.context,
            user_input=self.user_input,
            claims=self.claims,
        )
