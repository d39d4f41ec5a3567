"""How far an agent is trusted, who is registered, and which tools are known."""

import hmac
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256

from subluminal.config import env
from subluminal.config.places import places
from subluminal.contracts.agents import Registration
from subluminal.contracts.vocabulary import TRUST_RANK, AgentState, TrustLevel
from subluminal.core.controls.agents import roster, standing
from subluminal.spm.types import AgentIdentity, AgentTrustLevel, ToolIdentity
from subluminal.timestamps import parse_rfc3339
from subluminal.trust.levels import Circumstances, Trust, evaluate


@dataclass(frozen=True)
class TrustContext:
    """The circumstances in which an agent acts."""

    environment: str
    delegation_depth: int = 0
    time_of_day: int | None = None
    """hour of the day; None if it does not matter"""
    consecutive_denials: int = 0


class TrustEvaluator:
    """Says how far an agent would be trusted, and why. Rules use the registry, not this."""

    def evaluate(self, agent: AgentIdentity, context: TrustContext) -> Trust:
        """Returns the trust that the circumstances leave of the agent's level."""
        shown = agent.attestation
        expires_at = None if shown is None else shown.expires_at
        has_expired = expires_at is not None and _is_over(expires_at)
        return evaluate(
            TrustLevel(agent.trust_level or TrustLevel.BASIC),
            Circumstances(
                environment=context.environment,
                delegation_depth=context.delegation_depth,
                hour=context.time_of_day,
                consecutive_denials=context.consecutive_denials,
            ),
            is_attested=shown is not None and not has_expired,
            has_expired=has_expired,
            max_delegation_depth=agent.max_delegation_depth,
        )


def _is_over(expires_at: str) -> bool:
    return parse_rfc3339(expires_at) <= datetime.now(UTC).timestamp() * 1000


class AgentRegistry:
    """The agents that a person registered in this home. Read-only: see `sub agents register`."""

    def __init__(self, *, home: str | os.PathLike[str] | None = None) -> None:
        self._state = places(environ_in(home)).state

    def get(self, agent_id: str) -> AgentIdentity | None:
        """Returns a registered agent; None if nobody registered it, or it is revoked."""
        found = standing(self._state, agent_id)
        if found.registration is None or found.is_revoked:
            return None
        return _identity(found.registration)

    def is_revoked(self, agent_id: str) -> bool:
        """Whether every call of the agent is refused, for good."""
        return standing(self._state, agent_id).is_revoked

    def list_all(self) -> list[AgentIdentity]:
        """Returns every registered agent that is not revoked, sorted by id."""
        found = roster(self._state).registrations
        return [_identity(each) for each in found if each.state is AgentState.ACTIVE]

    def list_by_type(self, agent_type: str) -> list[AgentIdentity]:
        """Returns the agents of a type."""
        return [each for each in self.list_all() if each.agent_type == agent_type]

    def list_by_trust_level(self, trust_level: AgentTrustLevel) -> list[AgentIdentity]:
        """Returns the agents with at least this level."""
        least = TRUST_RANK[TrustLevel(trust_level)]
        return [
            each
            for each in self.list_all()
            if TRUST_RANK[TrustLevel(each.trust_level or TrustLevel.UNTRUSTED)] >= least
        ]


def _identity(registration: Registration) -> AgentIdentity:
    return AgentIdentity(
        agent_id=registration.agent_id,
        name=registration.name,
        owner=registration.owner,
        environment=registration.environment,
        agent_type=registration.agent_type,
        trust_level=registration.trust_level.value,
        roles=tuple(registration.roles),
        capabilities=tuple(registration.capabilities),
        max_delegation_depth=registration.max_delegation_depth,
    )


class ToolRegistry:
    """The tools that a program knows, for `identity_enforcer(tool_registry=…)`."""

    def __init__(self, tools: Iterable[ToolIdentity] = ()) -> None:
        self._tools = {each.tool_name: each for each in tools}
        self._revoked: set[str] = set()

    def get(self, tool: str) -> ToolIdentity | None:
        """Returns a tool; None if it is not registered, or revoked."""
        return None if tool in self._revoked else self._tools.get(tool)

    def revoke(self, tool: str) -> None:
        """Revokes a tool for good: its calls are refused from now on."""
        self._revoked.add(tool)

    def is_revoked(self, tool: str) -> bool:
        """Whether a tool is revoked."""
        return tool in self._revoked

    def verify_hash(self, tool: str, manifest: str | bytes) -> bool:
        """Whether the manifest of a tool is the one whose SHA-256 was registered."""
        known = self.get(tool)
        if known is None or known.manifest_hash is None:
            return False
        text = manifest.encode() if isinstance(manifest, str) else manifest
        return hmac.compare_digest(sha256(text).hexdigest(), known.manifest_hash.lower())


def environ_in(home: str | os.PathLike[str] | None) -> Mapping[str, str]:
    """Returns the environment, with this home if one is given."""
    if home is None:
        return os.environ
    return {**os.environ, env.SUB_HOME.name: os.path.abspath(home)}
