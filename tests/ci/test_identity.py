"""A policy for a branch of a repository applies in the jobs of every CI system, with a real shim."""

import json
from pathlib import Path

import pytest
import yaml
from tests.shim.household import Household, deny, policy

from subluminal.trust.identity.ci_systems import CI_SYSTEMS

CASES = list(
    yaml.safe_load_all((Path(__file__).parents[1] / "cases" / "workload" / "ci.yaml").read_text())
)
BLOCKED = -32081
FORKS = [case for case in CASES if ":" in case["want"].get("branch", "")]


@pytest.fixture
def household(tmp_path, own_home, subreaper):
    home = Household(tmp_path, own_home)
    home.hurry()
    yield home
    home.clean()


def only_for(repo, branch):
    """Denies `rm`, in one branch of one repository, in CI only."""
    selectors = json.dumps({"env": ["ci"], "workload": {"repo": [repo], "branch": [branch]}})
    return policy(deny("rm")).replace("selectors: {}", f"selectors: {selectors}")


def environment(household, case):
    environ = dict(case["environ"])
    if "event" in case:
        event = household.tmp_path / "event.json"
        event.write_text(json.dumps(case["event"]))
        environ["GITHUB_EVENT_PATH"] = str(event)
    return environ


def first_case(provider):
    return next(case for case in CASES if case["want"]["ci_provider"] == provider)


@pytest.mark.parametrize("provider", [system.provider for system in CI_SYSTEMS])
def test_a_selector_matches(household, provider):
    case = first_case(provider)
    household.write_policy(only_for(case["want"]["repo"], case["want"]["branch"]))
    shim = household.start(**environment(household, case)).ready()
    assert shim.code("rm") == BLOCKED
    start = household.wait_event("tool_call_start")
    assert {name: start["workload"][name] for name in case["want"]} == case["want"]


@pytest.mark.parametrize("case", FORKS, ids=lambda case: case["case"])
def test_the_branch_of_a_fork_is_not_ours(household, case):
    """A policy for `main` must not apply to a fork that has a branch of that name."""
    branch = case["want"]["branch"].rpartition(":")[2]
    household.write_policy(only_for(case["want"]["repo"], branch))
    shim = household.start(**environment(household, case)).ready()
    assert shim.code("rm") == 0
    decision = household.wait_event("tool_call_decision")["decision"]
    assert decision["explain"]["reason_code"] == "POLICY_NOT_APPLICABLE"
