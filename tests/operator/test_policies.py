"""Policies as services: what the web page and `sub policy` both call."""

import pytest
from tests.shim.household import deny, policy

from subluminal.config.places import places
from subluminal.contracts.vocabulary import Severity
from subluminal.errors import InvalidInput, SubluminalError
from subluminal.operator.policies import (
    accept_policy,
    compare_policies,
    in_mode,
    is_snapshot,
    lint_policy,
    parse_policy,
    read_file,
)

TEXT = policy(deny("rm")).encode()


def test_a_snapshot_is_told_from_a_bundle_and_means_the_same():
    bundle = parse_policy(TEXT, "p.yaml")
    compiled = bundle.snapshot.to_json()
    assert (is_snapshot(TEXT), is_snapshot(compiled)) == (False, True)
    snapshot = parse_policy(compiled, "p.json")
    assert snapshot.loaded is None
    assert snapshot.snapshot.policy_hash == bundle.snapshot.policy_hash
    assert compare_policies(bundle, snapshot).changes == []


def test_a_broken_snapshot_is_a_problem_of_its_file():
    compiled = parse_policy(TEXT, "p.yaml").snapshot.to_json()
    with pytest.raises(InvalidInput, match=r"p\.json"):
        parse_policy(compiled.replace(b"no-rm", b"no-mv"), "p.json")


def test_lint_returns_problems_and_raises_none():
    assert lint_policy(TEXT, "p.yaml") == []
    assert {problem.severity for problem in lint_policy(b"rules: 7\n", "p.yaml")} == {"error"}


def test_a_removed_deny_is_critical():
    report = compare_policies(parse_policy(TEXT, "old"), parse_policy(policy().encode(), "new"))
    assert report.severity is Severity.CRITICAL


def test_a_policy_in_another_mode():
    snapshot = parse_policy(TEXT, "p").snapshot
    assert in_mode(snapshot, None) is snapshot
    assert in_mode(snapshot, "observe").data["mode"] == "observe"


def test_a_missing_file_is_told_with_a_similar_name(tmp_path):
    (tmp_path / "policy.yaml").write_text("")
    with pytest.raises(SubluminalError) as raised:
        read_file(str(tmp_path / "polcy.yaml"))
    assert raised.value.hint == "did you mean `policy.yaml`?"


def test_accepting_needs_a_policy(tmp_path, own_home):
    with pytest.raises(SubluminalError, match="no repository policy here"):
        accept_policy(places({"SUB_HOME": str(own_home)}), str(tmp_path))
