"""Lines with which an agent may try to get around the example policy (`sly_lines.txt`)."""

from pathlib import Path

import pytest

from subluminal.core.targets.reading import targets_of
from subluminal.policy.compiling import compile_bundle
from subluminal.policy.loading import parse_bundle
from subluminal.policy.targets import targets_test

_HERE = Path(__file__).parent
EXAMPLE = _HERE.parents[2] / "examples" / "policies" / "agent-shell.yaml"
LINES = (_HERE / "sly_lines.txt").read_text().splitlines()


@pytest.fixture(scope="module")
def rules():
    snapshot = compile_bundle(parse_bundle(EXAMPLE.read_bytes(), EXAMPLE.name).bundle)
    return {
        rule["rule_id"]: targets_test(rule["match"]["targets"], needs_all=False)
        for rule in snapshot.data["rules"]
    }


def refused_by(line, rules):
    found = targets_of("@claude", "Bash", {"command": line}, cwd="/code/repo")
    return next((name for name, holds in rules.items() if holds(found)), None)


@pytest.mark.parametrize("line", LINES)
def test_the_example_policy_refuses_sly_lines(line, rules, monkeypatch):
    """Issue 17: what runs another program or writes elsewhere is a target, or the call is opaque."""
    monkeypatch.setenv("HOME", "/home/me")
    assert refused_by(line, rules) is not None
