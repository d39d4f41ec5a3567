"""What a door says of a call reaches the rules on every path: call, batch, round, handover."""

import pytest
from tests.adapters.policies import rule, snapshot
from tests.hosts import enforcer_in
from tests.requirements import requirement

from subluminal.canonical import args_hash, encode
from subluminal.contracts.agents import AgentFacts, Claims
from subluminal.contracts.call import BUILT_IN, Given, ToolCall
from subluminal.contracts.identity import Identity
from subluminal.contracts.vocabulary import Layer, Transport, TrustLevel
from subluminal.core.batches import begin_batch
from subluminal.core.rounds import Round, begin_round
from subluminal.policy.evaluation import Engine

PROD = Given(claims=Claims(environment="prod"))
NO = {"action": "BLOCK", "reason_code": "NO", "message": "no"}
OK = {"action": "ALLOW", "reason_code": "OK", "message": "yes"}


def call(given=None, tool="Bash", line="ls", provider=BUILT_IN):
    args = {"command": line}
    return ToolCall(
        server_name="@claude",
        tool_name=tool,
        args=args,
        args_hash=args_hash(args),
        bytes_in=2,
        transport=Transport.IN_PROCESS,
        cwd="/",
        provider=provider,
        given=given,
    )


def begin(enforcer, asked):
    return enforcer.begin(asked, encode(asked.args)).is_allowed


def batch(enforcer, *asked):
    return [each.is_allowed for each in begin_batch(enforcer, [(a, encode(a.args)) for a in asked])]


RM_IN_PROD = rule("rm", "deny", NO, environment=["prod"], targets={"program": {"glob": ["rm"]}})


def test_a_claim_needs_the_targets_that_no_rule_on_the_facts_asks_for(own_home):
    enforcer = enforcer_in(own_home, snapshot(RM_IN_PROD))
    assert not enforcer.engine.asks_targets
    assert begin(enforcer, call(None, line="rm x"))
    assert begin(enforcer, call(PROD, line="ls"))
    assert not begin(enforcer, call(PROD, line="rm x"))
    assert batch(enforcer, call(PROD, line="ls")) == [True]
    assert batch(enforcer, call(PROD, line="rm x")) == [False]


@pytest.mark.parametrize("match", [{"environment": ["prod"]}, {"tool_provider": ["built-in"]}])
def test_a_further_round_is_decided_with_what_the_door_says(own_home, match):
    enforcer = enforcer_in(own_home, snapshot())
    asked = call(PROD)
    ruling = enforcer.begin(asked, encode(asked.args))
    assert begin_round(Round(ruling, 2, 10, b"{}"), 32)
    layers = [(Layer.USER, snapshot(rule("no", "deny", NO, **match)))]
    enforcer.engine = Engine(layers, Identity())
    assert not begin_round(Round(ruling, 3, 10, b"{}"), 32)


def test_a_refused_batch_counts_all_its_calls(own_home):
    """Else an agent would probe in batches with one harmless call, and lose no trust."""
    rules = (
        rule("read", "allow", OK, tool_name={"glob": ["read"]}),
        rule("trusted", "allow", OK, tool_name={"glob": ["deploy"]}, trust_level_min="verified"),
        rule("else", "deny", NO),
    )
    facts = AgentFacts(trust_level=TrustLevel.VERIFIED, trust_after_denials=TrustLevel.BASIC)
    enforcer = enforcer_in(own_home)
    enforcer.engine = Engine([(Layer.USER, snapshot(*rules))], Identity(), agent=facts)
    assert begin(enforcer, call(tool="deploy"))
    assert batch(enforcer, call(tool="rm"), call(tool="read")) == [False, False]
    assert begin(enforcer, call(tool="deploy"))
    for _ in range(2):
        assert batch(enforcer, call(tool="rm"), call(tool="read")) == [False, False]
    assert not begin(enforcer, call(tool="deploy"))
    assert batch(enforcer, call(tool="read"), call(tool="read")) == [True, True]
    assert begin(enforcer, call(tool="deploy"))


@requirement("trust:claims-tighten")
@pytest.mark.parametrize(
    "said", [{"agent_type": "person"}, {"trust_level": TrustLevel.SYSTEM}, {"environment": "dev"}]
)
def test_a_claim_of_a_call_does_not_take_back_what_the_name_says(own_home, said):
    """The name's own claims are refused; a call that claims more is refused as well."""
    rules = (
        rule("system", "allow", OK, trust_level_min="system"),
        rule("interns", "deny", NO, agent_type=["intern"]),
        rule("prod", "deny", NO, environment=["prod"]),
    )
    enforcer = enforcer_in(own_home, snapshot(*rules))
    for name in (Claims(agent_type="intern"), Claims(environment="prod")):
        enforcer.claims = name
        assert not begin(enforcer, enforcer.with_claims(call()))
        assert not begin(enforcer, enforcer.with_claims(call(Given(claims=Claims(**said)))))


def test_what_the_name_and_the_call_say_counts_once(own_home):
    budget = {"budget": {"scope": "run", "limit_calls": 3, "on_exceed": "BLOCK"}}
    rules = (rule("few", "budget", budget, environment=["prod"]),)
    enforcer = enforcer_in(own_home, snapshot(*rules))
    enforcer.claims = Claims(environment="prod")
    asked = enforcer.with_claims(call(Given(claims=Claims(agent_type="intern"))))
    assert [begin(enforcer, asked) for _ in range(4)] == [True, True, True, False]
