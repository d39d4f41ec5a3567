"""Who acts, in generated policies: matchers, facts, claims, and what a program says of a call."""

from typing import Any

from tests.differential import generated
from tests.differential.generated import Chooser, Data

from subluminal.contracts.agents import AgentFacts, Claims
from subluminal.contracts.call import Given
from subluminal.contracts.vocabulary import TrustLevel

TYPES, ROLES, LABELS = ["pr_agent", "ide_agent"], ["deploy", "review"], ["pii", "public"]
ENVIRONMENTS = ["dev", "prod", "staging"]
PROVIDERS = ["mcp", "built-in"]
LEVELS = list(TrustLevel)


def matchers(choose: Chooser) -> Data:
    """Mostly one or two, so that rules still match."""
    made = choose.fields_rarely(
        environment=lambda: choose.some(ENVIRONMENTS),
        agent_type=lambda: choose.some(TYPES),
        trust_level_min=lambda: choose.one(LEVELS),
        agent_roles_any=lambda: choose.some(ROLES),
        registered=lambda: bool(choose.below(2)),
        delegation_depth_min=lambda: choose.below(3),
    )
    return made | choose.fields_rarely(
        tool_provider=lambda: choose.some(PROVIDERS),
        data_labels_any=lambda: choose.some(LABELS),
        context=lambda: {"key_equals": {"a": choose.below(2)}},
    )


def layers(choose: Chooser) -> list[tuple[str, Data]]:
    """Layers of which most rules ask who acts."""
    made = generated.layers(choose)
    for _, bundle in made:
        for rule in bundle["rules"]:
            rule["match"] = {**rule["match"], **matchers(choose)}
    return made


def facts(choose: Chooser) -> AgentFacts:
    level, later = sorted((choose.below(len(LEVELS)), choose.below(len(LEVELS))), reverse=True)
    return AgentFacts(
        registered=bool(choose.below(2)),
        agent_type=choose.one([None, *TYPES]),
        trust_level=LEVELS[level],
        trust_after_denials=LEVELS[later],
        roles=tuple(choose.some(ROLES, 0)),
        delegation_depth=choose.below(3),
    )


def claims(choose: Chooser) -> Claims | None:
    if choose.rarely():
        return None
    said: dict[str, Any] = choose.fields(
        environment=lambda: choose.one(ENVIRONMENTS),
        agent_type=lambda: choose.one(TYPES),
        trust_level=lambda: choose.one(LEVELS),
        roles=lambda: tuple(choose.some(ROLES, 0)),
        delegation_depth=lambda: choose.below(3),
    )
    return Claims(**said)


def given(choose: Chooser) -> Given:
    labels = frozenset(choose.some(LABELS, 0))
    return Given(labels=labels, context={"a": choose.below(2)}, claims=claims(choose))


def calls(choose: Chooser) -> list[Data]:
    return [
        {**step, "provider": choose.one(PROVIDERS), "given": given(choose)}
        for step in generated.calls(choose)
    ]
