"""First use with a real client: import, a call, its record, a refusal, restore."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.e2e.clients import Programs
from tests.e2e.desk import ORPHAN_S, SUB, Desk, is_closed, of_type, wait_until
from tests.e2e.dialects import ToolCall
from tests.e2e.fake_model import FakeModel
from tests.e2e.kinds import CLAUDE, Kind
from tests.requirements import requirement

Model = Callable[..., FakeModel]
STUBBORN = [sys.executable, str(Path(__file__).with_name("stubborn_server.py"))]
POLICY = """\
policy_id: house
version: "1"
mode: guardrails
defaults: {decision_on_error: BLOCK}
selectors: {}
rules:
  - rule_id: no-writes
    kind: deny
    enabled: true
    severity: critical
    match: {tool_name: {glob: ["write_*"]}}
    effect: {action: BLOCK, reason_code: READ_ONLY, message: this project is read-only}
  - rule_id: short-reads
    kind: deny
    enabled: true
    severity: warn
    match: {tool_name: {glob: ["read_text_file"]}, args: {numeric_range: {head: {min: 11}}}}
    effect:
      action: REJECT_WITH_HINT
      reason_code: TOO_MUCH
      message: at most ten lines are read at once
      hint_text: Ask for fewer lines.
      suggest: {head: {clamp_max: 10}}
"""


def git(desk: Desk, installed: Path) -> list[str]:
    """The command line of the real git server, on an empty repository."""
    subprocess.run(["git", "init", "--quiet", str(desk.project)], check=True, env=desk.env)
    return [str(installed / "mcp1/bin/mcp-server-git"), "--repository", str(desk.project)]


@requirement("001-1:first-call")
def test_a_session_is_recorded_as_one_run_and_the_configuration_comes_back(
    kind: Kind, desk: Desk, programs: Programs, installed: Path, fs: list[str], model: Model
) -> None:
    read = ToolCall("fs", "read_text_file", {"path": str(desk.project / "a.txt")})
    status = ToolCall("git", "git_status", {"repo_path": str(desk.project)})
    fake = model([read, status], hold_at=2)
    config = kind.write_config(desk, fake, {"fs": fs, "git": git(desk, installed)})
    before = config.read_bytes()
    desk.sub("import", kind.name, "--yes", "--no-hooks")
    assert config.stat().st_mode & 0o777 == (0o600 if kind is CLAUDE else 0o644)

    desk.env["SUB_AGENT_ID"] = "tester-bot"
    agent = kind.start(desk, programs, fake)
    assert fake.held.wait(60), agent.said
    assert {"node", "mcp-server-git"} <= {process.name for process in agent.look()}
    fake.release()
    assert agent.wait() == 0, agent.said
    agent.assert_nothing_is_left()

    first, second = fake.last_results()
    assert "hello from the file" in first
    assert "On branch" in second
    ((run_id, events),) = desk.runs().items()
    assert run_id == kind.session_of(agent.out)
    assert {(e["client"], e["agent_id"]) for e in events} == {(kind.name, "tester-bot")}
    ends = of_type(events, "tool_call_end")
    assert [(e["call"]["server_name"], e["status"]) for e in ends] == [("fs", "OK"), ("git", "OK")]
    assert is_closed(events)
    assert of_type(events, "run_end")[-1]["run"]["status"] == "SUCCEEDED"
    calls = desk.rows("calls", "--run", run_id, "--order", "oldest")
    assert [(c["server_name"], c["decision"], c["status"]) for c in calls] == [
        ("fs", "ALLOW", "OK"),
        ("git", "ALLOW", "OK"),
    ]
    (row,) = desk.rows("runs")
    assert (row["run_id"], row["client"], row["agent_id"]) == (run_id, kind.name, "tester-bot")

    desk.sub("restore", kind.name)
    if kind is CLAUDE:  # it writes its own file while it runs
        now, then = json.loads(config.read_bytes()), json.loads(before)
        assert {key: now[key] for key in then} == then
    else:
        assert config.read_bytes() == before


def test_the_model_receives_the_refusal_and_the_hint(
    kind: Kind, desk: Desk, programs: Programs, fs: list[str], model: Model
) -> None:
    path = str(desk.project / "a.txt")
    write = ToolCall("fs", "write_file", {"path": path, "content": "x"})
    read = ToolCall("fs", "read_text_file", {"path": path, "head": 500})
    mended = ToolCall("fs", "read_text_file", {"path": path, "head": 10})
    fake = model([write, read, mended])
    kind.write_config(desk, fake, {"fs": fs})
    desk.policy(POLICY)
    desk.sub("import", kind.name, "--yes", "--no-hooks")
    agent = kind.start(desk, programs, fake)
    assert agent.wait() == 0, agent.said

    blocked, hinted, read_back = fake.last_results()
    assert "this project is read-only" in blocked
    assert "at most ten lines are read at once" in hinted
    assert "Ask for fewer lines." in hinted
    assert '"head":10' in hinted
    assert "hello from the file" in read_back
    assert (desk.project / "a.txt").read_text() == "hello from the file\n"
    ((_, events),) = desk.runs().items()
    decisions = [e["decision"]["action"] for e in of_type(events, "tool_call_decision")]
    assert decisions == ["BLOCK", "REJECT_WITH_HINT", "ALLOW"]
    assert of_type(events, "run_end")[-1]["run"]["summary"]["calls_blocked"] == 2


def test_sub_run_names_the_run_for_every_client(
    kind: Kind, desk: Desk, programs: Programs, fs: list[str], model: Model
) -> None:
    """Codex clears its servers' environment: without `env_vars` this would be another run."""
    fake = model([ToolCall("fs", "read_text_file", {"path": str(desk.project / "a.txt")})])
    kind.write_config(desk, fake, {"fs": fs})
    desk.sub("import", kind.name, "--yes", "--no-hooks")
    agent = kind.start(desk, programs, fake, str(SUB), "run", "--agent-id", "fixer", "--")
    assert agent.wait() == 0, agent.said
    ((run_id, events),) = desk.runs().items()
    assert run_id != kind.session_of(agent.out)
    assert {(e["client"], e["agent_id"]) for e in events} == {(kind.name, "fixer")}
    assert len(of_type(events, "tool_call_end")) == 1
    assert is_closed(events)


@pytest.mark.parametrize("number", ["SIGTERM", "SIGINT", "SIGKILL"])
def test_a_killed_agent_leaves_no_process_and_a_closed_run(
    kind: Kind, number: str, desk: Desk, programs: Programs, fs: list[str], model: Model
) -> None:
    """One of the servers ignores every signal and the end of its input (no-orphans)."""
    fake = model([ToolCall("stubborn", "env", {"name": "HOME"})], hold_at=1)
    kind.write_config(desk, fake, {"fs": fs, "stubborn": STUBBORN})
    desk.sub("import", kind.name, "--yes", "--no-hooks")
    agent = kind.start(desk, programs, fake)
    assert fake.held.wait(60), agent.said
    names = [process.name for process in agent.look()]
    assert "node" in names
    assert len([name for name in names if "python" in name or name == "sub"]) >= 3
    agent.kill(signal.Signals[number])
    agent.assert_nothing_is_left()
    assert len(desk.runs()) == 1
    wait_until(lambda: all(map(is_closed, desk.runs().values())), ORPHAN_S, "the run is closed")


def test_a_bound_secret_reaches_the_server_and_is_in_no_file_of_the_client(
    kind: Kind, desk: Desk, programs: Programs, model: Model
) -> None:
    fake = model([ToolCall("stubborn", "env", {"name": "API_TOKEN"})])
    config = kind.write_config(desk, fake, {"stubborn": STUBBORN})
    text = config.read_text()
    if kind is CLAUDE:
        text = text.replace('"env": {}', '"env": {"API_TOKEN": "tok-54321-vwxyz"}')
    else:
        text += '[mcp_servers.stubborn.env]\nAPI_TOKEN = "tok-54321-vwxyz"\n'
    config.write_text(text)
    desk.sub("import", kind.name, "--yes", "--no-hooks", "--bind-secrets", "--source", "file")
    agent = kind.start(desk, programs, fake)
    assert agent.wait() == 0, agent.said
    # The model gets the secret from the server; the journal must not have it.
    assert "it is tok-54321-vwxyz" in fake.last_results()[0]
    kept = [p for p in desk.sub_home.rglob("*") if p.is_file() and b"tok-54321" in p.read_bytes()]
    assert [path.name for path in kept] == ["store.json"]
    assert "tok-54321" not in config.read_text()
    desk.sub("restore", kind.name)
    assert "tok-54321-vwxyz" in config.read_text()
