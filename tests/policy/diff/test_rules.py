"""Rules that were added, removed or changed."""

import pytest
from tests.policy.bundles import ACCUMULATORS, bundle, rule, tools
from tests.requirements import requirement

from subluminal.policy.diff.rules import rule_changes

READS = {"risk_class": ["read_like"]}
TAG = rule("tag", add_risk_class=["read_like"])


def told(old, new) -> list[tuple[str, str, str]]:
    found = rule_changes(bundle(*old), bundle(*new))
    return [(change.kind, str(change.severity), change.summary) for change in found]


@requirement("001-9.4:diff")
@pytest.mark.parametrize("kind", ["deny", *ACCUMULATORS])
def test_removing_a_rule_that_refuses_loosens(kind):
    each = rule(kind)
    assert told([each], []) == [("rule_removed", "critical", f"removed ({kind})")]
    assert told([], [each]) == [("rule_added", "warn", f"added ({kind})")]
    off = {**each, "enabled": False}
    assert told([each], [off]) == [("rule_disabled", "critical", f"disabled ({kind})")]
    assert told([off], [each]) == [("rule_enabled", "warn", f"enabled ({kind})")]


def test_an_allow_loosens_where_it_stands_above_a_deny():
    deny = rule("deny")
    shielding = "added (allow): it settles access before `deny`"
    assert told([deny], [rule("allow"), deny]) == [("rule_added", "critical", shielding)]
    assert told([deny], [deny, rule("allow")]) == [("rule_added", "info", "added (allow)")]
    assert told([rule("allow"), deny], [deny])[0][:2] == ("rule_removed", "warn")
    other = rule("deny", match=tools("x"))
    apart = rule("allow", match=tools("y"))
    assert told([other], [apart, other]) == [("rule_added", "info", "added (allow)")]
    off = {**deny, "enabled": False}
    assert told([off], [rule("allow"), off]) == [("rule_added", "info", "added (allow)")]


def test_an_allow_that_waits_for_a_person_refuses():
    asks = rule("allow", require="approval")
    assert told([], [asks])[0][1] == "warn"
    assert told([asks], [])[0][1] == "critical"


def test_disabled_rules_come_and_go_for_information():
    off = rule("deny", enabled=False)
    assert told([], [off]) == [("rule_added", "info", "added (deny), disabled")]
    assert told([off], []) == [("rule_removed", "info", "removed (deny), disabled")]
    changed = rule("deny", enabled=False, message="other")
    assert told([off], [changed]) == [
        ("rule_modified", "info", "changed, but the rule is disabled")
    ]
    assert told([off], [off]) == []


def test_a_rename_is_not_a_removal():
    assert told([rule("deny", "a")], [rule("deny", "b")]) == [
        ("rule_renamed", "info", "renamed from `a`")
    ]
    assert told([rule("budget", "a")], [rule("budget", "b")]) == [
        ("rule_renamed", "warn", "renamed from `a`; its counters start from zero")
    ]
    two = [rule("deny", "a"), rule("deny", "b")]
    assert [each[0] for each in told(two, [rule("deny", "c")])] == ["rule_removed", "rule_renamed"]


@pytest.mark.parametrize(
    ("old", "new", "severity"),
    [
        ("deny", "allow", "critical"),
        ("allow", "deny", "warn"),
        ("deny", "budget", "critical"),
        ("budget", "allow", "critical"),
        ("tag", "deny", "warn"),
        ("tag", "allow", "info"),
    ],
)
def test_a_change_of_kind_is_a_removal_and_an_addition(old, new, severity):
    assert told([rule(old, "r")], [rule(new, "r")]) == [
        ("rule_modified", severity, f"kind changed from `{old}` to `{new}`")
    ]


@pytest.mark.parametrize(
    ("kind", "old", "new", "severity", "word"),
    [
        ("allow", tools("a"), tools("a*"), "critical", "widened"),
        ("allow", tools("a*"), tools("a"), "warn", "narrowed"),
        ("deny", tools("a"), {}, "warn", "widened"),
        ("deny", {}, tools("a"), "critical", "narrowed"),
        ("deny", tools("a"), tools("b"), "critical", "changed"),
        ("budget", tools("a"), tools("b"), "critical", "changed"),
        ("budget", tools("a", "b"), tools("a"), "critical", "narrowed"),
        ("allow", tools("a"), tools("b"), "critical", "changed"),
        ("tag", tools("a"), tools("a", "b"), "info", "widened"),
        ("tag", tools("a", "b"), tools("a"), "info", "narrowed"),
    ],
)  # fmt: skip
def test_a_match_that_allows_more_or_refuses_less_loosens(kind, old, new, severity, word):
    ((_, found, summary),) = told([rule(kind, match=old)], [rule(kind, match=new)])
    assert found == severity
    assert summary.startswith(f"match {word} from `{{")


def test_an_allow_that_waits_for_a_person_is_widened_like_a_deny():
    narrow, wide = (rule("allow", require="human", match=match) for match in (tools("a"), {}))
    assert told([narrow], [wide])[0][1] == "warn"


def test_words_are_for_information():
    new = rule("deny", description="d", severity="critical")
    assert told([rule("deny")], [new]) == [
        ("rule_modified", "info", "description changed"),
        ("rule_modified", "info", "severity changed"),
    ]


def test_a_tag_matters_by_who_uses_its_class():
    deny, allow = rule("deny", match=READS), rule("allow", match=READS)
    assert told([TAG, deny], [deny])[0][1] == "critical"
    assert told([deny], [TAG, deny])[0][1] == "warn"
    assert told([TAG, allow], [allow])[0][1] == "warn"
    assert told([allow], [TAG, allow])[0][1] == "critical"
    assert told([TAG], [])[0][1] == "info"
    writes = rule("tag")
    budget = rule("budget", match={"risk_class": ["write_like"]})
    assert told([budget], [writes, budget])[0] == (
        "rule_added", "warn", "added (tag): `budget` uses `write_like`"
    )  # fmt: skip
    assert told([], [writes])[0][1] == "info"


def test_a_tag_that_matches_more_or_less_matters_by_who_uses_it():
    narrow, wide = {**TAG, "match": tools("a")}, {**TAG, "match": tools("a", "b")}
    deny, allow = rule("deny", match=READS), rule("allow", match=READS)
    assert told([narrow, deny], [wide, deny])[0][1] == "warn"
    assert told([wide, deny], [narrow, deny])[0][1] == "critical"
    assert told([narrow, allow], [wide, allow])[0][1] == "critical"
    assert told([wide, allow], [narrow, allow])[0][1] == "warn"


def test_reads_that_may_fail_open_are_a_loosening():
    opened = {"decision_on_error": "BLOCK", "fail_open_read_tools": True}
    (change,) = rule_changes(bundle(defaults=opened), bundle(TAG, defaults=opened))
    assert change.severity == "critical"
    assert change.summary == ("added (tag): `fail_open_read_tools` lets `read_like` calls pass")


def test_a_deny_that_a_person_can_lift_shields_from_the_denies_below():
    deny, lifts = rule("deny"), rule("deny", "lifts", require="approval")
    assert told([deny], [lifts, deny])[0][1] == "critical"
    assert told([deny], [deny, lifts])[0][1] == "warn"
    assert told([lifts, deny], [deny])[0][1] == "critical"


def test_classes_that_a_tag_gains_or_loses_are_told_one_by_one():
    deny = rule("deny", match={"risk_class": ["a"]})
    old = [rule("tag", add_risk_class=["a", "b"]), deny]
    new = [rule("tag", add_risk_class=["b", "c"]), deny]
    assert told(old, new) == [
        ("rule_modified", "critical", "no longer adds `a`: `deny` uses `a`"),
        ("rule_modified", "info", "also adds `c`"),
    ]
