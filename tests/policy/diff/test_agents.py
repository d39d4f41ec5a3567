"""Changes of who a rule is about: which loosen, and who gains."""

import pytest
from tests.policy.bundles import rule
from tests.policy.diff.test_rules import told
from tests.requirements import requirement

WIDER = [
    ({"trust_level_min": "verified"}, {"trust_level_min": "basic"}, "agents from trust `basic`"),
    ({"trust_level_min": "verified"}, {}, "agents of any trust"),
    ({"environment": ["dev"]}, {"environment": ["dev", "prod"]}, "environment `prod`"),
    ({"environment": ["dev"]}, {}, "every environment"),
    ({"agent_roles_any": ["a"]}, {}, "agents with any role or none"),
    ({"agent_type": ["a"]}, {"agent_type": ["c", "a", "b"]}, "agents of type `b`, `c`"),
    ({"agent_roles_any": ["a"]}, {"agent_roles_any": ["a", "b"]}, "agents with the role `b`"),
    ({"tool_provider": ["mcp"]}, {"tool_provider": ["mcp", "x"]}, "tools of `x`"),
    ({"data_labels_any": ["a"]}, {"data_labels_any": ["a", "b"]}, "calls labelled `b`"),
    ({"registered": True}, {}, "agents that are not registered"),
    ({"registered": False}, {}, "registered agents"),
    (
        {"delegation_depth_min": 3},
        {"delegation_depth_min": 1},
        "agents from depth `1` of delegation",
    ),
]


@requirement("trust:diff-who-gains")
@pytest.mark.parametrize(("narrow", "wide", "who"), WIDER)
def test_an_allow_for_more_agents_loosens_and_a_deny_for_more_tightens(narrow, wide, who):
    gain = f"; who gains: {who}"
    for kind, opens in (("allow", True), ("deny", False)):
        before, after = rule(kind, match=narrow), rule(kind, match=wide)
        (widened,) = told([before], [after])
        (narrowed,) = told([after], [before])
        assert [widened[1], narrowed[1]] == (
            ["critical", "warn"] if opens else ["warn", "critical"]
        )
        assert "match widened" in widened[2]
        assert "match narrowed" in narrowed[2]
        assert widened[2].endswith(gain) is opens
        assert narrowed[2].endswith(gain) is not opens


def test_an_allow_that_asks_a_person_is_told_as_a_refusal():
    asking = rule("allow", match={"environment": ["dev"]}, require="approval")
    (change,) = told([asking], [{**asking, "match": {"environment": ["dev", "prod"]}}])
    assert "who gains" not in change[2]


def test_limits_name_nobody_who_gains():
    (change,) = told([rule("budget", match={"registered": True})], [rule("budget")])
    assert "who gains" not in change[2]


def test_changes_that_leave_agents_as_they_are():
    before = rule("deny", match={"environment": ["b", "a"], "trust_level_min": "untrusted"})
    after = rule("deny", match={"environment": ["a", "b", "b"], "delegation_depth_min": 0})
    assert told([before], [after]) == []


def test_a_context_that_asks_more_narrows():
    wide = rule("allow", match={"context": {"has_keys": ["a"]}})
    narrow = rule("allow", match={"context": {"key_equals": {"a": 1}}})
    assert [each[1] for each in told([wide], [narrow])] == ["warn"]
    assert [each[1] for each in told([narrow], [wide])] == ["critical"]


def test_a_moved_allow_for_other_agents_shields_nothing():
    prod = rule("allow", match={"environment": ["prod"]})
    dev = rule("deny", match={"environment": ["dev"]})
    assert [each[1] for each in told([dev, prod], [prod, dev])] in ([], ["info"])
    unregistered = rule("deny", match={"registered": False})
    registered = rule("allow", match={"registered": True})
    assert [each[1] for each in told([unregistered], [registered, unregistered])] == ["info"]
