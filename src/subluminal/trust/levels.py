"""How far an agent is trusted, and why: upstream's TrustEvaluator, explained. Pure.

A level is worth 25 points. Circumstances take points away, and what is left decides the level.
"""

from typing import NamedTuple

from subluminal.contracts.agents import AgentFacts, Claims, Registration
from subluminal.contracts.vocabulary import TRUST_RANK, AgentState, ProofKind, TrustLevel

MANY_DENIALS = 4
"""Calls in a row that were refused, from which on trust is lowered."""

_LEVELS = tuple(TRUST_RANK)
_POINTS = 25
_FIRST_HOUR, _LAST_HOUR = 6, 22


class Circumstances(NamedTuple):
    """What lowers the trust in an agent, beside its registration and proof."""

    environment: str
    """environment of the run, as written"""
    delegation_depth: int = 0
    hour: int | None = None
    """hour of the day; None if the hour does not matter"""
    consecutive_denials: int = 0


class Adjustment(NamedTuple):
    """One reason to trust an agent less."""

    reason: str
    delta: int


class Trust(NamedTuple):
    """How far an agent is trusted, explained."""

    base_trust: TrustLevel
    effective_trust: TrustLevel
    score: int
    """points that are left, 0 to 100"""
    adjustments: list[Adjustment]


class Resolved(NamedTuple):
    """What is known about an agent."""

    facts: AgentFacts
    claims: Claims
    """what an agent without a proof says by its name: such claims only tighten a decision"""
    trust: Trust


def base_trust(registration: Registration | None, proof: ProofKind) -> TrustLevel:
    """Returns the trust before circumstances: what the registration and the proof give."""
    if registration is None or registration.state is not AgentState.ACTIVE:
        return TrustLevel.UNTRUSTED
    if proof is ProofKind.NONE:
        return lower(registration.unattested, registration.trust_level)
    return registration.trust_level


def lower(one: TrustLevel, other: TrustLevel) -> TrustLevel:
    """Returns the lower of two levels."""
    return min(one, other, key=TRUST_RANK.__getitem__)


def evaluate(
    base: TrustLevel,
    circumstances: Circumstances,
    *,
    is_attested: bool,
    has_expired: bool = False,
    max_delegation_depth: int | None = None,
) -> Trust:
    """Returns the trust that circumstances leave.

    `has_expired` says that the agent showed an attestation whose time was over.
    """
    score = TRUST_RANK[base] * _POINTS
    adjustments = _adjustments(circumstances, is_attested, has_expired, max_delegation_depth)
    score = max(0, score + sum(each.delta for each in adjustments))
    return Trust(base, _LEVELS[min(score // _POINTS, len(_LEVELS) - 1)], score, adjustments)


def resolve(
    registration: Registration | None,
    proof: ProofKind,
    circumstances: Circumstances,
    *,
    has_expired: bool = False,
    parent: AgentFacts | None = None,
) -> Resolved:
    """Returns the facts about an agent.

    `parent` is the agent that handed the work on: then `circumstances` have its depth plus one,
    and nobody passes on more than it has.
    """
    is_active = registration is not None and registration.state is AgentState.ACTIVE
    base = base_trust(registration, proof)
    limit = registration.max_delegation_depth if registration is not None else None

    def trust_with(denials: int) -> Trust:
        found = evaluate(
            base,
            circumstances._replace(consecutive_denials=denials),
            is_attested=proof is ProofKind.ATTESTED,
            has_expired=has_expired,
            max_delegation_depth=limit,
        )
        return found if parent is None else _at_most(found, parent.trust_level)

    trust = trust_with(circumstances.consecutive_denials)
    known = registration if is_active else None
    is_proven = proof is not ProofKind.NONE
    roles = tuple(known.roles) if known is not None and is_proven else ()
    facts = AgentFacts(
        registered=is_active,
        agent_type=known.agent_type if known is not None and is_proven else None,
        trust_level=trust.effective_trust,
        trust_after_denials=trust_with(
            max(circumstances.consecutive_denials, MANY_DENIALS)
        ).effective_trust,
        roles=roles if parent is None else tuple(each for each in roles if each in parent.roles),
        delegation_depth=circumstances.delegation_depth,
    )
    return Resolved(facts, Claims() if is_proven else _claims_of(known), trust)


def _claims_of(known: Registration | None) -> Claims:
    """Returns what a name alone says: it could be anybody's, so it gives nothing."""
    if known is None:
        return Claims()
    return Claims(agent_type=known.agent_type, roles=tuple(known.roles) or None)


def _at_most(trust: Trust, highest: TrustLevel) -> Trust:
    """Lowers trust to that of the agent that handed the work on."""
    level = lower(trust.effective_trust, highest)
    if level is trust.effective_trust:
        return trust
    score = TRUST_RANK[level] * _POINTS
    reason = f"the agent that delegated is trusted no further than `{highest.value}`"
    adjustments = [*trust.adjustments, Adjustment(reason, score - trust.score)]
    return trust._replace(effective_trust=level, score=score, adjustments=adjustments)


def _adjustments(
    circumstances: Circumstances,
    is_attested: bool,
    has_expired: bool,
    max_delegation_depth: int | None,
) -> list[Adjustment]:
    environment, depth, hour, denials = circumstances
    checks = (
        (
            environment == "prod" and not is_attested and not has_expired,
            Adjustment("no attestation in `prod`", -10),
        ),
        (
            max_delegation_depth is not None and depth > max_delegation_depth,
            Adjustment(f"delegated {depth} times, at most {max_delegation_depth} are allowed", -25),
        ),
        (
            hour is not None and not _FIRST_HOUR <= hour <= _LAST_HOUR,
            Adjustment(f"hour {hour} is before 6 or after 22", -5),
        ),
        (denials >= MANY_DENIALS, Adjustment(f"{denials} calls in a row were refused", -15)),
        (has_expired, Adjustment("the attestation has expired", -20)),
    )
    return [adjustment for applies, adjustment in checks if applies]
