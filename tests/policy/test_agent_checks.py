"""Values that no policy can mean in the matchers about who acts."""

import math

import pytest
from tests.policy.bundles import bundle, rule

from subluminal.policy.checking import match_misfits


@pytest.mark.parametrize(
    ("match", "told"),
    [
        ({"delegation_depth_min": -1}, "must be at least 0, got -1"),
        ({"environment": ["prod", " "]}, "must not be empty"),
        ({"agent_type": [""]}, "must not be empty"),
        ({"agent_roles_any": [""]}, "must not be empty"),
        ({"tool_provider": [""]}, "must not be empty"),
        ({"data_labels_any": [""]}, "must not be empty"),
        ({"context": {"key_equals": {"a": math.nan}}}, "must be a finite number"),
        ({"context": {"numeric_range": {"a": {}}}}, "needs `min` or `max`"),
        ({"environment": ["x"], "delegation_depth_min": 0}, None),
    ],
)
def test_misfits(match, told):
    (made,) = bundle(rule("deny", match=match)).rules
    found = list(match_misfits(made.match))
    assert [each.message for each in found] == ([] if told is None else [told])
    assert all(each.path[:2] == ("match", next(iter(match))) for each in found)
