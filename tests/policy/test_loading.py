"""Bundles from text: all problems at once, with places; a broken one is never half-applied."""

import subprocess
import sys

import msgspec
import pytest
from tests.policy.bundles import plain, rule, text

from subluminal.contracts.limits import MAX_RULES
from subluminal.errors import InvalidInput, Problem
from subluminal.policy.loading import parse_bundle

GOOD = b"""\
policy_id: p
version: "1"
mode: guardrails
defaults: {decision_on_error: BLOCK}
selectors: {env: [ci]}
rules:
  - rule_id: no-prod-writes
    kind: deny
    enabled: true
    match: {tool_name: {glob: ["write_*"]}}
    severity: warn
    effect: {action: BLOCK, reason_code: NO, message: not here}
"""


def problems_of(data: bytes) -> list[Problem]:
    with pytest.raises(InvalidInput) as raised:
        parse_bundle(data, "policy.yaml")
    return list(raised.value.problems)


def test_yaml_and_json_give_the_same_bundle():
    loaded = parse_bundle(GOOD, "policy.yaml")
    assert loaded.bundle.rules[0].rule_id == "no-prod-writes"
    assert loaded.file == "policy.yaml"
    assert loaded.node.find(("rules", 0, "kind")) == (8, 11)
    assert parse_bundle(text(rule("deny")), "p.json").bundle.rules[0].rule_id == "deny"


def test_an_unknown_kind_is_told_with_line_and_suggestion():
    """cli.md: rule `no-prod-writes` … unknown rule kind `denny`; did you mean `deny`?"""
    (problem,) = problems_of(GOOD.replace(b"kind: deny", b"kind: denny"))
    assert str(problem) == "policy.yaml:8:11: rule `no-prod-writes`: unknown rule kind `denny`"
    assert problem.hint == "did you mean `deny`?"


@pytest.mark.parametrize(
    ("old", "new", "told", "hint"),
    [
        (b"effect: {action", b"effect: {acton", "unknown field `acton` in `effect`", "did you mean `action`?"),
        (b"kind: deny", b"", "missing field `kind`", "one of `allow`, `deny`, "),
        (b"enabled: true", b"enabled: NO", "`enabled`: expected true or false, got a string `NO`", "in YAML 1.2 `NO` is a string: write `true` or `false`"),
        (b"message: not here", b"message: 010", "`effect.message`: expected a string, got a whole number `10`", "put it in quotes to make it a string"),
        (b'["write_*"]', b'["[a"]', "`match.tool_name.glob[0]`: invalid glob `[a`", ""),
        (b"match: {", b"match: {time: {utc_hours: [[9, 30]]}, ", "`match.time.utc_hours[0]`: an hour must be between 0 and 24", "write `[9, 17]`"),
    ],
)  # fmt: skip
def test_a_wrong_field_is_named_with_its_rule(old, new, told, hint):
    (problem,) = [each for each in problems_of(GOOD.replace(old, new)) if told in each.message]
    assert problem.message.startswith("rule `no-prod-writes`: ")
    assert hint in (problem.hint or "")
    assert problem.line
    assert problem.column


def test_all_problems_are_reported_at_once_in_the_order_of_the_file():
    broken = GOOD.replace(b"mode: guardrails", b"mode: guard\nmode: x").replace(
        b"rules:\n",
        b"rules:\n"
        b"  - {rule_id: b, kind: budget, enabled: true, match: {}, severity: warn, effect: {budget: {scope: run, on_exceed: BLOCK}}}\n"
        b"  - {kind: tag, enabled: true, match: {}, severity: warn}\n"
        b"  - 7\n",
    )
    assert [problem.message for problem in problems_of(broken)] == [
        "`mode`: unknown value `guard`",
        "duplicate key `mode`",
        "rule `b`: `effect.budget`: needs `limit_calls` or `limit_cost_units`",
        "rule 2: missing field `rule_id`",
        "rule 2: missing field `effect`",
        "rule 3: expected a mapping, got a whole number `7`",
    ]


def test_a_value_that_cannot_be_read_is_reported_once():
    (problem,) = problems_of(GOOD.replace(b'version: "1"', b"version: .nan"))
    assert problem.message == "JSON has no number `.nan`"


@pytest.mark.parametrize(
    "data", [b"[]", b"7", b"null", b"{}", b"a: 1", b'{"rules": 7}', b'{"rules": [[]]}']
)
def test_a_file_that_is_not_a_bundle_is_refused(data):
    assert problems_of(data)


def test_the_number_of_rules_is_bounded():
    (problem,) = problems_of(text(*[rule("tag")] * (MAX_RULES + 1)))
    assert problem.message == "`rules`: has 10001 rules; the most is 10000"


def test_a_rule_without_a_usable_id_is_called_by_its_number():
    assert (
        problems_of(text(rule("deny", " ")))[0].message == "rule ` `: `rule_id`: must not be empty"
    )
    value = rule("deny")
    value["rule_id"] = 3
    assert problems_of(text(value))[0].message.startswith("rule 1: `rule_id`: expected a string")


def test_the_value_is_kept_as_written():
    loaded = parse_bundle(text(rule("deny")), "p.json")
    assert loaded.value == plain(rule("deny"))


def test_a_file_of_nothing_but_mistakes_is_given_up_early():
    found = problems_of(text(*[rule("tag", "", add_risk_class=[7])] * 5_000))
    assert len(found) == 100


@pytest.mark.parametrize(
    "value",
    [
        {f"k{n}": 1 for n in range(2_001)},
        {"rules": [{"match": {f"k{n}": 1 for n in range(2_001)}}]},
    ],
)
def test_unknown_fields_are_bounded(value):
    (problem,) = problems_of(msgspec.json.encode(value))
    assert "has 2001 fields; the most is 2000" in problem.message


def test_deciding_modules_do_not_load_the_yaml_parser():
    """fast-start: the shim imports no YAML."""
    code = (
        "import sys, subluminal.policy.evaluation, subluminal.policy.snapshot\n"
        "import subluminal.policy.compiling, subluminal.policy.counters\n"
        "print([name for name in sys.modules if name.split('.')[0] == 'yaml'])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"
