"""Claims only tighten, rules about others are as if they were not there, and explain says the same.

For random policies, facts, claims and calls (trust T1).
"""

from hypothesis import given
from msgspec.structs import replace
from tests.differential import agents, generated
from tests.differential.driving import START_MS, as_told, compiled, hash_of, identity_of, summary_of
from tests.differential.generated import drawn
from tests.requirements import requirement

from subluminal.contracts.counters import CellKind
from subluminal.contracts.vocabulary import ACTION_STRICTNESS, Action, Status
from subluminal.policy.agents import Who, failed_clause
from subluminal.policy.counters import MemoryCounters
from subluminal.policy.evaluation import Call, Engine
from subluminal.policy.given import given_test
from subluminal.policy.snapshot import AGENT_MATCHERS, GIVEN_MATCHERS
from subluminal.policy.taint import lowering_to


def call_of(step, said):
    return Call(
        *(step["server"], step["tool"], step["args"], hash_of(step["args"]), step["granted"]),
        excused=step["excused"],
        provider=step["provider"],
        given=said,
        judge=as_told,
    )


def rank(found):
    return ACTION_STRICTNESS[found.decision.action]


def would_be_rank(found):
    actions = [found.decision.action, found.would_be.action if found.would_be else Action.ALLOW]
    return max(ACTION_STRICTNESS[action] for action in actions)


@requirement("trust:claims-tighten", "trust:claims-count-once")
@given(drawn(agents.layers), drawn(generated.identity), drawn(agents.facts), drawn(agents.calls))
def test_no_claim_makes_a_decision_milder(layers, identity, facts, calls):
    engine = Engine(compiled(layers), identity_of(identity), agent=facts)
    counters = MemoryCounters()
    counters.write(lowering_to(engine.start))
    now = 0
    for step in calls:
        now += step["after_ms"]
        clocks = {"wall_ms": START_MS + now, "mono_ms": now}
        silent = call_of(step, replace(step["given"], claims=None))
        on_facts = engine.evaluate(silent, counters, **clocks)
        found = engine.evaluate(call_of(step, step["given"]), counters, **clocks)

        assert rank(found) >= rank(on_facts)
        assert would_be_rank(found) >= would_be_rank(on_facts)
        if rank(found) == rank(on_facts) and found.grants_used == on_facts.grants_used:
            assert found.decision == on_facts.decision

        steps = []
        told = engine.evaluate(call_of(step, step["given"]), counters, **clocks, steps=steps)
        assert summary_of(told) == summary_of(found)
        assert told.updates == found.updates

        assert_counts_once(engine, found, on_facts)
        counters.write(found.updates)
        if found.forwarded:
            counters.write(engine.outcome(found, Status(step["status"]), 1, counters, mono_ms=now))


def assert_counts_once(engine, found, on_facts):
    """What claims add to the counters comes once, and takes nothing away."""
    if len(engine.applying) > 1 and len({each.policy_id for each in engine.policies}) == 1:
        return  # two layers of one policy_id may share the keys of a level
    keys = [(kind, key) for kind, key, _ in found.updates if kind is not CellKind.TAINT]
    assert len(keys) == len(set(keys))
    assert len(found.refused_by) == len({each.grant_key for each in found.refused_by})
    assert len(found.grants_used) == len(set(found.grants_used))
    assert len(found.limited_by) == len(set(found.limited_by))
    if found.forwarded == on_facts.forwarded:
        assert {key for _, key, _ in on_facts.updates} <= {key for _, key, _ in found.updates}


@requirement("trust:settled-matchers")
@given(drawn(agents.layers), drawn(generated.identity), drawn(agents.facts), drawn(agents.calls))
def test_a_rule_about_others_is_as_if_it_were_not_there(layers, identity, facts, calls):
    """An engine without these matchers, made for each call anew, decides and counts the same."""
    facts = replace(facts, trust_after_denials=facts.trust_level)
    who = Who(identity_of(identity), facts)
    engine = Engine(compiled(layers), who.identity, agent=facts)
    counters = MemoryCounters()
    counters.write(lowering_to(engine.start))
    now = 0
    for step in calls:
        now += step["after_ms"]
        clocks = {"wall_ms": START_MS + now, "mono_ms": now}
        asked = call_of(step, replace(step["given"], claims=None))
        found = engine.evaluate(asked, counters, **clocks)
        plain = Engine(compiled(left(layers, who, asked)), who.identity)
        same = plain.evaluate(asked, counters, **clocks)

        assert summary_of(found) == summary_of(same)
        assert found.updates == same.updates
        counters.write(found.updates)


def left(layers, who, asked):
    """The same policies with the rules that these matchers leave, without the matchers."""
    return [
        (layer, {**bundle, "rules": [stripped(each) for each in bundle["rules"] if holds(each)]})
        for layer, bundle in layers
        for holds in [lambda rule: is_left(rule["match"], who, asked)]
    ]


def is_left(match, who, asked):
    compiled_match = {
        **{name: match[name] for name in (*AGENT_MATCHERS, *GIVEN_MATCHERS) if name in match}
    }
    if "context" in match:
        whole = {"has_keys": [], "key_in": {}, "numeric_range": {}}
        compiled_match["context"] = {**whole, **match["context"]}
    test = given_test(compiled_match)
    return not failed_clause(compiled_match, who) and (test is None or test(asked))


def stripped(rule):
    taken = (*AGENT_MATCHERS, *GIVEN_MATCHERS)
    kept = {name: value for name, value in rule["match"].items() if name not in taken}
    return {**rule, "match": kept}
