"""Which changes of contents, sequences, windows and ends loosen a policy."""

import pytest
from tests.policy.bundles import bundle, rule

from subluminal.policy.diff.diffing import diff

WINDOW = {
    "capacity": ...,
    "refill_tokens": ...,
    "refill_period_ms": ...,
    "max_calls": 2,
    "window_ms": 9,
}


def severities(old, new):
    return [str(each.severity) for each in diff(old, new)]


@pytest.mark.parametrize(
    ("strict", "loose"),
    [
        (rule("sequence"), rule("sequence", within_ms=9)),
        (rule("sequence", within_ms=9), rule("sequence", within_ms=8)),
        (rule("sequence", on_match="TERMINATE_RUN"), rule("sequence")),
        (rule("budget"), rule("budget", reset_ms=9)),
        (rule("budget", reset_ms=9), rule("budget", reset_ms=8)),
        (rule("budget"), rule("budget", scope="agent")),
        (rule("budget", scope="agent"), rule("budget", scope="agent_tool")),
        (rule("budget", scope="tool"), rule("budget", scope="agent_tool")),
        (rule("rate_limit", **WINDOW), rule("rate_limit", **{**WINDOW, "max_calls": 3})),
        (rule("rate_limit", **WINDOW), rule("rate_limit", **{**WINDOW, "window_ms": 8})),
        (rule("deny", match={"data_any": ["PII"]}), rule("deny", match={"data_any": ["PII.ssn"]})),
        (rule("deny", match={"text": {"any_of": ["a"]}}), rule("deny", match={"text": {"any_of": ["ab"]}})),
    ],
)  # fmt: skip
def test_loosening_is_critical_and_the_way_back_a_warning(strict, loose):
    assert severities(bundle(strict), bundle(loose)) == ["critical"]
    assert severities(bundle(loose), bundle(strict)) == ["warn"]


def test_scopes_that_cannot_be_compared_and_patterns_may_loosen():
    assert severities(
        bundle(rule("budget", scope="tool")), bundle(rule("budget", scope="agent"))
    ) == ["critical"]
    assert severities(bundle(rule("sequence")), bundle(rule("sequence", pattern=["a", "b"]))) == [
        "critical"
    ]


def test_a_window_instead_of_a_bucket_may_loosen():
    found = severities(bundle(rule("rate_limit")), bundle(rule("rate_limit", **WINDOW)))
    assert found[0] == "critical"


def test_constraints_change_what_people_read():
    assert severities(bundle(rule("deny")), bundle(rule("deny", constraints={"a": 1}))) == ["info"]


def test_a_later_end_loosens():
    early, late = "2030-01-01T00:00:00Z", "2031-01-01T00:00:00Z"
    assert severities(bundle(expires_at=early), bundle(expires_at=late)) == ["critical"]
    assert severities(bundle(expires_at=early), bundle()) == ["critical"]
    assert severities(bundle(), bundle(expires_at=late)) == ["warn"]
