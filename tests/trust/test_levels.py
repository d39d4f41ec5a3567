"""How far an agent is trusted: the base, upstream's sums, denials, delegation (trust T1-T3)."""

import itertools
from typing import Any

import pytest
from tests.requirements import requirement
from tests.trust.issued import registration

from subluminal.contracts.agents import AgentFacts, Claims, Registration
from subluminal.contracts.vocabulary import TRUST_RANK, AgentState, ProofKind, TrustLevel
from subluminal.trust.levels import Circumstances, Trust, evaluate, resolve

LEVELS = list(TrustLevel)
UNTRUSTED, BASIC, VERIFIED, PRIVILEGED, SYSTEM = LEVELS
CALM = Circumstances("dev")


def agent(**changes: Any) -> Registration:
    return registration(**{"trust_level": VERIFIED, **changes})


@requirement("trust:base")
@pytest.mark.parametrize(
    ("known", "proof", "expected"),
    [
        (None, ProofKind.NONE, UNTRUSTED),
        (None, ProofKind.LAUNCHED, UNTRUSTED),
        (None, ProofKind.ATTESTED, UNTRUSTED),
        (agent(), ProofKind.NONE, BASIC),
        (agent(), ProofKind.LAUNCHED, VERIFIED),
        (agent(), ProofKind.ATTESTED, VERIFIED),
        (agent(unattested=UNTRUSTED), ProofKind.NONE, UNTRUSTED),
        (agent(unattested=SYSTEM), ProofKind.NONE, VERIFIED),
        (agent(trust_level=UNTRUSTED), ProofKind.NONE, UNTRUSTED),
        (agent(trust_level=SYSTEM), ProofKind.ATTESTED, SYSTEM),
        (agent(state=AgentState.REVOKED), ProofKind.ATTESTED, UNTRUSTED),
        (agent(state=AgentState.REVOKED), ProofKind.NONE, UNTRUSTED),
    ],
)
def test_the_base_is_what_the_registration_and_the_proof_give(
    known: Registration | None, proof: ProofKind, expected: TrustLevel
) -> None:
    resolved = resolve(known, proof, CALM)
    assert resolved.trust == Trust(expected, expected, TRUST_RANK[expected] * 25, [])
    assert resolved.facts.trust_level is expected
    assert resolved.facts.registered is (known is not None and known.state is AgentState.ACTIVE)


def upstream(
    level: int,
    *,
    prod: bool,
    attested: bool,
    expired: bool,
    deep: bool,
    hour: int | None,
    denials: int,
) -> tuple[int, int]:
    """Upstream's evaluator, as /identity has it."""
    score = level * 25
    if prod and not attested and not expired:
        score -= 10
    if deep:
        score -= 25
    if hour is not None and (hour < 6 or hour > 22):
        score -= 5
    if denials > 3:
        score -= 15
    if expired:
        score -= 20
    score = max(0, min(100, score))
    return score, min(score // 25, 4)


@requirement("trust:sums")
def test_the_sums_are_upstreams() -> None:
    flags = (False, True)
    for level, prod, attested, expired, deep, hour, denials in itertools.product(
        range(5), flags, flags, flags, flags, (None, 0, 5, 6, 22, 23), (0, 3, 4, 9)
    ):
        if attested and expired:
            continue
        found = evaluate(
            LEVELS[level],
            Circumstances("prod" if prod else "dev", 3 if deep else 2, hour, denials),
            is_attested=attested,
            has_expired=expired,
            max_delegation_depth=2,
        )
        score, rank = upstream(
            level,
            prod=prod,
            attested=attested,
            expired=expired,
            deep=deep,
            hour=hour,
            denials=denials,
        )
        assert (found.score, found.effective_trust) == (score, LEVELS[rank])
        assert max(0, level * 25 + sum(each.delta for each in found.adjustments)) == score


@requirement("trust:sums")
def test_every_adjustment_says_why() -> None:
    found = evaluate(
        SYSTEM,
        Circumstances("prod", 4, 3, 5),
        is_attested=False,
        max_delegation_depth=1,
    )
    assert [tuple(each) for each in found.adjustments] == [
        ("no attestation in `prod`", -10),
        ("delegated 4 times, at most 1 are allowed", -25),
        ("hour 3 is before 6 or after 22", -5),
        ("5 calls in a row were refused", -15),
    ]
    expired = evaluate(SYSTEM, CALM, is_attested=False, has_expired=True)
    assert [tuple(each) for each in expired.adjustments] == [("the attestation has expired", -20)]


@requirement("trust:sums")
def test_without_a_bound_every_depth_is_allowed() -> None:
    assert evaluate(BASIC, Circumstances("dev", 99), is_attested=False).adjustments == []
    known = agent(max_delegation_depth=0)
    deep = resolve(known, ProofKind.ATTESTED, Circumstances("dev", 1))
    assert deep.facts.trust_level is BASIC


@requirement("trust:sums")
def test_verified_in_prod_without_an_attestation_is_basic() -> None:
    launched = resolve(agent(), ProofKind.LAUNCHED, Circumstances("prod"))
    assert (launched.facts.trust_level, launched.trust.score) == (BASIC, 40)
    attested = resolve(agent(), ProofKind.ATTESTED, Circumstances("prod"))
    assert attested.facts.trust_level is VERIFIED


@requirement("trust:sums")
def test_the_facts_say_what_is_left_after_denials() -> None:
    found = resolve(agent(), ProofKind.ATTESTED, CALM).facts
    assert (found.trust_level, found.trust_after_denials) == (VERIFIED, BASIC)
    denied = resolve(agent(), ProofKind.ATTESTED, Circumstances("dev", consecutive_denials=9)).facts
    assert (denied.trust_level, denied.trust_after_denials) == (BASIC, BASIC)


@requirement("trust:unproven")
def test_a_name_alone_gives_neither_type_nor_roles() -> None:
    bare = resolve(agent(), ProofKind.NONE, CALM)
    assert bare.facts == AgentFacts(
        registered=True, trust_level=BASIC, trust_after_denials=UNTRUSTED
    )
    assert bare.claims == Claims(agent_type="pr_agent", roles=("deployer",))
    for proof in (ProofKind.LAUNCHED, ProofKind.ATTESTED):
        proven = resolve(agent(), proof, CALM)
        assert (proven.facts.agent_type, proven.facts.roles) == ("pr_agent", ("deployer",))
        assert proven.claims == Claims()


@requirement("trust:unproven")
@pytest.mark.parametrize("known", [None, agent(state=AgentState.REVOKED)])
@pytest.mark.parametrize("proof", ProofKind)
def test_whoever_is_not_registered_has_no_facts(
    known: Registration | None, proof: ProofKind
) -> None:
    resolved = resolve(known, proof, CALM)
    assert (resolved.facts, resolved.claims) == (AgentFacts(), Claims())


@requirement("trust:delegation")
def test_nobody_passes_on_more_than_it_has() -> None:
    parent = AgentFacts(registered=True, trust_level=BASIC, roles=("reader", "deployer"))
    child = agent(trust_level=SYSTEM, roles=["deployer", "admin"])
    found = resolve(child, ProofKind.ATTESTED, Circumstances("dev", 1), parent=parent)
    assert (found.facts.trust_level, found.facts.trust_after_denials) == (BASIC, BASIC)
    assert found.facts.roles == ("deployer",)
    assert found.facts.delegation_depth == 1
    assert found.trust.base_trust is SYSTEM
    assert found.trust.score == 25
    (last,) = found.trust.adjustments
    assert last == ("the agent that delegated is trusted no further than `basic`", -75)


@requirement("trust:delegation")
def test_a_parent_lifts_nobody() -> None:
    parent = AgentFacts(registered=True, trust_level=SYSTEM, roles=("admin",))
    found = resolve(agent(), ProofKind.ATTESTED, Circumstances("dev", 1), parent=parent)
    assert (found.facts.trust_level, found.facts.roles) == (VERIFIED, ())
    assert found.trust.adjustments == []
    stranger = resolve(None, ProofKind.NONE, Circumstances("dev", 1), parent=parent)
    assert stranger.facts == AgentFacts(delegation_depth=1)


@requirement("trust:delegation")
def test_trust_never_grows_along_a_chain() -> None:
    for first, second in itertools.product(LEVELS, LEVELS):
        above = resolve(agent(trust_level=first), ProofKind.LAUNCHED, CALM).facts
        below = resolve(
            agent(trust_level=second), ProofKind.LAUNCHED, Circumstances("dev", 1), parent=above
        ).facts
        assert TRUST_RANK[below.trust_level] == min(TRUST_RANK[first], TRUST_RANK[second])
