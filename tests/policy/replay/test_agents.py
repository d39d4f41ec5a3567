"""Replay of rules that ask who acts: recorded facts, and what the record does not tell."""

import msgspec
import pytest
from msgspec.structs import replace
from tests.policy.bundles import bundle, rule, tools
from tests.policy.replay.runs import Record, changes

from subluminal.contracts.agents import AgentFacts, AgentResolved, Claims, Proof
from subluminal.contracts.call import BUILT_IN, MCP, Given
from subluminal.contracts.events import GivenPreview
from subluminal.contracts.identity import Identity
from subluminal.contracts.vocabulary import Env, Layer, ProofKind, TrustLevel
from subluminal.policy.compiling import compile_bundle
from subluminal.policy.replay.comparing import Doubt
from subluminal.policy.replay.hidden_args import PartialArgs
from subluminal.policy.replay.layering import Layering
from subluminal.policy.replay.recorded import RecordedAgent, RecordedCall, recorded_agent
from subluminal.policy.replay.recorded_given import given_on_record, provider_of
from subluminal.policy.replay.replaying import RunReplay

USER = Layer.USER
EMPTY = compile_bundle(bundle())
FIXER = AgentFacts(registered=True, trust_level=TrustLevel.VERIFIED)
HIDDEN = Given(context=PartialArgs({}, {"a"}.__contains__, frozenset({"a"})))


def policy(*matches):
    rules = [rule("deny", f"r{n}", match=match) for n, match in enumerate(matches)]
    return compile_bundle(bundle(*rules))


def replayed(candidate, agent=None, identity=None, **changed):
    """One call that passed an empty policy, decided again."""
    record = Record((USER, EMPTY))
    record.call("push")
    (call, _) = record.items
    assert isinstance(call, RecordedCall)
    call = replace(call, identity=identity or Identity(env=Env.CI), **changed)
    run = RunReplay(Layering(candidate, lambda _: EMPTY).of_run([]))
    if agent is not None:
        run.resolve(agent)
    return run.decide(call)


@pytest.mark.parametrize(
    ("match", "agent", "change", "doubt"),
    [
        ({"registered": True}, None, "undetermined", Doubt.AGENT),
        ({"registered": True}, RecordedAgent("x", FIXER), "newly_blocked", None),
        ({"registered": False}, RecordedAgent("x", FIXER), "same", None),
        ({"registered": True, **tools("other")}, None, "same", None),
        ({"environment": ["ci"]}, None, "newly_blocked", None),
        ({"environment": ["staging"]}, None, "same", None),
        ({"environment": ["staging"]}, RecordedAgent("staging", FIXER), "newly_blocked", None),
    ],
)
def test_facts_are_those_of_the_record(match, agent, change, doubt):
    found = replayed(policy(match), agent)
    assert (found.change.value, found.doubt) == (change, doubt)


def test_an_environment_that_events_do_not_name_is_not_known():
    found = replayed(policy({"environment": ["staging"]}), identity=Identity())
    assert found.doubt is Doubt.AGENT


@pytest.mark.parametrize(
    ("match", "changed", "change"),
    [
        ({"tool_provider": ["built-in"]}, {"provider": BUILT_IN}, "newly_blocked"),
        ({"data_labels_any": ["a"]}, {"given": Given(labels=frozenset("a"))}, "newly_blocked"),
        ({"data_labels_any": ["a"]}, {"hidden": frozenset({"data_labels_any"})}, "undetermined"),
        ({"tool_provider": ["x"]}, {"hidden": frozenset({"data_labels_any"})}, "same"),
        ({"context": {"has_keys": ["a"]}}, {"given": HIDDEN}, "undetermined"),
        ({"context": {"has_keys": ["b"]}}, {"given": HIDDEN}, "same"),
        (
            {"environment": ["prod"]},
            {"given": Given(claims=Claims(environment="prod"))},
            "newly_blocked",
        ),
    ],
)
def test_what_was_said_of_a_call(match, changed, change):
    found = replayed(policy(match), **changed)
    assert found.change.value == change
    assert found.doubt is (Doubt.GIVEN if change == "undetermined" else None)
    assert not HIDDEN.context.asked  # another replay of the same call begins anew


def test_without_facts_every_such_call_is_undetermined():
    record = Record((USER, EMPTY))
    for _ in range(2):
        record.call("push")
    rows, _, _ = record.replay(policy({"registered": True}), known=False, loads=False)
    assert changes(rows) == ["undetermined"] * 2


def test_engines_of_one_run_are_kept_by_what_is_known_about_the_agent():
    record = Record((USER, EMPTY))
    for _ in range(3):
        record.call("push")
    calls = [item for item in record.items if isinstance(item, RecordedCall)]
    run = RunReplay(Layering(policy({"registered": True}), lambda _: EMPTY).of_run([]))
    run.resolve(RecordedAgent("ci", FIXER))
    rows = [run.decide(calls[0])]
    run.resolve(RecordedAgent("ci", AgentFacts()))
    rows.append(run.decide(calls[1]))
    run.resolve(RecordedAgent("ci", FIXER))
    rows.append(run.decide(calls[2]))
    assert changes(rows) == ["newly_blocked", "same", "newly_blocked"]


def test_facts_of_an_event():
    resolved = AgentResolved(
        agent_id="fixer",
        environment="staging",
        registered=True,
        agent_type="pr_agent",
        trust_level=TrustLevel.VERIFIED,
        trust_after_denials=TrustLevel.BASIC,
        roles=["fix"],
        delegation_depth=2,
        proof=Proof(kind=ProofKind.NONE),
    )
    facts = AgentFacts(
        registered=True,
        agent_type="pr_agent",
        trust_level=TrustLevel.VERIFIED,
        trust_after_denials=TrustLevel.BASIC,
        roles=("fix",),
        delegation_depth=2,
    )
    assert recorded_agent(resolved) == RecordedAgent("staging", facts)


@pytest.mark.parametrize(
    ("told", "hidden"),
    [
        (GivenPreview(labels=["a"], context="{}"), set()),
        (GivenPreview(redacted=["labels"]), {"data_labels_any"}),
        (GivenPreview(redacted=["context"]), set()),
        (GivenPreview(user_input_hash="0"), {"text"}),
        (GivenPreview(claims=Claims(roles=("[REDACTED]",)), redacted=["claims"]), {"environment"}),
    ],
)
def test_matchers_about_what_is_masked(told, hidden):
    given, found = given_on_record(msgspec.json.encode(told))
    assert found >= hidden
    assert bool(found) is bool(hidden)
    assert given.claims == (told.claims or None)
    assert isinstance(given.context, PartialArgs) is (told.context is msgspec.UNSET)


def test_a_given_that_cannot_be_read_and_none():
    assert given_on_record(b"") == (None, frozenset())
    given, hidden = given_on_record(b"[]")
    assert isinstance(given.context, PartialArgs)
    assert {"data_labels_any", "registered", "text"} <= hidden


def test_a_context_of_which_only_the_mark_is_left():
    cut = GivenPreview(context="[TRUNCATED]", truncated=True)
    given, _ = given_on_record(msgspec.json.encode(cut))
    assert isinstance(given.context, PartialArgs)
    assert given.context.hides("a")


@pytest.mark.parametrize(
    ("names", "provider"),
    [
        ((None, "mcp_stdio", "git"), MCP),
        ((None, "agent_hook", "@claude"), BUILT_IN),
        ((None, "in_process", "pack"), BUILT_IN),
        (("x", "in_process", "pack"), "x"),
    ],
)
def test_providers(names, provider):
    assert provider_of(*names) == provider
