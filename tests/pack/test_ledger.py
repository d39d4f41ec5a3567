"""What the spec (seed 001, section 5) wants the ledger to have of a call, asked with `sub query`."""

import json
from pathlib import Path

from tests.pack.commands import sub
from tests.pack.story import IDENTITY, RUN, STEPS, Story
from tests.requirements import requirement


@requirement("001-5:call-row")
def test_the_ledger_has_every_field_of_a_call(story: Story, home: Path) -> None:
    assert sub(home, "ingest", "-", stdin=b"\n".join(story.lines)).returncode == 0
    ran = sub(home, "query", "calls", "--json", "--limit", "100")
    rows = {row["call_id"]: row for row in map(json.loads, ran.stdout.splitlines())}
    assert len(rows) == len(STEPS)
    for name, step in STEPS.items():
        start = story.call(name, "tool_call_start")["call"]
        decision = story.call(name, "tool_call_decision")["decision"]
        end = story.call(name, "tool_call_end")
        row = rows[start["call_id"]]
        assert row["run_id"] == RUN
        assert (row["server_name"], row["tool_name"]) == ("probe", step.tool)
        assert row["args_hash"] == start["args_hash"]
        assert (row["decision"], row["rule_id"]) == (decision["action"], decision["rule_id"])
        assert (row["status"], row["latency_ms"]) == (end["status"], end["latency_ms"])
        assert (row["bytes_in"], row["bytes_out"]) == (start["bytes_in"], end["bytes_out"])
        cut = start["preview"]["truncated"] or end["preview"]["truncated"]
        assert bool(row["preview_truncated"]) is cut
    (run,) = map(json.loads, sub(home, "query", "runs", "--json").stdout.splitlines())
    assert run["agent_id"] == IDENTITY["SUB_AGENT_ID"]
    assert run["client"] == IDENTITY["SUB_CLIENT"]
    assert run["status"] == "TERMINATED"
