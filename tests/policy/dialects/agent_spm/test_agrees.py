"""Our engine and Agent-SPM's evaluator, written down a second time, decide random calls alike."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.policy.dialects.agent_spm.spm_bundles import load, problems_of, spm, spm_rule
from tests.policy.dialects.agent_spm.upstream import (
    DIFFERENCES,
    EXPRESSIONS,
    LEVELS,
    Request,
    decide,
)
from tests.requirements import requirement

from subluminal.contracts.agents import AgentFacts
from subluminal.contracts.call import MCP, Given
from subluminal.contracts.identity import Identity
from subluminal.contracts.vocabulary import Action, Layer, ReasonCode, TrustLevel
from subluminal.policy.agents import in_environment
from subluminal.policy.compiling import compile_bundle
from subluminal.policy.counters import MemoryCounters
from subluminal.policy.evaluation import Call, Engine

OURS = frozenset(DIFFERENCES)
UPSTREAM: frozenset[str] = frozenset()
REQUIRED = {
    ReasonCode.APPROVAL_REQUIRED: "REQUIRE_APPROVAL",
    ReasonCode.STEP_UP_REQUIRED: "STEP_UP",
    ReasonCode.TICKET_REQUIRED: "REQUIRE_TICKET",
    ReasonCode.HUMAN_REQUIRED: "REQUIRE_HUMAN",
}
OUTCOMES = ["ALLOW", "DENY", *REQUIRED.values()]


def ours(bundle: dict[str, Any], asked: Request) -> tuple[str, str]:
    """What our engine says, in Agent-SPM's words."""
    trust = TrustLevel(asked.trust_level or "untrusted")
    facts = AgentFacts(
        agent_type=asked.agent_type,
        trust_level=trust,
        trust_after_denials=trust,
        roles=tuple(asked.roles or ()),
    )
    identity = in_environment(Identity(), asked.environment)
    snapshot = compile_bundle(load(bundle).bundle)
    engine = Engine([(Layer.USER, snapshot)], identity, agent=facts)
    call = Call(
        *("s", asked.tool, asked.args, "0" * 64),
        provider=asked.provider or MCP,
        given=Given(labels=frozenset(asked.labels), user_input=asked.user_input),
    )
    decision = engine.evaluate(call, MemoryCounters(), wall_ms=0, mono_ms=0).decision
    outcome = REQUIRED.get(decision.reason_code) or (
        "ALLOW" if decision.action is Action.ALLOW else "DENY"
    )
    if decision.rule_id == "defaults.outcome":
        return outcome, f"DEFAULT_{outcome}"
    return outcome, str(decision.rule_id)


TOOLS = ["query_db", "query_", "send", "Send", "*", "a*b", "[ab]"]
TEXTS = [
    "x",
    "Export ALL",
    "select\u00a0*",
    "a\nc",
    "abc",
    "123-45",
    "ab",
    "xyz",
    "Straße",
    " ",
    "é",
]
NUMBERS = st.sampled_from(
    [0, 1, 10, -1, 1.5, 1e21, 1e-7, 100000, 0.1, 2**53, 123456789012345680000]
)
SCALARS = st.one_of(st.sampled_from(TEXTS), NUMBERS, st.booleans(), st.none())
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(["k", "x", "Export"]), inner)
    ),
    max_leaves=4,
)
KEYS = ["a", "b", "amount"]
ENVIRONMENTS = ["dev", "prod", "sandbox"]
TYPES = ["pr_agent", "ide_agent"]
PROVIDERS = ["mcp", "custom"]


def one_or_list(words: list[str]) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.sampled_from(words), st.lists(st.sampled_from(words), min_size=1, max_size=2)
    )


MATCHES = st.fixed_dictionaries(
    {
        "tool_name": st.one_of(
            st.sampled_from(["*", "*", "*", "*", "query_*", "**", "s*", *TOOLS]),
            st.lists(st.sampled_from(["query_*", *TOOLS]), min_size=1, max_size=3),
        ),
        "environment": st.sampled_from(["*", "*", *ENVIRONMENTS]),
    },
    optional={
        "agent_type": st.one_of(one_or_list(TYPES), st.just("")),
        "trust_level_min": st.sampled_from(LEVELS),
        "agent_roles_any": st.lists(st.sampled_from(["r", "s"]), max_size=2),
        "tool_provider": one_or_list(PROVIDERS),
    },
)
WORDS = st.lists(
    st.sampled_from(["export", "X", "true", "1e+21", "10", "STRASSE", "É", "ab"]), max_size=2
)
OPERATORS = st.dictionaries(
    st.sampled_from(["gt", "gte", "lt", "lte"]), st.sampled_from([0, 1, 1.5, 10]), max_size=2
)
EQUALITY = st.dictionaries(st.sampled_from(["eq", "neq"]), SCALARS, max_size=1)
WHENS = st.fixed_dictionaries(
    {},
    optional={
        "contains_any": WORDS,
        "not_contains": WORDS,
        "matches_regex": st.sampled_from(["", *EXPRESSIONS]),
        "data_labels_any": st.lists(st.sampled_from(["PII", "pii"]), max_size=2),
        "tool_args_match": st.dictionaries(
            st.sampled_from(KEYS),
            st.one_of(SCALARS, OPERATORS, EQUALITY, st.builds(dict.__or__, OPERATORS, EQUALITY)),
            max_size=2,
        ),
    },
)


@st.composite
def bundles(draw: st.DrawFn) -> dict[str, Any]:
    rules = []
    for number in range(draw(st.integers(0, 5))):
        rule = {"id": f"R{number}", "description": "d", "match": draw(MATCHES)}
        if draw(st.booleans()):
            rule["when"] = draw(WHENS)
        rules.append({**rule, "outcome": draw(st.sampled_from(OUTCOMES))})
    return spm(*rules, default=draw(st.sampled_from(OUTCOMES)))


REQUESTS = st.builds(
    Request,
    tool=st.sampled_from(TOOLS),
    args=st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=3),
    environment=st.sampled_from(ENVIRONMENTS),
    agent_type=st.sampled_from([None, *TYPES]),
    trust_level=st.sampled_from([None, *LEVELS]),
    roles=st.one_of(st.none(), st.lists(st.sampled_from(["r", "s"]), max_size=2)),
    provider=st.sampled_from([None, *PROVIDERS]),
    user_input=st.one_of(st.none(), st.just(""), st.sampled_from(TEXTS)),
    labels=st.lists(st.sampled_from(["PII", "pii"]), max_size=1),
)


@requirement("trust:dialect-agrees")
@settings(max_examples=400, deadline=None)
@given(bundles(), st.lists(REQUESTS, min_size=1, max_size=6))
def test_both_decide_alike_but_for_the_listed_differences(bundle, requests):
    if problems_of(bundle):
        return  # a condition that never holds: `never_matched` says what that means
    for asked in requests:
        assert ours(bundle, asked) == decide(bundle, asked, OURS)


@settings(max_examples=200, deadline=None)
@given(bundles(), st.lists(REQUESTS, min_size=1, max_size=6))
def test_a_rule_that_is_refused_never_matches_there(bundle, requests):
    """So refusing a bundle for a condition that never holds takes nothing from anybody."""
    for rule in bundle["rules"]:
        if not problems_of(spm(rule)):
            continue
        for asked in requests:
            assert decide(spm(rule, default="DENY"), asked, UPSTREAM)[1] == "DEFAULT_DENY"


WITNESSES = {
    "skipped patterns are enforced": (
        spm(spm_rule(match={"tool_name": "*"}, when={"matches_regex": "(a+)+b"})),
        Request("t", {"x": "aaab"}),
    ),
    "an agent without a level is untrusted": (
        spm(spm_rule(match={"tool_name": "*", "trust_level_min": "untrusted"})),
        Request("t", {}),
    ),
    "a tool without a provider is of mcp": (
        spm(spm_rule(match={"tool_name": "*", "tool_provider": "mcp"})),
        Request("t", {}),
    ),
    "texts are compared with full case folding": (
        spm(spm_rule(match={"tool_name": "*"}, when={"contains_any": ["STRASSE"]})),
        Request("t", {"x": "Straße"}),
    ),
    "large integers are exact": (
        spm(spm_rule(match={"tool_name": "*"}, when={"tool_args_match": {"x": {"neq": 2**53}}})),
        Request("t", {"x": 2**53 + 1}),
    ),
}


@requirement("trust:dialect-agrees")
@pytest.mark.parametrize("difference", DIFFERENCES)
def test_each_difference_is_one(difference: str):
    """Each tightens: the call passes there, and is refused here."""
    bundle, asked = WITNESSES[difference]
    assert decide(bundle, asked, UPSTREAM)[0] == "ALLOW"
    assert decide(bundle, asked, frozenset({difference}))[0] == "DENY"
    assert ours(bundle, asked)[0] == "DENY"
