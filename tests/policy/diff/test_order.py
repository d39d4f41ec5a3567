"""Rules that changed places, and what a rule means to the rules around it."""

import pytest
from tests.policy.bundles import bundle, rule, tools

from subluminal.policy.diff.order import asks, class_effect, kind_of, may_shield, shields
from subluminal.policy.diff.rules import rule_changes

ALLOW, DENY, BUDGET = rule("allow"), rule("deny"), rule("budget")
TAG = rule("tag")
LIMIT = rule("budget", "limit", match={"risk_class": ["write_like"]})


def told(old, new) -> list[tuple[str | None, str, str]]:
    found = rule_changes(bundle(*old), bundle(*new))
    return [(change.rule_id, str(change.severity), change.summary) for change in found]


def test_an_allow_that_moves_above_a_deny_loosens():
    assert told([DENY, ALLOW], [ALLOW, DENY]) == [
        ("allow", "critical", "moved above the deny `deny`")
    ]


def test_a_deny_that_moves_above_an_allow_tightens():
    assert told([ALLOW, DENY], [DENY, ALLOW]) == [("deny", "warn", "moved above the allow `allow`")]


def test_rules_that_cannot_meet_may_change_places():
    allow, deny = rule("allow", match=tools("x")), rule("deny", match=tools("y"))
    ((_, severity, summary),) = told([deny, allow], [allow, deny])
    assert (severity, summary) == ("info", "moved to another position")


def test_a_tag_below_its_users_no_longer_serves_them():
    assert told([TAG, LIMIT], [LIMIT, TAG]) == [
        ("tag", "critical", "moved below `limit`, which uses its risk class")
    ]
    assert told([LIMIT, TAG], [TAG, LIMIT]) == [
        ("tag", "warn", "moved above `limit`, which uses its risk class")
    ]


def test_a_tag_above_an_allow_that_uses_it_loosens():
    allow = rule("allow", match={"risk_class": ["write_like"]})
    assert told([allow, TAG], [TAG, allow])[0][1] == "critical"
    assert told([TAG, allow], [allow, TAG])[0][1] == "warn"


def test_other_moves_are_for_information():
    assert told([BUDGET, DENY, TAG], [DENY, TAG, BUDGET]) == [
        ("budget", "info", "moved to another position")
    ]


def test_only_the_worst_move_of_a_rule_is_reported():
    first, second = rule("deny", "one"), rule("deny", "two")
    assert told([first, second, ALLOW], [ALLOW, first, second]) == [
        ("allow", "critical", "moved above the deny `one`")
    ]


def test_disabled_and_new_rules_do_not_count_as_moved():
    off = rule("deny", "off", enabled=False)
    assert told([off, ALLOW], [ALLOW, off]) == []
    assert told([BUDGET], [rule("dedupe"), BUDGET])[0][2] == "added (dedupe)"


def test_a_renamed_rule_is_followed():
    found = told([rule("deny", "a"), ALLOW], [ALLOW, rule("deny", "b")])
    assert [(severity, summary) for _, severity, summary in found] == [
        ("info", "renamed from `a`"),
        ("critical", "moved above the deny `b`"),
    ]


C, D = {"risk_class": ["c"]}, {"risk_class": ["d"]}
TAG_C = rule("tag", add_risk_class=["c"])


def effect(*rules, adding=True) -> str:
    written = bundle(TAG_C, *rules)
    return str(class_effect(written.rules[0], ["c"], written, adding=adding)[0])


@pytest.mark.parametrize(
    ("rules", "adding", "severity"),
    [
        ([], True, "info"),
        ([rule("deny", match=C)], True, "warn"),
        ([rule("deny", match=C)], False, "critical"),
        ([rule("allow", match=C)], True, "critical"),
        ([rule("allow", match=C)], False, "warn"),
        ([rule("allow", match=C, enabled=False)], True, "info"),
        ([rule("deny", match=C, require="human")], True, "warn"),
        ([rule("deny", match=C, require="human"), rule("deny", "all")], True, "critical"),
        ([rule("tag", "t", match=C, add_risk_class=["d"]), rule("allow", match=D)], True, "critical"),
        ([rule("tag", "t", match=C, add_risk_class=["d"]), rule("deny", match=D)], True, "warn"),
        ([rule("tag", "t", match=D, add_risk_class=["e"])], True, "info"),
    ],
)  # fmt: skip
def test_a_class_matters_by_who_asks_for_it_directly_or_through_a_tag(rules, adding, severity):
    assert effect(*rules, adding=adding) == severity


def test_a_rule_that_asks_may_let_pass_what_is_refused_below():
    allow, lifts, deny, budget = bundle(
        rule("allow"), rule("deny", "lifts", require="human"), rule("deny"), rule("budget")
    ).rules
    assert [asks(each) for each in (allow, lifts, deny, budget)] == [False, True, False, False]
    assert may_shield(allow, lifts)
    assert may_shield(lifts, deny)
    assert not may_shield(deny, lifts)
    assert not may_shield(allow, budget)
    assert kind_of(budget) == "budget"


def test_names_that_cannot_meet_shield_from_nothing():
    written = bundle(rule("allow", match=tools("x")), rule("deny", match=tools("y")))
    assert shields(written.rules[0], written) is None
