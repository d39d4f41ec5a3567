"""Exceptions to rules about who acts: for the same agents, and proven by the recorded facts."""

import msgspec
import pytest
from tests.policy.bundles import bundle, rule

from subluminal.contracts.agents import AgentFacts, Claims
from subluminal.contracts.bundle import DenyRule
from subluminal.contracts.call import Given
from subluminal.contracts.identity import Identity
from subluminal.contracts.vocabulary import Action, Env, TrustLevel
from subluminal.policy.compiling import compile_bundle
from subluminal.policy.promoting import RefusedCall, decide, exception_rule, is_on_record
from subluminal.policy.replay.hidden_args import PartialArgs
from subluminal.policy.replay.recorded import RecordedAgent

BASIC = RecordedAgent("staging", AgentFacts(registered=True, trust_level=TrustLevel.BASIC))
CALL = RefusedCall("git", "push", {}, Identity(env=Env.CI), 0, agent=BASIC)
MATCH = {"environment": ["staging"], "registered": True, "trust_level_min": "basic"}


def promoted(call, denied):
    told = {"rule_id": "new", "description": "d", "message": "m"}
    made = exception_rule(call, [], **told, refused_by=msgspec.convert(denied, DenyRule))
    return made, compile_bundle(bundle(made, denied))


def test_an_exception_is_for_the_agents_that_the_rule_is_about():
    denied = rule("deny", match={**MATCH, "tool_provider": ["mcp"]})
    made, policy = promoted(CALL, denied)
    assert made["match"].items() >= {**MATCH, "tool_provider": ["mcp"]}.items()
    assert decide(compile_bundle(bundle(denied)), CALL).rule_id == "deny"
    assert decide(policy, CALL).rule_id == "new"


def test_an_exception_for_what_a_caller_claimed():
    denied = rule("deny", match={"environment": ["prod"]})
    said = CALL._replace(given=Given(claims=Claims(environment="prod")))
    assert decide(compile_bundle(bundle(denied)), said).action is Action.BLOCK
    assert decide(promoted(said, denied)[1], said).action is Action.ALLOW


@pytest.mark.parametrize(
    ("match", "changes", "is_known"),
    [
        (MATCH, {}, True),
        (MATCH, {"agent": None}, False),
        ({"environment": ["ci"]}, {"agent": None}, True),
        ({"environment": ["x"]}, {"agent": None, "identity": Identity()}, False),
        ({}, {"agent": None}, True),
        ({}, {"args": None}, False),
        ({"data_labels_any": ["x"]}, {"hidden": frozenset({"data_labels_any"})}, False),
        ({"tool_provider": ["x"]}, {"hidden": frozenset({"data_labels_any"})}, True),
        (
            {"context": {"has_keys": ["a"]}},
            {"given": Given(context=PartialArgs({}, lambda _: True))},
            False,
        ),
    ],
)
def test_a_decision_is_certain_if_the_record_has_what_the_policy_asks(match, changes, is_known):
    policy = compile_bundle(bundle(rule("deny", match=match)))
    assert is_on_record(CALL._replace(**changes), policy) is is_known
