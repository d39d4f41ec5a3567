"""What is wrong with a bundle of Agent-SPM, each with its place: what its loader refuses, and what
there silently never matches.
"""

import json

import pytest
from tests.policy.dialects.agent_spm.spm_bundles import (
    END,
    START,
    load,
    problems_of,
    spm,
    spm_rule,
    without,
)
from tests.requirements import requirement

from subluminal.contracts.vocabulary import Dialect
from subluminal.errors import InvalidInput
from subluminal.policy.dialects.agent_spm.shape import is_agent_spm
from subluminal.policy.lint.linting import lint
from subluminal.policy.loading import parse_bundle
from subluminal.policy.terms import Terms

NOW_MS = 1_800_000_000_000  # in 2027
AGENT_SPM = Terms(dialect=Dialect.AGENT_SPM)


def rule_with(**when):
    return spm(spm_rule(when=when))


def matching(**match):
    return spm(spm_rule(match=match))


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (spm(), True),
        (spm(policy_id="x"), False),
        (without(spm(), "rules"), False),
        (without(spm(), "generated_at"), False),
        (without(spm(), "defaults"), False),
        (spm(defaults={}), False),
        (spm(defaults=[]), False),
        ([], False),
        ("text", False),
    ],
)
def test_a_bundle_is_recognised_by_its_members(value, found: bool):
    assert is_agent_spm(value) is found


LOADER = [
    (without(spm(), "version"), "missing field `version`"),
    (spm(version=""), "`version`: must not be empty"),
    (spm(version=1), "`version`: expected a string, got a whole number `1`"),
    (without(spm(), "generated_at"), "missing field `generated_at`"),
    (without(spm(), "expires_at"), "missing field `expires_at`"),
    (spm(rules={}), "`rules`: expected a list, got a mapping"),
    (spm(defaults={}), "missing field `outcome` in `defaults`"),
    (spm(defaults={"outcome": "MAYBE"}), "`defaults.outcome`: unknown value `MAYBE`"),
    (spm(defaults={"outcome": "APPROVED"}), "`defaults.outcome`: unknown value `APPROVED`"),
    (spm(None), "rule 1: expected a mapping, got nothing"),
    (spm(without(spm_rule(), "id")), "rule 1: missing field `id`"),
    (spm(spm_rule(id="")), "rule 1: `id`: must not be empty"),
    (spm(without(spm_rule(), "description")), "rule `DENY_TOOL`: missing field `description`"),
    (spm(without(spm_rule(), "match")), "rule `DENY_TOOL`: missing field `match`"),
    (spm(without(spm_rule(), "outcome")), "rule `DENY_TOOL`: missing field `outcome`"),
    (spm(spm_rule(outcome="BLOCK")), "rule `DENY_TOOL`: `outcome`: unknown value `BLOCK`"),
    (matching(tool_name=5), "rule `DENY_TOOL`: `match.tool_name`: expected a string, got a whole number `5`"),
    (matching(tool_name=["a", 5]), "rule `DENY_TOOL`: `match.tool_name[1]`: expected a string, got a whole number `5`"),
    (matching(environment=None), "rule `DENY_TOOL`: `match.environment`: expected a string, got nothing"),
    (spm(spm_rule(when=None)), "rule `DENY_TOOL`: `when`: expected a mapping, got nothing"),
    (rule_with(contains_any="x"), "rule `DENY_TOOL`: `when.contains_any`: expected a list, got a string `x`"),
    (rule_with(contains_any=[1]), "rule `DENY_TOOL`: `when.contains_any[0]`: expected a string, got a whole number `1`"),
    (rule_with(not_contains={}), "rule `DENY_TOOL`: `when.not_contains`: expected a list, got a mapping"),
    (rule_with(matches_regex=1), "rule `DENY_TOOL`: `when.matches_regex`: expected a string, got a whole number `1`"),
    (rule_with(data_labels_any="PII"), "rule `DENY_TOOL`: `when.data_labels_any`: expected a list, got a string `PII`"),
    (rule_with(tool_args_match=[]), "rule `DENY_TOOL`: `when.tool_args_match`: expected a mapping, got a list"),
    (spm(expires_at="soon"), "`expires_at`: `soon` is not a date"),
    (spm(generated_at="2026-02-30"), "`generated_at`: `2026-02-30` is not a date"),
    (spm(generated_at=END), "`generated_at`: must be before `expires_at`"),
    (spm(*[spm_rule(id=f"R{n}") for n in range(1001)]), "`rules`: has 1001 rules; the most is 1000"),
]  # fmt: skip


@requirement("trust:dialect-refuses")
@pytest.mark.parametrize(("value", "said"), LOADER, ids=[said for _, said in LOADER])
def test_what_agent_spms_loader_refuses_is_refused(value, said: str):
    assert [problem.message for problem in problems_of(value, AGENT_SPM)] == [said]


SILENT = [
    (spm(spm_rule(owner="me")), "rule `DENY_TOOL`: unknown field `owner`"),
    (matching(agent_id="x"), "rule `DENY_TOOL`: unknown field `agent_id` in `match`"),
    (rule_with(contain_any=["x"]), "rule `DENY_TOOL`: unknown field `contain_any` in `when`"),
    (matching(trust_level_min="admin"), "rule `DENY_TOOL`: `match.trust_level_min`: unknown value `admin`"),
    (matching(tool_name=[]), "rule `DENY_TOOL`: `match.tool_name`: an empty list matches no tool"),
    (matching(tool_name=""), "rule `DENY_TOOL`: `match.tool_name`: an empty name matches no tool"),
    (matching(tool_name=["a", ""]), "rule `DENY_TOOL`: `match.tool_name[1]`: an empty name matches no tool"),
    (matching(environment=""), "rule `DENY_TOOL`: `match.environment`: an empty name matches no environment"),
    (matching(agent_type=[]), "rule `DENY_TOOL`: `match.agent_type`: an empty list never matches"),
    (matching(tool_provider=[]), "rule `DENY_TOOL`: `match.tool_provider`: an empty list never matches"),
    (rule_with(contains_any=[""]), "rule `DENY_TOOL`: `when.contains_any[0]`: an empty text is part of every value"),
    (rule_with(not_contains=["a", ""]), "rule `DENY_TOOL`: `when.not_contains[1]`: an empty text is part of every value"),
    (rule_with(contains_any=["Export", "ex"], not_contains=["EX"]), "rule `DENY_TOOL`: `when.not_contains`: never holds: every text of `contains_any` has one of `not_contains` in it"),
    (rule_with(matches_regex="(?=a)"), "rule `DENY_TOOL`: `when.matches_regex`: invalid regex `(?=a)`: a lookahead `(?=` cannot be matched in linear time"),
    (rule_with(matches_regex="a" * 513), f"rule `DENY_TOOL`: `when.matches_regex`: invalid regex `{'a' * 40}`: longer than 512 characters"),
    (rule_with(matches_regex="a{1001}"), "rule `DENY_TOOL`: `when.matches_regex`: invalid regex `a{1001}`: invalid repetition size: {1001}"),
    (rule_with(tool_args_match={"a": [1]}), "rule `DENY_TOOL`: `when.tool_args_match.a`: never holds: no argument equals a list"),
    (rule_with(tool_args_match={"a": {"min": 1}}), "rule `DENY_TOOL`: unknown operator `min` in `when.tool_args_match.a`"),
    (rule_with(tool_args_match={"a": {"gt": "1"}}), "rule `DENY_TOOL`: `when.tool_args_match.a.gt`: expected a number"),
    (rule_with(tool_args_match={"a": {"lte": True}}), "rule `DENY_TOOL`: `when.tool_args_match.a.lte`: expected a number"),
    (rule_with(tool_args_match={"a": {"eq": {}}}), "rule `DENY_TOOL`: `when.tool_args_match.a.eq`: never holds: no argument equals a list or an object"),
    (rule_with(tool_args_match={"a": {"gt": 5, "lt": 5}}), "rule `DENY_TOOL`: `when.tool_args_match.a`: never holds: the operators exclude each other"),
    (rule_with(tool_args_match={"a": {"gte": 5, "lt": 4}}), "rule `DENY_TOOL`: `when.tool_args_match.a`: never holds: the operators exclude each other"),
    (rule_with(tool_args_match={"a": {"gte": 5, "lte": 5, "neq": 5}}), "rule `DENY_TOOL`: `when.tool_args_match.a`: never holds: the operators exclude each other"),
    (rule_with(tool_args_match={"a": {"eq": 5, "neq": 5}}), "rule `DENY_TOOL`: `when.tool_args_match.a`: never holds: the operators exclude each other"),
    (rule_with(tool_args_match={"a": {"eq": "x", "gt": 5}}), "rule `DENY_TOOL`: `when.tool_args_match.a`: never holds: the operators exclude each other"),
    (rule_with(tool_args_match={"a": {"eq": 5, "gt": 5}}), "rule `DENY_TOOL`: `when.tool_args_match.a`: never holds: the operators exclude each other"),
    (spm(spm_rule(), spm_rule()), "rule `DENY_TOOL`: `id`: duplicate id"),
    (matching(tool_name="x" * 1025), f"rule `DENY_TOOL`: `match.tool_name`: invalid glob `{'x' * 40}`: longer than 1024 characters"),
    (spm(spm_rule(id="defaults.outcome")), "rule `defaults.outcome`: `id`: `defaults.outcome` stands for the bundle's default"),
]  # fmt: skip


@requirement("trust:dialect-refuses")
@pytest.mark.parametrize(("value", "said"), SILENT, ids=[said for _, said in SILENT])
def test_what_agent_spm_silently_never_matches_is_refused(value, said: str):
    assert [problem.message for problem in problems_of(value)] == [said]


POSSIBLE = [
    {"gte": 5, "lte": 5}, {"gt": 1, "lt": 2}, {"eq": 5, "gte": 5, "lte": 5, "neq": 6},
    {"eq": None}, {"neq": None}, {"eq": "x", "neq": "y"}, {"gt": 5, "neq": 6}, {"lt": 5}, {"gte": 0.5},
    {"lte": 5, "eq": 4}, {"lt": 5, "eq": 4},
]  # fmt: skip


@pytest.mark.parametrize("wanted", POSSIBLE, ids=str)
def test_operators_that_can_hold_are_accepted(wanted):
    assert problems_of(rule_with(tool_args_match={"a": wanted})) == []


def test_optional_members_may_be_null_as_in_javascript():
    match = dict.fromkeys(["agent_type", "trust_level_min", "agent_roles_any", "tool_provider"])
    rule = spm_rule(match=match, when={"tool_args_match": None}, approver_role=None)
    assert problems_of(spm({**rule, "constraints": None})) == []


def test_problems_have_their_line():
    value = spm(spm_rule(), spm_rule(id="B", when={"matches_regex": "["}))
    (problem,) = problems_of(value)
    lines = json.dumps(value, indent=1).splitlines()
    assert '"matches_regex"' in lines[problem.line - 1]
    assert problem.file == "b.json"


def test_a_file_over_one_mebibyte_is_refused():
    big = spm(spm_rule(description="x" * 1_048_576))
    assert [problem.message for problem in problems_of(big)] == ["larger than 1048576 bytes"]
    assert problems_of(spm(spm_rule(description="x" * 1_000_000))) == []


def nested(levels: int):
    value: object = {}
    for _ in range(levels):
        value = {"a": value}
    return value


def test_nesting_is_bounded_at_twenty_levels():
    """The bundle, its rules, the rule and its constraints are four."""
    assert problems_of(spm(spm_rule(constraints=nested(16)))) == []
    (problem,) = problems_of(spm(spm_rule(constraints=nested(17))))
    assert problem.message.endswith("nested deeper than 20 levels")


def test_an_expired_bundle_is_refused_where_the_time_is_known():
    old = spm(expires_at="2026-06-01T00:00:00Z")
    (problem,) = problems_of(old, Terms(now_ms=NOW_MS))
    assert problem.message == "`expires_at`: the bundle expired at 2026-06-01T00:00:00Z"
    assert problem.hint == "renew the bundle: give it a later `expires_at`, and sign it again"
    assert problems_of(old) == []
    assert problems_of(spm(), Terms(now_ms=NOW_MS)) == []


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(spm()).replace('"rules"', '"rules": [], "rules"', 1),
        json.dumps(spm(version="\ud800")),
        json.dumps(spm()).replace('"0.1.0"', "NaN"),
    ],
    ids=["duplicate member", "lone surrogate", "NaN"],
)
def test_text_that_parsers_read_differently_is_refused(text: str):
    with pytest.raises(InvalidInput):
        parse_bundle(text.encode(), "b.json")


def test_a_number_that_no_double_holds_is_told_once():
    text = json.dumps(rule_with(tool_args_match={"a": 5})).replace(
        "5}", "0.1000000000000000000001}"
    )
    with pytest.raises(InvalidInput) as caught:
        parse_bundle(text.encode(), "b.json")
    assert len(caught.value.problems) == 1


def test_the_language_can_be_demanded():
    assert problems_of(spm(), Terms(dialect=Dialect.PACK))
    assert problems_of([], AGENT_SPM)[0].message == "expected a mapping, got a list"


def warnings_of(value) -> list[str]:
    return [problem.message for problem in lint(load(value)) if problem.severity == "warning"]


WARNINGS = [
    (spm(comment="x"), "`comment` is ignored"),
    (spm(defaults={"outcome": "DENY", "why": 1}), "`why` is ignored in `defaults`"),
    (matching(tool_name=["a", "q_*"]), "rule `DENY_TOOL`: `match.tool_name[1]`: `q_*` matches only a tool with this very name"),
    (rule_with(matches_regex="(a+)+"), "rule `DENY_TOOL`: `when.matches_regex`: Agent-SPM never runs this pattern, so the rule never matched there; here it does"),
    (rule_with(tool_args_match={"a": {}}), "rule `DENY_TOOL`: `when.tool_args_match.a`: asks nothing"),
    (rule_with(tool_args_match={"a": {"neq": []}}), "rule `DENY_TOOL`: `when.tool_args_match.a.neq`: always holds: no argument equals a list or an object"),
    (spm(spm_rule(approver_role="boss")), "rule `DENY_TOOL`: `approver_role`: has no effect on the outcome DENY"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "said"), WARNINGS, ids=[said for _, said in WARNINGS])
def test_what_is_probably_not_meant_is_a_warning(value, said: str):
    assert said in warnings_of(value)


def test_a_sound_bundle_has_no_warning():
    rule = spm_rule(outcome="REQUIRE_APPROVAL", approver_role="boss", when={"matches_regex": "a+"})
    assert warnings_of(spm(rule)) == []


def test_warnings_about_the_converted_rules_are_in_the_authors_words():
    """A rule that an earlier one shadows is told with its id and its line."""
    value = spm(spm_rule(id="ALL", match={"tool_name": "*"}), spm_rule(id="LATER"))
    told = [problem for problem in lint(load(value)) if "`LATER`" in problem.message]
    assert told
    assert told[0].line > json.dumps(value, indent=1).splitlines().index('   "id": "LATER",') - 2


def test_the_dates_are_those_of_the_bundle():
    bundle = load(spm(generated_at=START, expires_at="2098")).bundle
    assert (bundle.created_at, bundle.expires_at) == (START, "2098-01-01T00:00:00Z")


def test_every_rule_has_its_line_and_the_default_its_own():
    value = spm(spm_rule())
    loaded = load(value)
    lines = json.dumps(value, indent=1).splitlines()
    assert loaded.line_of(0) == lines.index("  {") + 1
    assert loaded.line_of(1) == lines.index('  "outcome": "ALLOW"') + 1


def test_a_policy_of_our_own_is_not_read_as_agent_spms():
    """One sentence, and not every member that it does not have."""
    ours = {"policy_id": "mine", "version": "1", "mode": "observe", "selectors": {}, "rules": []}
    (problem,) = problems_of(ours, AGENT_SPM)
    assert problem.message == "the file is not a bundle of Agent-SPM"
    assert problem.hint is not None
    assert "policy_id" in problem.hint
