"""Approvals and the kill switch with a ledger that comes late, goes away and comes back."""

import json
import subprocess

import pytest
from tests.shim.household import SUB, wait_until
from tests.shim.test_approvals import asking, waiting
from tests.shim.test_shared_runs import leave

ENDED, REJECTED = -32084, -32083


@pytest.fixture
def ledgerd(household, person):
    yield lambda word: person("ledgerd", word)
    ran = subprocess.run([*SUB, "ledgerd", "stop"], capture_output=True, env=household.env())
    assert ran.returncode in (0, 1, 2)


def asked(person, what):
    return [json.loads(line) for line in person("query", what, "--json").splitlines()]


def test_nothing_of_it_needs_ledgerd_and_all_of_it_gets_there(household, person, ledgerd):
    household.write_policy(asking())
    shim = household.start().ready()
    assert shim.code("push") == REJECTED
    (row,) = waiting(person)
    ledgerd("start")
    person("approve", row["approval_id"])
    assert shim.code("push") == 0
    ledgerd("stop")
    assert shim.code("push") == REJECTED
    (second,) = waiting(person)
    person("deny", second["approval_id"], "--reason", "enough")
    person("kill", "run-1", "--reason", "late")
    assert shim.code("push") == ENDED
    ledgerd("start")
    leave(shim)

    def states():
        return {each["approval_id"]: each["state"] for each in asked(person, "approvals")}

    wanted = {row["approval_id"]: "used", second["approval_id"]: "denied"}
    wait_until(lambda: states() == wanted, f"{wanted} in the ledger, not {states()}")
    wait_until(lambda: [r["status"] for r in asked(person, "runs")] == ["TERMINATED"], "the end")
    assert "hold" in person("ledger", "verify")
