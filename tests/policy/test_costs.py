"""The bound on what one decision may cost (linear-patterns): who is refused, where and with which advice."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.policy.bundles import ACCUMULATORS, bundle, plain, rule, tools

from subluminal.contracts.limits import MAX_CALL_COST
from subluminal.errors import InvalidInput
from subluminal.policy.checking import semantic_misfits
from subluminal.policy.costs import rule_costs, worst_call
from subluminal.policy.loading import parse_bundle
from subluminal.policy.patterns import compile_names
from subluminal.policy.text.inserting import as_json

EXAMPLES = Path(__file__).parents[2] / "examples" / "policies"
COUNTED = "[ab]*a[ab]{900}z"
DEEP = [[*range(100), number] for number in range(1_200)]


def regexes(*patterns: str, where: str = "tool_name") -> list[dict]:
    return [
        rule("deny", f"r{number}", match={where: {"regex": [pattern]}})
        for number, pattern in enumerate(patterns)
    ]


def cost(*rules: dict) -> int:
    return worst_call(rule_costs(bundle(*rules)))


@pytest.mark.parametrize(
    "rules",
    [
        regexes(*[f"{COUNTED}{number}" for number in range(200)]),
        regexes(*[f"(?:a{{1,30}}b?){{1,30}}{number}" for number in range(20)], where="server_name"),
        [rule("deny", match={"tool_name": {"regex": [f"{COUNTED}{i}" for i in range(200)]}})],
        [rule("deny", f"r{i}", match=tools("*a" + "?" * 100 + f"z{i}")) for i in range(50)],
        [rule("deny", f"r{i}", match={"args": {"has_keys": [f"k{i}"]}}) for i in range(3_000)],
        [rule("deny", f"r{i}", match={"args": {"key_in": {"k": DEEP}}}) for i in range(3)],
        *([rule(kind, f"r{i}") for i in range(3_000)] for kind in ACCUMULATORS),
        [rule("tag", f"r{i}", match={"args": {"has_keys": ["k"]}}) for i in range(3_000)],
    ],
    ids=["regexes", "servers", "one rule", "globs", "denies", "nested", *ACCUMULATORS, "tags"],
)
def test_a_bundle_whose_worst_call_costs_too_much_is_refused(rules):
    (found,) = semantic_misfits(bundle(*rules))

    assert found.message.startswith("the policy is too expensive: one call may cost ")
    assert f"of at most {MAX_CALL_COST:,}" in found.message
    assert found.hint


def test_the_error_names_the_most_expensive_rules_with_file_line_and_advice():
    """Every problem of a bundle has a place and a suggestion (rule-evaluation)."""
    rules = [
        *regexes("read", f"{COUNTED}{COUNTED}", "list", f"{COUNTED}{COUNTED}{COUNTED}"),
        *[rule("deny", f"wide-{i}", match={"tool_name": {"regex": [COUNTED]}}) for i in range(5)],
    ]
    text = as_json(plain(*rules), indent=1)

    with pytest.raises(InvalidInput) as raised:
        parse_bundle(text.encode(), "policy.json")

    (problem,) = raised.value.problems
    at = text.splitlines()[problem.line - 1]
    assert (problem.file, at.strip()) == ("policy.json", '"regex": [')
    assert "rule `r3`: `match.tool_name.regex`: the policy is too expensive" in problem.message
    assert "This rule costs most (" in problem.message
    assert "; next are `r1` (" in problem.message
    assert "instead of a counted repetition" in problem.hint


@pytest.mark.parametrize(
    ("rules", "path", "advice"),
    [
        (regexes(COUNTED * 8, where="server_name"), ("match", "server_name", "regex"), "counted"),
        ([rule("deny", match=tools("a" + "?" * 1_000))], ("match", "tool_name", "glob"), "counted"),
        ([rule("deny", match={"args": {"key_in": {"k": DEEP}}})], ("match",), "merge rules"),
    ],
)
def test_the_error_is_at_the_part_that_costs_most(rules, path, advice):
    (found,) = semantic_misfits(bundle(*rules))

    assert (found.path, advice in found.hint) == (("rules", 0, *path), True)
    assert "next are" not in found.message


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*[!s].yaml")), ids=lambda file: file.stem)
def test_the_examples_cost_next_to_nothing(file):
    loaded = parse_bundle(file.read_bytes(), file.name)

    assert worst_call(rule_costs(loaded.bundle)) < MAX_CALL_COST // 50


@pytest.mark.parametrize(
    "rules",
    [
        [rule("budget", f"r{i}", match=tools(f"tool_{i}")) for i in range(10_000)],
        [rule("deny", f"r{i}", match=tools(f"tool_{i}_*", f"*_{i}")) for i in range(1_500)],
        [
            rule("dedupe", f"r{i}", match={"server_name": {"glob": [f"server_{i % 100}"]}})
            for i in range(5_000)
        ],
        regexes(*[f"^drop_{number}_[a-z]+$" for number in range(200)]),
        [rule("deny", f"r{i}", match=tools(f"*delete{i}*")) for i in range(200)],
        [rule("deny", f"r{i}", match=tools("x"), enabled=False) for i in range(9_000)],
        [rule("deny", match={"args": {"key_in": {"repo": [f"acme/{i}" for i in range(50_000)]}}})],
    ],
    ids=["exact", "prefixes", "servers", "regexes", "contains", "disabled", "words"],
)
def test_a_large_policy_of_ordinary_rules_is_accepted(rules):
    assert semantic_misfits(bundle(*rules)) == []


names = st.text("ab", max_size=4)
globs = st.lists(
    st.builds("{}{}".format, names, st.sampled_from(["", "*"])), min_size=1, max_size=3
)


@given(st.lists(globs, min_size=1, max_size=6), names)
def test_no_name_meets_more_rules_than_the_worst_call_counts(lists, name):
    """The bound is an upper bound: no tool name collects rules that cost more."""
    rules = [
        rule("budget", f"r{number}", match=tools(*each))
        for number, each in enumerate(lists)
        if all(each)
    ]
    met = [each for each in rules if _matches(each, name)]

    assert cost(*rules) >= cost(*[{**each, "match": {}} for each in met])


def _matches(each: dict, name: str) -> bool:
    (only,) = bundle(each).rules
    found = compile_names(only.match.tool_name)
    return found.any or name in found.exact or name.startswith(found.prefix or ("\0",))


def test_predicates_about_the_context_cost_what_those_about_arguments_do():
    predicates = {"has_keys": ["a", "b"], "key_in": {"c": [[1, 2, 3, 4, 5, 6]]}}
    both = {"args": predicates, "context": predicates}
    matches = ({}, {"args": predicates}, {"context": predicates}, both)
    costs = [rule_costs(bundle(rule("deny", match=match)))[0].visit for match in matches]
    base, args, context, together = costs
    assert args == context
    assert together - base == 2 * (args - base)
