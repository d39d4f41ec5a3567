"""The spec's north star (seed 001, section 1): import, run the client, see the call."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from tests.adapters.wire import upstream
from tests.pack.commands import sub
from tests.requirements import requirement

PATIENCE_S = 60


@requirement("001-1:first-call")
def test_the_first_call_after_an_import_is_on_record(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    config = tmp_path / ".claude.json"
    command, *args = upstream("echoer")
    config.write_text(json.dumps({"mcpServers": {"probe": {"command": command, "args": args}}}))
    before = config.read_bytes()
    imported = sub(home, "import", "claude", "--yes")
    assert imported.returncode == 0, imported.stderr
    assert b"sub restore claude" in imported.stdout + imported.stderr
    _call_as_a_client_does(config)
    (row,) = map(json.loads, sub(home, "query", "calls", "--json").stdout.splitlines())
    assert (row["server_name"], row["tool_name"], row["status"]) == ("probe", "read", "OK")
    assert sub(home, "restore", "claude").returncode == 0
    assert config.read_bytes() == before


def _call_as_a_client_does(config: Path) -> None:
    """Starts the server by its entry, calls a tool, and closes."""
    entry = json.loads(config.read_text())["mcpServers"]["probe"]
    meta = {"answer": {"result": {"content": []}}}
    call = {"name": "read", "arguments": {}, "_meta": meta}
    line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call})
    ran = subprocess.run(
        [entry["command"], *entry["args"]],
        input=line.encode() + b"\n",
        capture_output=True,
        env={**os.environ, **entry.get("env", {})},
        timeout=PATIENCE_S,
        check=True,
    )
    assert json.loads(ran.stdout)["result"] == {"content": []}
