"""The example policy for agents' own tools, at each client's own shell and file tools."""

import pathlib

import pytest

POLICY = pathlib.Path(__file__).parents[2] / "examples" / "policies" / "agent-shell.yaml"
TOOLS = {
    "claude": ("Bash", "Write", "file_path"),
    "codex": ("Bash", None, ""),
    "gemini": ("run_shell_command", "write_file", "file_path"),
    "copilot": ("bash", "create", "path"),
    "opencode": ("bash", "write", "filePath"),
}


@pytest.fixture
def agent_of(start, household):
    # The tests themselves run in /tmp, which the example allows.
    household.write_policy(POLICY.read_text().replace('"/tmp"', '"/var/empty"'))
    (household.cwd / ".git").mkdir()
    return start


@pytest.mark.parametrize("client", TOOLS)
def test_shell_lines(agent_of, client):
    agent, shell = agent_of(client), TOOLS[client][0]
    lines = {
        "git status && git push origin main": True,
        "git push --force origin main": False,
        "cd src; git -C .. push -f": False,
        "echo hi > notes.txt": True,
        "echo hi > /etc/motd": False,
        "eval $X": False,
    }
    told = {
        line: agent.before(shell, {"command": line}, call=f"t{n}").is_nothing
        for n, line in enumerate(lines)
    }
    if client == "claude":  # its person is asked about opaque calls
        assert '"ask"' in agent.before(shell, {"command": "eval $Y"}, call="t9").out
    assert told == lines


@pytest.mark.parametrize("client", [name for name, tools in TOOLS.items() if tools[1]])
def test_files(agent_of, household, client):
    agent, (_, write, key) = agent_of(client), TOOLS[client]
    (household.cwd / "out").symlink_to("/etc")
    for n, (path, is_fine) in enumerate(
        {
            str(household.cwd / "a.txt"): True,
            str(household.cwd / ".." / "b.txt"): False,
            str(household.cwd / "out" / "motd"): False,
            "/etc/motd": False,
        }.items()
    ):
        said = agent.before(write, {key: path, "content": "x"}, call=f"t{n}")
        assert said.is_nothing == is_fine, (path, said)


def test_a_patch_of_several_files(agent_of):
    agent = agent_of("codex")
    patch = "*** Begin Patch\n*** Add File: {0}\n+x\n*** Add File: {1}\n+x\n*** End Patch\n"
    fine = patch.format("a.txt", "b.txt")
    assert agent.before("apply_patch", {"command": fine}, call="t1").is_nothing
    bad = patch.format("a.txt", "../../b.txt")
    assert not agent.before("apply_patch", {"command": bad}, call="t2").is_nothing


def test_targets_are_on_record(agent_of, household):
    agent = agent_of("claude")
    agent.before("Bash", {"command": "git log"})
    (event,) = household.events("tool_call_start")
    assert event["call"]["targets"]["commands"] == [["git", "log"]]
