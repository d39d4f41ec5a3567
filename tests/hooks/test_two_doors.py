"""A call of an MCP server passes the hook and then the server's shim: one call, one record."""

import pytest
from tests.hooks.shapes import SHAPES
from tests.processes import wait_until
from tests.shim.household import budget, policy

META = {
    "claude": lambda agent, call: {"claudecode/toolUseId": call},
    "codex": lambda agent, call: {
        "callId": call,
        "x-codex-turn-metadata": {"session_id": agent.session},
    },
}
INTRODUCED = {"codex": "codex-mcp-client"}
WRAPPED = """\
[mcp_servers.echo]
command = "sub"
args = ["shim", "stdio", "--server", "echo", "--", "x"]
"""


def wire_call(agent, server, args, call):
    """Calls the tool as the client does after its hook: with its own id, where it sends one."""
    meta = META[agent.client](agent, call) if agent.client in META else None
    return server.call("echo", args, meta)


def members(client):
    """Returns what this client tells about the server besides the tool's name."""
    if client == "claude":
        return {"mcp_server": {"name": "echo"}}
    return (
        {"mcp_context": {"server_name": "echo", "tool_name": "echo"}} if client == "gemini" else {}
    )


@pytest.fixture
def configured(household, monkeypatch):
    """Configures the server for clients in whose events its name is not set apart."""
    home = household.tmp_path / "person"
    entries = {
        ".copilot/mcp-config.json": '{"mcpServers": {"echo": {"type": "local", "command": "x"}}}',
        ".config/opencode/opencode.json": '{"mcp": {"echo": {"type": "local", "command": ["x"]}}}',
    }
    for name, text in entries.items():
        path = home / name
        path.parent.mkdir(parents=True)
        path.write_text(text)
    return {"HOME": str(home), "XDG_CONFIG_HOME": str(home / ".config")}


@pytest.mark.parametrize("client", SHAPES)
def test_one_call_one_record(start, household, person, configured, client):
    household.write_policy(policy(budget(3)))
    agent = start(client, **configured)
    server = agent.start_server().ready(INTRODUCED.get(client))
    name = agent.shape.mcp.format("echo", "echo")
    for number in range(3):
        args, call = {"n": number}, f"t{number}"
        assert agent.before(name, args, call, **members(client)).is_nothing
        assert "result" in wire_call(agent, server, args, call)
        agent.after(name, args, call, **members(client))
    assert not agent.before(name, {"n": 3}, "t3", **members(client)).is_nothing
    server.close()
    agent.end()
    household.wait_event("run_end")
    calls = [event["call"] for event in household.events("tool_call_start")]
    assert {(call["server_name"], call["tool_name"]) for call in calls} == {("echo", "echo")}
    assert {call["transport"] for call in calls} == {"agent_hook"}
    assert len(calls) == 4
    assert len({event["run_id"] for event in household.events()}) == 1, "hooks and shims: one run"
    ends = [event["call"]["call_id"] for event in household.events("tool_call_end")]
    assert sorted(ends) == sorted(call["call_id"] for call in calls)
    assert len(household.executed()) == 3
    person("query", "runs")
    person("ledger", "verify")
    own = str(household.home / "policy.yaml")
    person("policy", "replay", "--policy", own, "--fail-on", "any")
    person("ledgerd", "stop")


def test_a_call_that_no_hook_saw_is_decided_by_the_shim(agent, household):
    household.write_policy(policy(budget(1)))
    server = agent.start_server().ready()
    assert server.code("echo", {"n": 1}) == 0
    assert not agent.before("mcp__echo__echo", {"n": 2}, mcp_server={"name": "echo"}).is_nothing


def test_other_arguments_are_decided_anew(agent, household):
    household.write_policy(policy(budget(1)))
    server = agent.start_server().ready()
    assert agent.before("mcp__echo__echo", {"n": 1}, mcp_server={"name": "echo"}).is_nothing
    assert server.code("echo", {"n": 2}, {"claudecode/toolUseId": "t1"}) == -32081
    assert server.code("echo", {"n": 1}, {"claudecode/toolUseId": "t1"}) == 0
    assert server.code("echo", {"n": 1}, {"claudecode/toolUseId": "t1"}) == -32081, "good for one"


def test_a_name_that_codex_spells_otherwise(start, household):
    """Codex writes `get-sum` as `get_sum`."""
    household.write_policy(policy(budget(1)))
    person = household.tmp_path / "person"
    (person / ".codex").mkdir(parents=True)
    (person / ".codex" / "config.toml").write_text(WRAPPED)
    agent = start("codex", HOME=str(person))
    server = agent.start_server().ready("codex-mcp-client")
    server.answer(server.send("tools/list"))
    known = household.home / "state" / "tools" / "echo"
    wait_until(known.exists, "the shim to know the tools")
    assert agent.before("mcp__echo__get_sum", {"n": 1}, "t1").is_nothing
    meta = META["codex"](agent, "t1")
    assert server.code("get-sum", {"n": 1}, meta) == 0
    names = {event["call"]["tool_name"] for event in household.events("tool_call_start")}
    assert names == {"get-sum"}
