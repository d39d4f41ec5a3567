"""Many agents at once: each has its own run, and no process is left. `E2E_AGENTS` sets their number."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.e2e.clients import Programs
from tests.e2e.desk import ORPHAN_S, Desk, is_closed, of_type, wait_until
from tests.e2e.dialects import ToolCall
from tests.e2e.fake_model import FakeModel
from tests.e2e.kinds import KINDS

AGENTS = int(os.environ.get("E2E_AGENTS", "20"))


@pytest.mark.timeout(240)
def test_many_agents_at_once(
    desk: Desk, programs: Programs, installed: Path, model: Callable[..., FakeModel]
) -> None:
    (desk.project / "a.txt").write_text("hello")
    fs = [str(installed / "node/node_modules/.bin/mcp-server-filesystem"), str(desk.project)]
    fake = model([ToolCall("fs", "read_text_file", {"path": str(desk.project / "a.txt")})] * 3)
    for kind in KINDS.values():
        kind.write_config(desk, fake, {"fs": fs})
    desk.sub("import", "--yes", "--no-hooks")
    kinds = [list(KINDS.values())[number % 2] for number in range(AGENTS)]
    agents = [kind.start(desk, programs, fake) for kind in kinds]
    for agent in agents:
        assert agent.wait() == 0, agent.said
    runs = desk.runs()
    assert set(runs) == {k.session_of(a.out) for k, a in zip(kinds, agents, strict=True)}
    assert sorted(events[0]["client"] for events in runs.values()) == sorted(k.name for k in kinds)
    for events in runs.values():
        assert [e["status"] for e in of_type(events, "tool_call_end")] == ["OK"] * 3
    wait_until(lambda: all(map(is_closed, desk.runs().values())), ORPHAN_S, "all runs are closed")
