"""What a rule means to the rules around it."""

import pytest
from tests.policy.bundles import bundle, rule, tools

from subluminal.policy.diff.uses import asks, class_effect, kind_of, may_shield, shields

C, D = {"risk_class": ["c"]}, {"risk_class": ["d"]}
TAG = rule("tag", add_risk_class=["c"])


def effect(*rules, adding=True) -> str:
    written = bundle(TAG, *rules)
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
