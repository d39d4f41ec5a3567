"""Claude Code with a server of MCP 2026-07-28: no handshake, and everything passes unchanged.

Claude Code gives a server three seconds to answer `server/discover`, then treats it as an old one. A
Python server on a busy machine may need longer to start, so it is started before the client.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.e2e.clients import Programs
from tests.e2e.desk import Desk, is_closed, of_type
from tests.e2e.dialects import ToolCall
from tests.e2e.fake_model import FakeModel
from tests.e2e.kinds import CLAUDE

HERE = Path(__file__).parent


@pytest.fixture
def modern(desk: Desk, installed: Path) -> Iterator[list[str]]:
    """The command line of a recorder in front of a running server."""
    there, back = desk.home / "there", desk.home / "back"
    for fifo in (there, back):
        os.mkfifo(fifo)
    # Opened for reading and writing, so that opening does not block.
    ends = [os.open(fifo, os.O_RDWR) for fifo in (there, back)]
    server = subprocess.Popen(
        [str(installed / "mcp2/bin/python"), str(HERE / "modern_server.py")],
        stdin=ends[0],
        stdout=ends[1],
        stderr=subprocess.PIPE,
    )
    assert server.stderr is not None
    assert server.stderr.readline() == b"ready\n"
    yield [
        sys.executable,
        str(HERE / "recorder.py"),
        str(desk.home / "seen.jsonl"),
        str(there),
        str(back),
    ]
    server.kill()
    server.wait()
    server.stderr.close()
    for end in ends:
        os.close(end)


def test_the_stateless_protocol_passes_untouched(
    desk: Desk, programs: Programs, modern: list[str], model: Callable[..., FakeModel]
) -> None:
    fake = model([ToolCall("modern", "add", {"a": 40, "b": 2})], hold_at=1)
    CLAUDE.write_config(desk, fake, {"modern": modern})
    desk.sub("import", "claude", "--yes", "--no-hooks")
    agent = CLAUDE.start(desk, programs, fake)
    assert fake.held.wait(60), agent.said
    agent.look()
    fake.release()
    assert agent.wait() == 0, agent.said
    agent.assert_nothing_is_left()

    seen = (desk.home / "seen.jsonl").read_text()
    messages = [json.loads(line) for line in seen.splitlines()]
    methods = [message["method"] for message in messages]
    assert methods[0] == "server/discover"
    assert "initialize" not in methods
    assert methods.index("subscriptions/listen") < methods.index("tools/call")
    (call,) = [m for m in messages if m["method"] == "tools/call"]
    assert call["params"]["arguments"] == {"a": 40, "b": 2}
    meta = call["params"]["_meta"]
    assert meta["io.modelcontextprotocol/protocolVersion"] == "2026-07-28"
    assert meta["io.modelcontextprotocol/clientInfo"]["name"] == "claude-code"
    assert "42" in fake.last_results()[0]
    ((run_id, events),) = desk.runs().items()
    assert run_id == CLAUDE.session_of(agent.out)
    # The subscription stays open for the whole session: it is not a call and has no end.
    assert [e["status"] for e in of_type(events, "tool_call_end")] == ["OK"]
    assert is_closed(events)
