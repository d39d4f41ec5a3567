"""What changed between two bundles, and whether it loosens (issue 3: diff)."""

import pytest
from tests.policy.bundles import bundle, plain, rule, text

from subluminal.policy.diff.diffing import diff
from subluminal.policy.loading import parse_bundle


def told(old, new) -> list[tuple[str, str]]:
    return [(str(change.severity), change.summary) for change in diff(old, new)]


def one(old, new):
    (change,) = diff(old, new)
    return change


def test_equal_meaning_is_not_a_change():
    """Comments, key order, written-out defaults and the order of OR lists mean nothing."""
    old = parse_bundle(
        b"""
policy_id: p
version: "1"
mode: guardrails
defaults: {decision_on_error: BLOCK}
selectors: {env: [ci, dev], workload: {repo: [b, a]}}
rules:
  - {rule_id: r, kind: deny, enabled: true, match: {tool_name: {glob: [a, b]}, risk_class: [x, y]}, severity: warn, effect: {action: BLOCK, reason_code: NO, message: m}}
""",
        "old.yaml",
    )
    new = parse_bundle(
        b"""# a comment
version: '1'
policy_id: "p"
selectors: {workload: {repo: [a, b, a], labels: {}}, env: [dev, ci], agent_id: []}
mode: guardrails
defaults: {fail_open_read_tools: false, decision_on_error: BLOCK}
rules:
  - severity: warn
    rule_id: r
    kind: deny
    enabled: true
    match: {risk_class: [y, x], tool_name: {regex: [], glob: [b, a]}}
    effect: {reason_code: NO, action: BLOCK, message: m, suggest: {}}
""",
        "new.yaml",
    )
    assert diff(old.bundle, new.bundle) == []


def test_a_bundle_does_not_differ_from_itself():
    every = bundle(*[rule(kind) for kind in ("allow", "deny", "budget", "rate_limit", "tag")])
    assert diff(every, parse_bundle(text(*plain(*[])["rules"]), "p").bundle) != []
    assert diff(every, every) == []


@pytest.mark.parametrize(
    ("changes", "severity", "summary"),
    [
        ({"policy_id": "q"}, "warn", "policy_id changed from `p` to `q`"),
        ({"version": "2"}, "info", "version changed from `1` to `2`"),
        ({"description": "x"}, "info", "description changed from `null` to `x`"),
        ({"owner": "x"}, "info", "owner changed from `null` to `x`"),
        ({"created_at": "x"}, "info", "created_at changed from `null` to `x`"),
        ({"mode": "observe"}, "critical", "mode changed from `guardrails` to `observe`"),
        ({"mode": "control"}, "warn", "mode changed from `guardrails` to `control`"),
        ({"defaults": {"decision_on_error": "ALLOW"}}, "critical", "decision_on_error changed from `BLOCK` to `ALLOW`"),
        ({"defaults": {"decision_on_error": "BLOCK", "fail_open_read_tools": True}}, "critical", "fail_open_read_tools changed from `false` to `true`"),
    ],
)  # fmt: skip
def test_the_head_of_a_policy(changes, severity, summary):
    assert told(bundle(), bundle(**changes)) == [(severity, summary)]


@pytest.mark.parametrize(
    ("changes"),
    [
        {"mode": "observe"},
        {"defaults": {"decision_on_error": "ALLOW"}},
        {"defaults": {"decision_on_error": "BLOCK", "fail_open_read_tools": True}},
    ],
)
def test_the_way_back_tightens(changes):
    assert one(bundle(**changes), bundle()).severity == "warn"


@pytest.mark.parametrize(
    ("old", "new", "severity"),
    [
        ({}, {"env": ["ci"]}, "critical"),
        ({"env": ["ci"]}, {}, "warn"),
        ({"env": ["ci"]}, {"env": ["ci", "dev"]}, "warn"),
        ({"env": ["ci", "dev"]}, {"env": ["dev"]}, "critical"),
        ({"env": ["ci"]}, {"env": ["dev"]}, "critical"),
        ({"client": ["claude"]}, {"client": ["codex"]}, "critical"),
        ({"agent_id": ["a"]}, {"agent_id": ["a", "b"]}, "warn"),
        ({"workload": {"branch": ["a"]}}, {}, "warn"),
        ({}, {"workload": {"labels": {"a": "b"}}}, "critical"),
        ({"workload": {"labels": {"a": "b", "c": "d"}}}, {"workload": {"labels": {"a": "b"}}}, "warn"),
        ({"workload": {"labels": {"a": "b"}}}, {"workload": {"labels": {"a": "c"}}}, "critical"),
    ],
)  # fmt: skip
def test_selectors_that_drop_someone_loosen(old, new, severity):
    change = one(bundle(selectors=old), bundle(selectors=new))
    assert (change.kind, change.severity) == ("selectors", severity)


def test_selectors_say_what_they_were():
    assert one(bundle(), bundle(selectors={"env": ["ci"]})).summary == (
        'selectors.env changed from all to `["ci"]`: the policy no longer applies to some runs'
    )


def test_the_most_serious_change_comes_first():
    changes = diff(bundle(rule("deny")), bundle(version="2", policy_id="q"))
    assert [change.severity for change in changes] == ["critical", "warn", "info"]
