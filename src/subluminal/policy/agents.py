"""Who acts, as rules see it: the matchers about environment and agent.

They are settled when a Program is made, as selectors are, so they cost nothing for a call. Only
trust changes with the calls: after refusals in a row (`policy.denials`), a rule asks
`trust_after_denials`.
"""

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from subluminal.contracts.agents import AgentFacts, Said
from subluminal.contracts.identity import Identity
from subluminal.contracts.vocabulary import TRUST_RANK, Env, TrustLevel

_ENVIRONMENTS = frozenset(Env)


class Who(Struct, frozen=True):
    """The identity of a run, and what is known about its agent."""

    identity: Identity
    facts: AgentFacts = AgentFacts()

    @property
    def environment(self) -> str:
        """The environment as it was written, else as it was found out."""
        return self.identity.environment or self.identity.env.value

    def after_denials(self) -> "Who":
        """Returns the same after more than three refusals in a row."""
        facts = self.facts
        return Who(self.identity, replace(facts, trust_level=facts.trust_after_denials))

    def claiming(self, claims: Said) -> "Who":
        """Returns the facts with a caller's claims laid over them."""
        said = {
            "agent_type": claims.agent_type,
            "trust_level": claims.trust_level,
            "roles": claims.roles,
            "delegation_depth": claims.delegation_depth,
        }
        given = {name: value for name, value in said.items() if value is not None}
        return Who(in_environment(self.identity, claims.environment), replace(self.facts, **given))


def in_environment(identity: Identity, environment: str | None) -> Identity:
    """Returns an identity in an environment of any name; unchanged if there is no name."""
    if environment is None:
        return identity
    env = Env(environment) if environment in _ENVIRONMENTS else Env.UNKNOWN
    return replace(identity, env=env, environment=environment)


def failed_clause(match: Mapping[str, Any], who: Who) -> str:
    """Returns the first matcher that does not hold for who acts; empty if all hold."""
    for name, holds in _TESTS.items():
        if name in match and not holds(match[name], who):
            return name
    return ""


def settled(rules: list[dict[str, Any]], who: Who) -> tuple[int, ...]:
    """Returns the places of the rules of a snapshot that are about this agent."""
    return tuple(place for place, rule in enumerate(rules) if not failed_clause(rule["match"], who))


_TESTS: dict[str, Callable[[Any, Who], bool]] = {
    "environment": lambda wanted, who: who.environment in wanted,
    "registered": lambda wanted, who: who.facts.registered is wanted,
    "agent_type": lambda wanted, who: who.facts.agent_type in wanted,
    "agent_roles_any": lambda wanted, who: not frozenset(who.facts.roles).isdisjoint(wanted),
    "trust_level_min": lambda wanted, who: _is_trusted(who.facts.trust_level, wanted),
    "delegation_depth_min": lambda wanted, who: who.facts.delegation_depth >= wanted,
}


def _is_trusted(level: TrustLevel, wanted: str) -> bool:
    return TRUST_RANK[level] >= TRUST_RANK[TrustLevel(wanted)]


def words(clause: str, who: Who) -> str:
    """Says why a matcher does not hold, in half a sentence."""
    facts = who.facts
    match clause:
        case "environment":
            return f"the environment is {who.environment}"
        case "registered":
            return f"the agent is {'' if facts.registered else 'not '}registered"
        case "agent_type":
            told = "has no type" if facts.agent_type is None else f"is a {facts.agent_type}"
            return f"the agent {told}"
        case "agent_roles_any":
            told = "has no roles" if not facts.roles else f"has the roles {', '.join(facts.roles)}"
            return f"the agent {told}"
        case "trust_level_min":
            return f"the trust in the agent is {facts.trust_level}"
    return f"the depth of delegation is {facts.delegation_depth}"


def denials_matter(matches: list[Mapping[str, Any]], facts: AgentFacts) -> bool:
    """Whether a rule with one of these matches is decided otherwise after refusals in a row."""
    levels = (facts.trust_level, facts.trust_after_denials)
    return any(
        len({_is_trusted(level, match["trust_level_min"]) for level in levels}) > 1
        for match in matches
        if "trust_level_min" in match
    )
