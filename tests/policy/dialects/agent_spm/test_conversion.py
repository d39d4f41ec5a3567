"""Agent-SPM's rules in our words: names, arguments, texts, outcomes, and the default as a rule."""

import msgspec
import pytest
from tests.policy.dialects.agent_spm.spm_bundles import load, spm, spm_rule
from tests.requirements import requirement

from subluminal.contracts.bundle import Bundle
from subluminal.contracts.identity import Identity
from subluminal.contracts.shape import Misfit
from subluminal.contracts.vocabulary import Client, Env, Layer
from subluminal.policy.casefile import CaseIdentity
from subluminal.policy.compiling import compile_bundle
from subluminal.policy.counters import MemoryCounters
from subluminal.policy.dialects.agent_spm.conversion import written_path
from subluminal.policy.evaluation import Call, Engine

HASH = "0" * 64


def rules_of(*rules, **changes):
    return msgspec.to_builtins(load(spm(*rules, **changes)).bundle)["rules"]


def match_of(**match):
    return rules_of(spm_rule(match=match))[0]["match"]


def when_of(**when):
    return rules_of(spm_rule(when=when))[0]["match"]


def test_the_head_is_ours():
    bundle = load(spm(version="7")).bundle
    assert (bundle.policy_id, bundle.version, bundle.mode) == ("agent-spm", "7", "guardrails")
    assert bundle.defaults.decision_on_error == "BLOCK"


@pytest.mark.parametrize(
    ("name", "globs"),
    [
        ("exact", ["exact"]),
        ("query_*", ["query_*"]),
        ("**", ["[*]*"]),
        ("a*b", ["a[*]b"]),
        ("a?[x]*", ["a[?][[]x]*"]),
        (["a", "b"], ["a", "b"]),
        (["*", "q_*"], ["[*]", "q_[*]"]),
    ],
)
def test_names_of_tools_become_globs(name, globs: list[str]):
    assert match_of(tool_name=name)["tool_name"] == {"glob": globs}


def decided(value, tool: str, args=None) -> str:
    identity = Identity(agent_id="a", client=Client.CUSTOM, env=Env.DEV, principal=None,
                        workload=CaseIdentity().workload)  # fmt: skip
    engine = Engine([(Layer.USER, compile_bundle(load(value).bundle))], identity)
    made = engine.evaluate(
        Call("s", tool, args or {}, HASH), MemoryCounters(), wall_ms=0, mono_ms=0
    )
    return made.decision.reason_code


@requirement("trust:dialect-names")
@pytest.mark.parametrize(
    ("name", "tool", "matches"),
    [
        ("*", "anything", True),
        ("query_*", "query_", True),
        ("query_*", "query", False),
        ("query_*", "xquery_a", False),
        ("**", "*x", True),
        ("**", "x", False),
        ("a*b", "a*b", True),
        ("a*b", "axb", False),
        ("a?", "ab", False),
        ("[ab]", "a", False),
        ("[ab]", "[ab]", True),
        (["*"], "x", False),
        (["*"], "*", True),
        (["q_*"], "q_a", False),
        (["a", "b"], "b", True),
        ("Tool", "tool", False),
    ],
)
def test_names_match_as_in_agent_spm(name, tool: str, matches: bool):
    """`*`, a prefix, equality, and lists of exact names: nothing else is a pattern."""
    wanted = "DENY_TOOL" if matches else "DEFAULT_ALLOW"
    assert decided(spm(spm_rule(match={"tool_name": name})), tool) == wanted


def test_any_tool_and_any_environment_ask_nothing():
    assert match_of(tool_name="*", environment="*") == {}


def test_who_acts_is_matched_by_the_same_members():
    found = match_of(
        environment="prod",
        agent_type="pr_agent",
        trust_level_min="verified",
        agent_roles_any=["a", "b"],
        tool_provider=["mcp", "custom"],
    )
    found.pop("tool_name")
    assert found == {
        "environment": ["prod"],
        "agent_type": ["pr_agent"],
        "trust_level_min": "verified",
        "agent_roles_any": ["a", "b"],
        "tool_provider": ["mcp", "custom"],
    }
    assert "agent_type" not in match_of(agent_type="")


def test_texts_and_labels():
    found = when_of(
        contains_any=["a"], not_contains=["b"], matches_regex="x.", data_labels_any=["PII"]
    )
    assert found["text"] == {
        "any_of": ["a"],
        "none_of": ["b"],
        "regex": r"x[^\n\r\x{2028}\x{2029}]",
    }
    assert found["data_labels_any"] == ["PII"]
    assert "text" not in when_of(contains_any=[], matches_regex="")


def test_arguments():
    found = when_of(
        tool_args_match={
            "a": 1, "b": None, "c": {"gt": 1, "lte": 9, "neq": 5}, "d": {"gte": 0, "lt": 3},
            "e": {"eq": "x"}, "f": {}, "g": {"neq": [1]},
        }
    )["args"]  # fmt: skip
    assert found == {
        "key_equals": {"a": 1, "b": None, "e": "x"},
        "key_not_equals": {"c": 5},
        "numeric_range": {"c": {"gt": 1, "max": 9}, "d": {"min": 0, "lt": 3}},
    }
    assert "args" not in when_of(tool_args_match={"f": {}, "g": {"neq": {}}})


OUTCOMES = {
    "ALLOW": ("allow", "ALLOW", None),
    "DENY": ("deny", "BLOCK", None),
    "REQUIRE_APPROVAL": ("deny", "REJECT_WITH_HINT", "approval"),
    "STEP_UP": ("deny", "REJECT_WITH_HINT", "step_up"),
    "REQUIRE_TICKET": ("deny", "REJECT_WITH_HINT", "ticket"),
    "REQUIRE_HUMAN": ("deny", "REJECT_WITH_HINT", "human"),
}


@requirement("trust:dialect-outcomes")
@pytest.mark.parametrize(("outcome", "wanted"), OUTCOMES.items())
def test_each_outcome_has_its_action(outcome: str, wanted):
    """As a rule, and as the default, which is the last rule with a reason of its own."""
    rule, default = rules_of(
        spm_rule(outcome=outcome, approver_role="boss", constraints={"max_rows": 1}),
        default=outcome,
    )
    for made, code in ((rule, "DENY_TOOL"), (default, f"DEFAULT_{outcome}")):
        effect = made["effect"]
        assert (made["kind"], effect["action"], effect.get("require")) == wanted
        assert effect["reason_code"] == code
    assert rule["effect"]["message"] == "Block bad tool"
    assert rule["effect"]["constraints"] == {"max_rows": 1}
    assert rule["effect"].get("approver_role") == ("boss" if wanted[2] else None)
    assert default["rule_id"] == "defaults.outcome"
    assert "constraints" not in default["effect"]


def test_a_rule_without_words_gets_some():
    assert rules_of(spm_rule(description=" "))[0]["effect"]["message"] == "rule DENY_TOOL: DENY"


@requirement("trust:dialect-hash")
def test_the_bundle_as_json_compiles_to_the_same_policy():
    rule = spm_rule(
        match={"tool_name": ["a", "*"], "trust_level_min": "basic"},
        when={"matches_regex": "\\s", "tool_args_match": {"a": {"gt": 1}, "b": None}},
        outcome="STEP_UP",
        constraints={"n": [1, {"x": None}]},
    )
    bundle = load(spm(rule, default="DENY")).bundle
    again = msgspec.convert(msgspec.to_builtins(bundle), Bundle)
    assert compile_bundle(again).policy_hash == compile_bundle(bundle).policy_hash


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (("version",), ("version",)),
        (("rules",), ("rules",)),
        (("rules", 0), ("rules", 0)),
        (("rules", 0, "rule_id"), ("rules", 0, "id")),
        (("rules", 0, "match"), ("rules", 0)),
        (("rules", 0, "match", "tool_name", "glob", 0), ("rules", 0, "match", "tool_name")),
        (("rules", 0, "match", "text", "any_of", 3), ("rules", 0, "when", "contains_any", 3)),
        (("rules", 0, "match", "text", "regex"), ("rules", 0, "when", "matches_regex")),
        (("rules", 0, "match", "text"), ("rules", 0, "when")),
        (("rules", 0, "match", "args", "key_equals", "a"), ("rules", 0, "when", "tool_args_match")),
        (("rules", 0, "effect", "action"), ("rules", 0, "outcome")),
        (("rules", 0, "enabled"), ("rules", 0)),
        (("rules", 1, "effect", "action"), ("defaults", "outcome")),
    ],
)
def test_a_part_of_our_bundle_is_found_in_the_original(ours, theirs):
    assert written_path(Misfit(ours, "m"), 1).path == theirs
