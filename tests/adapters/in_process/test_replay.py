"""Runs of the in-process door under `sub policy replay`: what a pack said stands as recorded."""

import json
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.adapters.in_process.conftest import Till
from tests.adapters.in_process.paying import AMOUNTS
from tests.adapters.in_process.test_door import approve
from tests.adapters.policies import budget, bundle, deny
from tests.requirements import requirement
from tests.shim.household import SUB


def replay(till: Till, policy: dict[str, Any]) -> list[dict[str, Any]]:
    """Replays every run of the home under a policy; returns the calls that would differ."""
    return [row for row in rows_of(till, policy) if "call_id" in row and row["change"] != "same"]


def rows_of(till: Till, policy: dict[str, Any]) -> list[dict[str, Any]]:
    till.close()
    file = till.home / "candidate.yaml"
    file.write_text(json.dumps(policy))
    command = [*SUB, "policy", "replay", "--policy", str(file), "--all", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode in (0, 1), done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@requirement("kernel:replayed")
@pytest.mark.parametrize("policies", [bundle(), bundle(budget(6)), bundle(deny("pay.in")), None])
def test_the_same_policies_decide_the_same(till: Till, policies: dict[str, Any] | None):
    if policies is not None:
        till.write_policy(policies)
    for name in AMOUNTS:
        till.execute(name)
    approve(till.home)
    for name in ("ESCALATE", "REQUEST_CONFIRMATION", "EXECUTE"):
        till.execute(name)
    till.execute(1, "nan", payload={"amount": float("nan")})
    till.execute("REFUSE", "legacy", legacy=lambda: True)
    till.execute("EXECUTE", "legacy", legacy=lambda: False)
    assert replay(till, policies or bundle(mode="observe")) == []


@requirement("kernel:replayed")
def test_shadow_and_a_ledger_out_of_reach_stand(till: Till, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SUB_KERNEL_SHADOW", "*")
    till.execute("REFUSE", legacy=lambda: True)
    till.execute("EXECUTE", legacy=lambda: False)
    ledger: Path = till.home / "state" / "executions.db"
    ledger.rename(till.home / "gone")
    assert till.execute("EXECUTE", "b").reason_code == "EXECUTIONS_UNAVAILABLE"
    assert replay(till, bundle()) == []


def test_another_policy_adds_to_what_the_pack_said(till: Till):
    till.execute("EXECUTE")
    till.execute("DEFER")
    till.execute("REFUSE")
    found = replay(till, bundle(deny("pay.out")))
    assert [(row["was"]["action"], row["now"]["action"]) for row in found] == [
        ("ALLOW", "BLOCK"),
        ("REJECT_WITH_HINT", "BLOCK"),
    ]


@requirement("kernel:replayed")
def test_calls_of_several_threads_are_replayed_in_their_order(till: Till):
    policy = bundle(budget(100))
    till.write_policy(policy)
    till.open(executions="off")
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda number: till.execute(1, f"n-{number}"), range(200)))
    till.close()
    (*_, summary) = rows_of(till, policy)
    assert summary["summary"]["unrecorded"] == 0
    found = replay(till, bundle(budget(50)))
    assert [row["now"]["reason_code"] for row in found] == ["BUDGET_EXCEEDED"] * 50
