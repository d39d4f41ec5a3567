"""Events that somebody shaped so that a call runs which the policy refuses."""

import os
import socket
import subprocess
import sys

import pytest
from tests.hooks.test_two_doors import WRAPPED
from tests.shim.household import deny, policy

from subluminal.adapters.agent_hooks.clients.description import speller
from subluminal.config.places import places
from subluminal.core.tool_names import exact_name, remember_tools
from subluminal.system import LINUX


def starts(household):
    return [event["call"] for event in household.events("tool_call_start")]


RESERVED = {
    "claude": ("mcp___claude__Read", {"mcp_server": {"name": "@claude"}}),
    "gemini": (
        "mcp_@gemini_read_file",
        {"mcp_context": {"server_name": "@gemini", "tool_name": "read_file"}},
    ),
}


@pytest.mark.parametrize("client", RESERVED)
def test_a_server_cannot_pass_for_the_client_itself(start, household, client):
    name, members = RESERVED[client]
    assert not start(client).before(name, **members).is_nothing


@pytest.mark.parametrize("text", ['{"session_id":"s1"}', '{"session_id":"s1","hook_event_name":7}'])
def test_an_event_without_a_name_is_not_read_as_harmless(agent, household, text):
    household.write_policy(policy(deny("rm")))
    assert not agent.send(text)().is_nothing


NO_SECRETS = """\
policy_id: paths
version: "1"
mode: guardrails
defaults: {decision_on_error: BLOCK}
rules:
  - rule_id: secret
    kind: deny
    match: {targets: {path: {glob: ["**/secret"]}}}
    effect: {action: BLOCK, reason_code: SECRET, message: no}
  - rule_id: opaque
    kind: deny
    match: {targets: {opaque: true}}
    effect: {action: BLOCK, reason_code: OPAQUE, message: unclear}
"""


@pytest.mark.parametrize("cwd", ["/a\0b", "a/b", "", 7])
def test_a_directory_that_cannot_be(agent, household, cwd):
    household.write_policy(NO_SECRETS)
    assert not agent.before("Bash", {"command": "cat secret"}, cwd=cwd).is_nothing
    assert not (household.home / "reports").exists()


def test_an_argument_that_is_no_directory(start, household):
    household.write_policy(NO_SECRETS)
    args = {"command": "cat *", "workdir": "/a\0b"}
    assert not start("codex").before("Bash", args).is_nothing
    assert not (household.home / "reports").exists()


def test_an_argument_that_looks_like_a_session(start, household):
    agent = start("copilot")
    for number in range(3):
        agent.before("bash", {"session_id": f"x{number}"})
    assert len(agent.hook_shims()) == 1


def test_a_refusal_that_cannot_be_written_is_no_yes(agent, household):
    household.write_policy(policy(deny("Bash")))
    agent.sub = ["sh", "-c", 'exec "$@" > /dev/full', "sh", *agent.sub]
    assert agent.before().code == 2


def test_each_hook_decides_by_the_policy_that_it_names(agent, household):
    household.write_policy(policy(deny("rm")))
    named = household.tmp_path / "named.yaml"
    (household.home / "policy.yaml").rename(named)
    assert agent.before("rm").is_nothing
    agent.words = ("--policy", str(named))
    assert not agent.before("rm").is_nothing, "another hook's yes to the same call is not enough"


SPELLED_ALIKE = """\
[mcp_servers."my-db"]
command = "x"
[mcp_servers."my_db"]
command = "y"
"""


def test_servers_that_the_client_spells_alike(start, household):
    household.write_policy(policy(deny("drop")).replace("tool_name", "server_name"))
    person = household.tmp_path / "person"
    (person / ".codex").mkdir(parents=True)
    (person / ".codex" / "config.toml").write_text(SPELLED_ALIKE)
    assert not start("codex", HOME=str(person)).before("mcp__my_db__drop").is_nothing


@pytest.mark.parametrize(
    ("names", "configuration"),
    [
        (["get_sum", "get-sum"], WRAPPED),
        (["get-sum"], '[mcp_servers.echo]\nurl = "https://example.com/mcp"\n'),
    ],
    ids=["of one server", "of another server with this name"],
)
def test_tools_that_the_client_spells_alike(start, household, names, configuration):
    for name in names:
        remember_tools(places({}, str(household.home)), "echo", [name])
    household.write_policy(policy(deny("get_sum")))
    person = household.tmp_path / "person"
    (person / ".codex").mkdir(parents=True)
    (person / ".codex" / "config.toml").write_text(configuration)
    assert not start("codex", HOME=str(person)).before("mcp__echo__get_sum").is_nothing


def test_a_server_with_more_names_than_can_be_kept(household):
    where = places({}, str(household.home))
    remember_tools(where, "echo", ["get-sum"])
    remember_tools(where, "echo", ["x" * 300_000])
    (path,) = (household.home / "state" / "tools").iterdir()
    assert path.stat().st_size < 1_000
    assert exact_name(where, "echo", "get_sum", speller("_", "_")) == "get_sum"


def test_silent_connections_do_not_hold_others_up(agent, household):
    agent.before(call="t1")
    (path,) = (household.home / "state" / "hooks").glob("*.sock")
    silent = [socket.socket(socket.AF_UNIX) for _ in range(100)]
    for each in silent:
        each.connect(str(path))
    said = agent.before(call="t2")
    for each in silent:
        each.close()
    assert said.err == ""
    assert len(starts(household)) == 2


def test_a_command_that_is_padded_beyond_inspection(agent, household):
    household.write_policy(NO_SECRETS)
    padded = "cat secret #" + "x" * 3_000_000
    assert not agent.before("Bash", {"command": padded}).is_nothing


@pytest.mark.parametrize("name", ["a\0b", "../../x", "x" * 200, "", "mcp__", "mcp____b"])
def test_odd_names_of_tools_and_sessions(start, household, name):
    household.write_policy(policy(deny("rm")))
    agent = start("codex", session=name)
    assert agent.before(name, call="t1").is_nothing
    assert not agent.before("rm", call="t2").is_nothing
    agent.after(name, call="t1")
    agent.end()
    household.wait_event("run_end")
    assert sorted(household.ends(), key=str) == [("ERROR", "policy_block"), ("OK", None)]
    assert not (household.home / "reports").exists()


def test_the_text_of_an_error_is_cut(agent, household):
    agent.before()
    told = {"tool_name": "Bash", "tool_input": {}, "tool_use_id": "t1"}
    agent.event("PostToolUseFailure", **told, error="x" * 5_000_000)()
    agent.stop()
    (end,) = household.events("tool_call_end")
    assert len(end["error"]["message"]) < 10_000


def test_the_socket_is_for_its_own_user(agent, household):
    assert agent.before("Bash").is_nothing
    (path,) = (household.home / "state" / "hooks").glob("*.sock")
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


CONNECT = """\
import os, socket, sys
os.setuid(65534)
peer = socket.socket(socket.AF_UNIX)
peer.connect(sys.argv[1])
print(peer.recv(1))
"""


@pytest.mark.skipif(not LINUX or os.getuid() != 0, reason="needs another user")
def test_another_user_is_not_answered(agent, household):
    """Even if somebody opens the socket for all."""
    assert agent.before("Bash").is_nothing
    (path,) = (household.home / "state" / "hooks").glob("*.sock")
    path.chmod(0o777)
    path.parent.chmod(0o711)
    command = [sys.executable, "-c", CONNECT, path.name]
    said = subprocess.run(command, cwd=path.parent, capture_output=True, text=True, timeout=10)
    assert said.stdout == "b''\n", said
    assert agent.before("Bash", call="t2").is_nothing
