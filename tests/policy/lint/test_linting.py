"""Lint as a whole: its warnings and notes about a file, and none without a cause."""

from pathlib import Path

import pytest
from tests.policy.bundles import plain, rule, text, tools

from subluminal.core.intents.index import find_pack
from subluminal.policy.lint.linting import lint, remarks
from subluminal.policy.loading import parse_bundle

EXAMPLES = Path(__file__).parents[3] / "examples" / "policies"


def told(*rules, **changes) -> list[str]:
    loaded = parse_bundle(text(*rules, **changes), "p.json")
    return [f"{problem.severity}: {problem.message}" for problem in lint(loaded)]


@pytest.mark.parametrize(
    "path",
    [path for path in sorted(EXAMPLES.glob("*.yaml")) if not path.name.endswith(".cases.yaml")],
    ids=lambda path: path.stem,
)
def test_the_examples_have_no_warnings(path):
    loaded = parse_bundle(path.read_bytes(), path.name, find_pack)
    assert [each for each in lint(loaded) if each.severity != "note"] == []


def test_problems_have_places_and_are_in_the_order_of_the_file():
    loaded = parse_bundle(
        b"policy_id: p\nversion: v1\nmode: observe\ndefaults: {decision_on_error: BLOCK}\nselectors: {}\n"
        b"rules:\n- {rule_id: a, kind: deny, enabled: false, match: {}, severity: info,\n"
        b"   effect: {action: BLOCK, reason_code: A, message: m}}\n",
        "p.yaml",
    )
    assert [(str(each), each.severity) for each in lint(loaded)] == [
        (
            "p.yaml:3:7: `mode`: `observe` records what would be refused, and enforces nothing",
            "note",
        ),
        ("p.yaml:7:37: rule `a`: `enabled`: the rule is disabled and has no effect", "note"),
    ]


def test_a_policy_without_rules_is_noted():
    assert told() == ["note: `rules`: the policy has no rules: every call is allowed"]


def test_a_call_that_costs_more_than_the_bucket_holds_is_warned_of():
    assert told(rule("rate_limit", capacity=2, cost_tokens_per_call=3)) == [
        "warning: rule `rate_limit`: `effect.rate_limit.cost_tokens_per_call`: no call can pass: "
        "a call costs 3 tokens, and the bucket holds 2"
    ]
    assert told(rule("rate_limit", capacity=3, cost_tokens_per_call=3)) == []


def test_fail_open_without_reads_is_warned_of():
    opened = {"decision_on_error": "BLOCK", "fail_open_read_tools": True}
    reads = rule("tag", add_risk_class=["read_like"])
    assert "no enabled tag rule adds `read_like`" in told(rule("deny"), defaults=opened)[0]
    assert "no enabled tag rule" in told(reads | {"enabled": False}, defaults=opened)[0]
    assert told(reads, rule("deny"), defaults=opened) == []


@pytest.mark.parametrize(
    ("match", "selectors", "expected"),
    [
        ({"risk_class": []}, {}, 1),
        ({"server_name": {}}, {}, 1),
        ({"tool_name": {"glob": [], "regex": []}}, {}, 1),
        ({"tool_name": {"glob": [], "regex": ["a"]}}, {}, 0),
        ({}, {"env": []}, 1),
        ({}, {"workload": {"labels": {}, "repo": []}}, 2),
        ({}, {"workload": {"labels": {"a": ""}}}, 0),
        ({}, {}, 0),
    ],
)
def test_an_empty_list_that_matches_everything_is_warned_of(match, selectors, expected):
    found = told(rule("budget", match=match), selectors=selectors)
    assert len([each for each in found if "is empty, so it matches everything" in each]) == expected


def test_every_family_of_warnings_is_reported():
    rules = [
        rule("tag", match=tools("write_*")),
        rule("allow"),
        rule("deny", match=tools("a"), suggest={"k": {"set": 1}}),
        rule("deny", "b", match={"risk_class": ["nobody"]}),
    ]
    loaded = parse_bundle(text(*rules), "p.json")
    messages = " ".join(each.misfit.message for each in remarks(loaded.bundle, plain(*rules)))
    for part in ("no rule limits", "has no effect", "cannot help", "can never match"):
        assert part in messages
