"""`sub policy init` after a real agent's run: from recorded tools to a policy in force."""

import sys

import yaml
from tests.shim.household import wait_until
from tests.shim.test_shared_runs import leave

SERVER = """
import json, sys
TOOLS = [
    {"name": "lookup", "annotations": {"readOnlyHint": True}},
    {"name": "tidy", "annotations": {"readOnlyHint": False, "destructiveHint": True}},
    {"name": "write_file"},
]
for line in sys.stdin:
    asked = json.loads(line)
    result = {"tools": TOOLS} if asked["method"] == "tools/list" else {"content": []}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""
REJECTED = -32083


def test_a_recorded_run_becomes_a_policy_that_is_in_force_at_once(household, person):
    shim = household.start(upstream=[sys.executable, "-c", SERVER]).ready()
    shim.answer(shim.send("tools/list"))
    household.wait_event("tools_listed")
    for number in range(9):
        assert shim.code("lookup", {"n": number}) == 0
    assert shim.code("drop_all") == 0

    said = person("policy", "init", all_output=True)

    path = household.home / "policy.yaml"
    assert f"wrote `{path}`: 6 rules, from 4 recorded tools, 3 of which change something" in said
    assert f"sub policy replay --policy {path}" in said
    assert f"sub policy explain --policy {path} --server S --tool T" in said
    assert "sub policy test CASES" in said
    text = path.read_text()
    (tag, *_) = yaml.safe_load(text)["rules"]
    assert tag["match"]["tool_name"]["glob"] == ["drop_all", "tidy", "write_file"]
    assert "  #     tool_name: {glob: [drop_all, tidy]}" in text
    assert "# Calls of one run. The largest recorded run made 10 calls." in text
    assert "1 file: no problems" in person("policy", "lint", "--strict", str(path), all_output=True)
    assert "10 calls" in person("policy", "replay", "--policy", str(path), all_output=True)
    wait_until(
        lambda: shim.code("lookup", {"again": True}) == REJECTED, "the loop is stopped by a hint"
    )
    assert shim.code("lookup", {"again": False}) == 0
    leave(shim)
