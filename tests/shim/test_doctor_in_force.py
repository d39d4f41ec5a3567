"""`sub doctor` shows the policies in force for living runs, not only the files."""

import json
import subprocess

import pytest
from tests.shim.household import SUB, deny, policy, wait_until
from tests.shim.test_shared_runs import leave


@pytest.fixture
def checks(household):
    def look(name):
        ran = subprocess.run(
            [*SUB, "doctor", "--json"], capture_output=True, env=household.env(), cwd=household.cwd
        )
        found = json.loads(ran.stdout)["checks"]
        return [check for check in found if check["name"] == name]

    return look


def test_the_policy_that_decides_is_named_even_where_the_file_is_wrong(household, checks):
    household.write_policy(policy(deny("rm")))
    shim = household.start().ready()
    assert shim.code("rm") == -32081
    loaded = household.wait_event("policy_loaded", load__ok=True)["policy"]
    (check,) = checks("in force")
    assert check["ok"]
    assert "run run-1" in check["detail"]
    assert loaded["policy_hash"][:8] in check["detail"]

    household.write_policy("rules: [")
    household.wait_event("policy_loaded", load__ok=False)
    assert shim.code("rm") == -32081, "the last good one stays"
    (check,) = checks("in force")
    assert not check["ok"]
    assert loaded["policy_hash"][:8] in check["detail"]
    assert "was refused" in check["detail"]

    household.write_policy(policy(deny("mv")))
    wait_until(lambda: shim.code("mv") == -32081, "the mended policy")
    (check,) = checks("in force")
    assert check["ok"]
    leave(shim)
    assert checks("in force") == []


def test_what_is_stopped_is_told(household, person, checks):
    (check,) = checks("kill switch")
    assert check["ok"]
    person("kill", "--tool", "git/push")
    (check,) = checks("kill switch")
    assert check["ok"]
    assert "git/push" in check["detail"]
    person("kill", "--all")
    (check,) = checks("kill switch")
    assert not check["ok"]
