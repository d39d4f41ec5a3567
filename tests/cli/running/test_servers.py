"""`sub run` knows which servers its client starts, and names those that no shim spoke for."""

import json
import shlex
import subprocess
import sys
from xml.etree import ElementTree

import pytest
from tests.shim.household import SUB, WITHIN_S, deny, policy

WRAPPER = ["sub", "shim", "stdio", "--server"]


class Machine:
    """A user's home with Claude Code's configuration, and a `claude` that starts some servers."""

    def __init__(self, runner, path):
        self.runner = runner
        self.home = path / "user"
        self.project = path / "project"
        self.bin = path / "bin"
        for folder in (self.home, self.project / ".git", self.bin):
            folder.mkdir(parents=True)
        self.entries = {}
        self.starts()

    def starts(self, *servers, then="exit=0", home=None):
        """The servers whose shims the client really starts."""
        lines = ["#!/bin/sh"]
        for server in servers:
            words = [*SUB, "shim", "stdio", "--server", server, *(["--home", home] if home else [])]
            agent = self.runner.agent(then, "echo")
            command = [*agent[: agent.index("--") + 1], *words, "--", *self.runner.server()]
            lines.append(shlex.join(command))
        self.program = self.bin / "claude"
        self.program.write_text("\n".join(lines) + "\n")
        self.program.chmod(0o755)

    def wrapped(self, name, *more, env=None):
        entry = {"command": "/opt/sub", "args": [*WRAPPER[1:], name, *more, "--", "npx", "x"]}
        self.entries[name] = {**entry, **({"env": env} if env else {})}

    def plain(self, name):
        self.entries[name] = {"command": "npx", "args": ["x"]}

    def remote(self, name):
        self.entries[name] = {"type": "http", "url": "https://example.com/mcp"}

    def write(self, **more):
        file = self.home / ".claude.json"
        file.write_text(json.dumps({"mcpServers": self.entries, **more}))
        return file

    def env(self):
        return {
            **self.runner.env(),
            "HOME": str(self.home),
            "PATH": f"{self.bin}:/usr/bin:/bin",
        }

    def run(self, *words, command=("claude", "-p", "fix it")):
        return self.runner.run(*words, command=list(command), env=self.env(), cwd=self.project)

    def strict(self, *words, **options):
        self.runner.write_policy(policy(deny("fail")))
        return self.run("--strict", *words, **options)


@pytest.fixture
def machine(runner, tmp_path):
    return Machine(runner, tmp_path / "machine")


def told(err):
    """What `sub` says; the servers say goodbye on the same stream."""
    return "".join(line for line in err.splitlines(keepends=True) if line != "bye\n")


def silent(machine):
    """The silent servers on record."""
    events = machine.runner.events("shim_health")
    return [e["health"].get("server_name") for e in events if e["health"]["state"] == "silent"]


class TestWithoutStrict:
    """A warning before and after, and the agent's own exit code."""

    def test_nothing_is_imported(self, machine):
        for name in ("fs", "git", "web"):
            machine.plain(name)
        machine.write()
        code, _, err = machine.run()
        assert (code, told(err)) == (
            0,
            "warning: 0 of 3 servers wrapped; calls to `fs`, `git`, `web` will not be seen\n"
            "hint: wrap them with `sub import claude`\n"
            "warning: not seen in this run: `fs` (not wrapped); `git` (not wrapped); "
            "`web` (not wrapped)\n"
            "hint: wrap them with `sub import claude`\n",
        )
        assert silent(machine) == ["fs", "git", "web"]

    def test_a_repository_with_thousands_of_servers_fills_no_screen(self, machine):
        for number in range(2000):
            machine.plain(f"s{number}")
        machine.write()
        _, _, err = machine.run()
        assert "and 240 more will not be seen" in err
        assert len(err) < 2000

    def test_everything_is_seen(self, machine):
        machine.wrapped("fs")
        machine.write()
        machine.starts("fs")
        code, out, err = machine.run()
        assert (code, out, told(err)) == (0, "echo 0\n", "")
        assert silent(machine) == []
        (start,) = machine.runner.events("run_start")
        assert start["run"]["meta"]["servers"] == ["fs"]

    def test_hooks_speak_for_all_servers(self, machine):
        machine.plain("fs")
        machine.remote("web")
        machine.write()
        hook = shlex.join([*SUB, "hook", "claude"])
        settings = machine.home / ".claude" / "settings.json"
        settings.parent.mkdir()
        command = {"type": "command", "command": "/opt/sub hook claude", "timeout": 10}
        settings.write_text(json.dumps({"hooks": {"PreToolUse": [{"hooks": [command]}]}}))
        event = {"session_id": "s", "hook_event_name": "SessionStart", "cwd": "/"}
        lines = ["#!/bin/sh", f"echo {shlex.quote(json.dumps(event))} | {hook}"]
        machine.program.write_text("\n".join(lines) + "\n")
        assert machine.strict()[::2] == (0, "sub: the run kept to its policy\n")
        assert silent(machine) == []

    def test_hooks_that_are_configured_and_do_not_run_speak_for_nobody(self, machine):
        machine.plain("fs")
        machine.write()
        settings = machine.home / ".claude" / "settings.json"
        settings.parent.mkdir()
        command = {"type": "command", "command": "/opt/sub hook claude", "timeout": 10}
        settings.write_text(json.dumps({"hooks": {"PreToolUse": [{"hooks": [command]}]}}))
        code, _, err = machine.run()
        assert code == 0
        assert "not seen in this run: `fs`" in err
        assert silent(machine) == ["fs"]

    def test_what_was_never_heard_from_is_named(self, machine):
        machine.wrapped("fs")
        machine.wrapped("git")
        machine.write()
        machine.starts("fs", then="exit=4")
        code, _, err = machine.run()
        assert (code, told(err)) == (
            4,
            "warning: not seen in this run: `git` (wrapped, but its shim was never heard from)\n"
            "hint: `sub import claude --check` says which servers are wrapped\n",
        )

    def test_a_configuration_that_cannot_be_read_is_told(self, machine):
        machine.write().write_text("{")
        code, _, err = machine.run()
        assert code == 0
        assert err.startswith("warning: it is not known which servers are wrapped: ")
        assert ".claude.json:1:2" in err

    def test_what_is_allowed_is_not_named(self, machine):
        machine.plain("fs")
        machine.write()
        assert machine.run("--allow-silent", "fs")[::2] == (0, "")

    def test_a_question_starts_no_server(self, machine):
        machine.plain("fs")
        machine.write()
        assert machine.run(command=["claude", "--version"])[::2] == (0, "")

    def test_another_agent_has_no_configuration(self, machine):
        machine.plain("fs")
        machine.write()
        assert machine.run(command=["true"])[::2] == (0, "")


class TestStrict:
    """A server that was not seen is a violation."""

    def test_a_run_in_which_everything_is_seen_holds(self, machine):
        machine.wrapped("fs")
        machine.write()
        machine.starts("fs")
        code, _, err = machine.strict()
        assert (code, told(err)) == (0, "sub: the run kept to its policy\n")

    @pytest.mark.parametrize("ending", ["exit=0", "exit=7"])
    def test_servers_outside_the_run_fail_it(self, machine, ending):
        machine.wrapped("fs")
        machine.wrapped("quiet")
        machine.plain("git")
        machine.remote("web")
        machine.write()
        machine.starts("fs", then=ending)
        code, _, err = machine.strict()
        assert code == 3
        assert told(err) == (
            "warning: 2 of 4 servers wrapped; calls to `git`, `web` will not be seen\n"
            "hint: wrap them with `sub import claude`\n"
            "error: this run violated policy: 3 servers not seen\n"
            "hint: `sub import` wraps servers; `--allow-silent SERVER` accepts one that is not "
            "seen\n"
            "  git: not wrapped\n"
            "  quiet: wrapped, but its shim was never heard from\n"
            "  web: reached by URL, which is not wrapped yet\n"
        )

    def test_each_can_be_allowed(self, machine):
        machine.wrapped("quiet")
        machine.plain("git")
        machine.write()
        code, _, err = machine.strict("--allow-silent", "git")
        assert code == 3
        assert "1 server not seen" in err
        assert "git" not in err
        code, _, err = machine.strict("--allow-silent", "git", "--allow-silent", "quiet")
        assert code == 0
        assert (
            told(err) == "sub: the run kept to its policy; not seen, as allowed: `git`, `quiet`\n"
        )
        # It is on record that it was allowed, and that it was not seen.
        start = machine.runner.events("run_start")[-1]
        assert start["run"]["meta"]["allow_silent"] == ["git", "quiet"]
        assert silent(machine)[-2:] == ["git", "quiet"]

    def test_a_shim_that_speaks_to_another_home(self, machine, tmp_path):
        other = str(tmp_path / "other")
        machine.wrapped("fs", "--home", other)
        machine.write()
        machine.starts("fs", home=other)
        code, _, err = machine.strict()
        assert code == 3
        assert f"  fs: wrapped for another home, `{other}`\n" in err

    def test_a_home_in_the_entry(self, machine, tmp_path):
        machine.wrapped("fs", env={"SUB_HOME": str(tmp_path / "other")})
        machine.write()
        assert "  fs: wrapped for another home" in machine.strict()[2]

    def test_a_shim_of_an_earlier_part_of_the_run_does_not_count(self, machine):
        machine.wrapped("fs")
        machine.write()
        machine.starts("fs")
        assert machine.strict("--run-id", "job")[0] == 0
        machine.starts()
        code, _, err = machine.strict("--run-id", "job")
        assert code == 3
        assert "fs: wrapped, but its shim was never heard from" in err

    def test_a_configuration_that_cannot_be_read_fails_it(self, machine):
        machine.write().write_text("{")
        code, _, err = machine.strict()
        assert code == 3
        assert "error: this run violated policy: it is not known which servers ran\n" in err

    def test_a_server_that_the_agent_adds_is_noticed(self, machine):
        machine.wrapped("fs")
        machine.write()
        machine.starts("fs")
        with open(machine.program, "a") as script:
            script.write('echo \'{"mcpServers": {"own": {"command": "x"}}}\' > .mcp.json\n')
        code, _, err = machine.strict()
        assert code == 3
        assert "  own: not wrapped\n" in err

    def test_through_a_shell(self, machine):
        """As in CI, where the command is a text."""
        machine.plain("fs")
        machine.write()
        command = ["sh", "-e", "-c", "export A=1\ncd . && claude -p 'fix it'"]
        code, _, err = machine.strict(command=command)
        assert code == 3
        assert "0 of 1 server wrapped" in err

    def test_a_client_that_is_named(self, machine):
        machine.plain("fs")
        machine.write()
        assert machine.strict("--client", "claude", command=["true"])[0] == 3

    def test_an_unknown_client_is_told(self, machine):
        machine.plain("fs")
        machine.write()
        code, _, err = machine.strict(command=["true"])
        assert (code, err) == (
            0,
            "sub: `true` is not a client that `sub import` knows, so servers that it started "
            "without a shim were not noticed\n"
            "sub: the run kept to its policy\n",
        )
        assert machine.strict("--client", "custom", command=["true"])[2] == (
            "sub: the run kept to its policy\n"
        )


def test_the_artifact_says_it_everywhere(machine):
    machine.wrapped("fs")
    machine.plain("git")
    machine.remote("web")
    machine.write()
    machine.starts("fs")
    code, _, _ = machine.strict("--allow-silent", "web", "--artifact", "out")
    assert code == 3
    out = machine.project / "out"
    found = json.loads((out / "summary.json").read_text())
    assert found["silent_servers"] == [
        {"server_name": "git", "detail": "not wrapped", "fails": True},
        {
            "server_name": "web",
            "detail": "reached by URL, which is not wrapped yet",
            "fails": False,
        },
    ]
    assert found["verdict"] == {
        "strict": "refused",
        "allow_silent": ["web"],
        "holds": False,
        "because": ["1 server not seen"],
    }
    page = (out / "summary.md").read_text()
    assert "### Servers that were not seen\n" in page
    assert "| `git` | **fails the run** | `not wrapped` |\n| `web` | tolerated | " in page
    suite = ElementTree.parse(out / "junit.xml").getroot()[0]
    cases = {case.get("name"): case for case in suite.findall("testcase[@classname='servers']")}
    assert cases["git was seen"].find("failure").get("message") == "not wrapped"
    assert cases["web was seen"].find("skipped") is not None
    assert suite.get("failures") == "1"
    (run,) = json.loads((out / "results.sarif").read_text())["runs"]
    results = [(r["ruleId"], r["level"], r["message"]["text"]) for r in run["results"]]
    assert results == [
        ("SERVER_SILENT", "error", "git was not seen: not wrapped"),
        ("SERVER_SILENT", "note", "web was not seen: reached by URL, which is not wrapped yet"),
    ]
    assert (
        subprocess.run([*SUB, "ledger", "verify", "--artifact", str(out)], check=False).returncode
        == 0
    )


def test_the_same_verdict_is_made_later_from_the_record(machine):
    machine.plain("git")
    machine.write()
    assert machine.strict("--run-id", "r")[0] == 3
    words = [*SUB, "export", "run", "r", "--format", "summary"]
    ran = subprocess.run(
        words, env=machine.env(), capture_output=True, text=True, timeout=WITHIN_S, check=True
    )
    assert "policy violated" in ran.stdout
    assert "| `git` | **fails the run** |" in ran.stdout
    tail = [*SUB, "tail", "--no-follow", "--run", "r"]
    ran = subprocess.run(
        tail, env=machine.env(), capture_output=True, text=True, timeout=WITHIN_S, check=True
    )
    assert "git: not wrapped" in ran.stdout
    subprocess.run([*SUB, "ledgerd", "stop"], env=machine.env(), capture_output=True, check=True)


def test_the_importer_is_not_loaded_for_an_unknown_client(machine):
    script = (
        "import sys;from subluminal.cli.main import main;main(['run','--','true']);"
        "print([m for m in sys.modules if m.startswith('subluminal.importer.')])"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script],
        env=machine.env(),
        cwd=machine.project,
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout == "['subluminal.importer.command_line']\n"
