"""The scripts of the GitHub action and of GitLab's template, run as the runners run them.

The shells, the agent, the shim and the server are real. The environment has only what a runner sets.
"""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml
from tests.shim.household import SERVER, deny, policy

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "ci" / "sub-ci.sh"
ACTION = ROOT / "ci" / "github" / "action.yml"
TEMPLATE = ROOT / "ci" / "gitlab" / "subluminal.gitlab-ci.yml"
AGENT = ROOT / "tests" / "cli" / "running" / "agent.py"
SHELLS = ["dash", "bash"]
ARTIFACT = {
    *("chain.json", "events.jsonl", "junit.xml", "results.sarif", "summary.json", "summary.md"),
    "policies",
}


class Ended(NamedTuple):
    """How a job ended."""

    code: int
    out: str
    err: str


class Runner:
    """A CI runner: a working copy and an environment."""

    def __init__(self, tmp_path):
        self.work = tmp_path / "work"
        self.bin = tmp_path / "bin"
        self.files = tmp_path / "runner"
        for path in (self.work, self.bin, self.files):
            path.mkdir()
        (self.bin / "sub").symlink_to(Path(sys.executable).with_name("sub"))
        self.env = {
            "PATH": f"{self.bin}:/usr/bin:/bin",
            "HOME": str(self.files),
            "SUB_HOME": str(self.files / "sub"),
            "LANG": "C.UTF-8",
        }

    def github(self, **inputs):
        """Returns the environment of a step after a push, with the inputs as the action's `env` sets them."""
        self.output, self.summary = self.files / "output", self.files / "summary"
        self.output.touch()
        self.summary.touch()
        return {
            **self.env,
            "CI": "true",
            "GITHUB_ACTIONS": "true",
            "GITHUB_ACTION_PATH": str(ACTION.parent),
            "GITHUB_JOB": "agents",
            "GITHUB_OUTPUT": str(self.output),
            "GITHUB_REF": "refs/heads/main",
            "GITHUB_REPOSITORY": "acme/x",
            "GITHUB_RUN_ID": "16580301234",
            "GITHUB_STEP_SUMMARY": str(self.summary),
            **action_env(inputs),
        }

    def gitlab(self, **variables):
        return {
            **self.env,
            "CI": "true",
            "GITLAB_CI": "true",
            "CI_COMMIT_BRANCH": "main",
            "CI_JOB_ID": "50",
            "CI_JOB_NAME": "agents",
            "CI_PROJECT_PATH": "acme/x",
            **template()["variables"],
            **variables,
        }

    def step(self, env, shell="sh"):
        """Runs the action's step as a runner does: a file, with `sh -e`."""
        (step,) = (step for step in action()["runs"]["steps"] if "run" in step)
        assert step["shell"] == "sh"
        return self.run(shell, step["run"], env)

    def job(self, env, shell="sh"):
        """Runs the template's script as a GitLab runner does."""
        return self.run(shell, "\n".join(template()["script"]), env)

    def run(self, shell, text, env):
        file = self.files / "script.sh"
        file.write_text(text + "\n")
        done = subprocess.run(
            [shell, "-e", str(file)],
            cwd=self.work,
            env=env,
            capture_output=True,
            text=True,
            timeout=100,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        return Ended(done.returncode, done.stdout, done.stderr)

    def agent(self, *tools, last="exit=0", say=""):
        """Returns a shell line for an agent that calls tools through a shim."""
        server = [sys.executable, "-I", "-S", SERVER, str(self.files / "executed")]
        shim = ["sub", "shim", "stdio", "--server", "echo", "--", *server]
        line = shlex.join([sys.executable, "-I", "-S", str(AGENT), last, *tools, "--", *shim])
        return f"echo {shlex.quote(say)}; {line}"

    def policy(self, name="policy.yaml"):
        """Writes a policy for the main branch of one repository in CI, so that identity is tested too."""
        text = policy(deny("rm")).replace(
            "selectors: {}", "selectors: {env: [ci], workload: {repo: [acme/x], branch: [main]}}"
        )
        (self.work / name).write_text(text)
        return name

    def outputs(self):
        return dict(line.split("=", 1) for line in self.output.read_text().splitlines())


def action():
    return yaml.safe_load(ACTION.read_text())


def template():
    return yaml.safe_load(TEMPLATE.read_text())[".subluminal"]


def action_env(given):
    """Returns the action's `env` with these inputs, and the defaults of the others."""
    inputs = {name: each.get("default", "") for name, each in action()["inputs"].items()}
    inputs |= {name.replace("_", "-"): value for name, value in given.items()}
    (step,) = (step for step in action()["runs"]["steps"] if "run" in step)
    return {
        name: re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda found: inputs[found[1]], value)
        for name, value in step["env"].items()
    }


@pytest.fixture
def runner(tmp_path):
    return Runner(tmp_path)


def test_github_a_run_that_obeys_its_policy(runner):
    env = runner.github(run=runner.agent("echo", "echo"), policy=runner.policy(), agent_id="fixer")
    ended = runner.step(env)
    assert ended.code == 0, ended.err
    outputs = runner.outputs()
    assert len(outputs.pop("run-id")) == 36
    assert outputs == {
        "exit-code": "0",
        "outcome": "passed",
        "artifact": "subluminal-artifact",
        "violations": "0",
    }
    artifact = runner.work / "subluminal-artifact"
    assert {path.name for path in artifact.iterdir()} == ARTIFACT
    assert runner.summary.read_text() == (artifact / "summary.md").read_text()
    summary = json.loads((artifact / "summary.json").read_text())
    assert (summary["agent_id"], summary["env"], summary["client"]) == ("fixer", "ci", "headless")
    assert summary["totals"]["calls_allowed"] == 2


@pytest.mark.parametrize("shell", SHELLS)
def test_github_a_run_that_breaks_its_policy(runner, shell):
    env = runner.github(run=runner.agent("echo", "rm"), policy=runner.policy())
    ended = runner.step(env, shell)
    assert ended.code == 3, ended.err
    assert runner.outputs()["outcome"] == "violated"
    assert runner.outputs()["violations"] == "1"
    assert "no-rm" in runner.summary.read_text()
    assert ended.out.splitlines()[-1].startswith("::error title=Subluminal::")


@pytest.mark.parametrize("shell", SHELLS)
def test_gitlab_a_run_that_breaks_its_policy(runner, shell):
    env = runner.gitlab(
        SUBLUMINAL_RUN=runner.agent("echo", "rm"), SUBLUMINAL_POLICY=runner.policy()
    )
    ended = runner.job(env, shell)
    assert ended.code == 3, ended.err
    assert "::" not in ended.out
    (paths, reports) = (template()["artifacts"][name] for name in ("paths", "reports"))
    where = {
        name: value.replace("$SUBLUMINAL_ARTIFACT", env["SUBLUMINAL_ARTIFACT"])
        for name, value in {"all": paths[0], **reports}.items()
    }
    assert {path.name for path in (runner.work / where["all"]).iterdir()} == ARTIFACT
    assert "no-rm" in (runner.work / where["junit"]).read_text()


def test_gitlab_a_run_that_obeys_its_policy(runner):
    env = runner.gitlab(SUBLUMINAL_RUN=runner.agent("echo"), SUBLUMINAL_POLICY=runner.policy())
    ended = runner.job(env)
    assert ended.code == 0, ended.err
    summary = json.loads((runner.work / "subluminal-artifact" / "summary.json").read_text())
    assert summary["agent_id"] == "agents"


@pytest.mark.parametrize("door", ["step", "job"])
def test_a_branch_that_the_policy_is_not_for_does_not_pass(runner, door):
    """Strict: a policy that does not apply is a failure, never an allow."""
    given = {"run": runner.agent("rm"), "policy": runner.policy()}
    if door == "step":
        ended = runner.step({**runner.github(**given), "GITHUB_REF": "refs/heads/other"})
    else:
        variables = {f"SUBLUMINAL_{name.upper()}": value for name, value in given.items()}
        ended = runner.job({**runner.gitlab(**variables), "CI_COMMIT_BRANCH": "other"})
    assert ended.code == 2, ended.err
    assert "repo `acme/x`, branch `other`" in ended.err
    assert not (runner.files / "executed").exists()


def test_the_agents_own_exit_code(runner):
    ended = runner.step(
        runner.github(run=runner.agent("echo", last="exit=7"), policy=runner.policy())
    )
    assert ended.code == 7
    assert runner.outputs()["outcome"] == "failed"


def test_not_strict(runner):
    env = runner.github(run=runner.agent("rm"), policy=runner.policy(), strict="false")
    ended = runner.step(env)
    assert ended.code == 0, ended.err
    assert runner.outputs()["outcome"] == "passed"


def test_fail_on_a_severity(runner):
    env = runner.github(
        run=runner.agent("rm"), policy=runner.policy(), strict="false", fail_on="warn"
    )
    assert runner.step(env).code == 3


def test_output_of_an_agent_is_not_a_command_to_the_runner(runner):
    said = "::error::I did it"
    env = runner.github(run=runner.agent("echo", say=said), policy=runner.policy())
    lines = runner.step(env).out.splitlines()
    token = lines[0].removeprefix("::stop-commands::")
    assert re.fullmatch("[0-9a-f]{32}", token)
    assert lines.index(said) < lines.index(f"::{token}::")
    assert token not in json.dumps(env)


def test_commands_work_again_after_an_unfinished_last_line(runner):
    script = f"{runner.agent('rm')}; printf 'no end'"
    lines = runner.step(runner.github(run=script, policy=runner.policy())).out.splitlines()
    token = lines[0].removeprefix("::stop-commands::")
    assert f"::{token}::" in lines
    assert lines[-1].startswith("::error title=Subluminal::")


NASTY = "$(touch pwned) `touch pwned` '; touch pwned; ' \"; touch pwned; \" && touch pwned #"


@pytest.mark.parametrize("name", ["policy", "agent-id", "strict", "fail-on", "artifact"])
def test_an_input_is_never_a_script(runner, name):
    """Any input may contain the title of a pull request."""
    given = {"run": runner.agent("echo"), "policy": runner.policy(), name: NASTY}
    runner.step(runner.github(**given))
    assert not list(runner.work.rglob("pwned"))


def test_a_script_of_many_lines_is_run_as_it_is(runner):
    text = "set -u\nname='a \"b\" $c'\nprintf '%s\\n' \"$name\" > said\n"
    assert runner.step(runner.github(run=text, policy=runner.policy())).code == 0
    assert (runner.work / "said").read_text() == 'a "b" $c\n'


def test_a_script_stops_at_its_first_failure(runner):
    ended = runner.step(runner.github(run="false\ntouch said\n", policy=runner.policy()))
    assert ended.code == 1
    assert not (runner.work / "said").exists()


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"run": ""}, "there is nothing to run"),
        ({"run": "true", "artifact": "a\nb=c"}, "line break"),
        ({"run": "true", "strict": "maybe"}, "`maybe`"),
    ],
)
def test_mistakes_are_reported_before_anything_runs(runner, given, told):
    ended = runner.step(runner.github(**given))
    assert ended.code == 2
    assert told in ended.err
    assert ended.err.count("hint:") == 1
    assert runner.output.read_text() == ""


def test_the_words_of_a_command_are_kept(runner):
    words = ["printf", "<%s>", "a b", "*", "$HOME"]
    env = {**runner.github(), "SUBLUMINAL_POLICY": runner.policy()}
    ended = runner.run("sh", shlex.join(["sh", str(SCRIPT), *words]), env)
    assert "<a b><*><$HOME>" in ended.out


def test_sub_is_installed_where_it_is_missing(runner):
    """A fake python3 makes an environment and notes what is installed in it."""
    real = os.readlink(runner.bin / "sub")
    (runner.bin / "sub").unlink()
    pip = runner.files / "pip"
    python = runner.bin / "python3"
    python.write_text(
        '#!/bin/sh\n[ "$1 $2" = "-m venv" ] || exit 9\nmkdir -p "$3/bin"\n'
        f'printf \'#!/bin/sh\\nprintf "%%s\\\\n" "$@" > {pip}\\nln -s {real} %s/sub\\n\' '
        '"$3/bin" > "$3/bin/python"\nchmod +x "$3/bin/python"\n'
    )
    python.chmod(0o755)
    ended = runner.step(
        runner.github(run="command -v sub", policy=runner.policy(), package="subluminal==1 ; x")
    )
    assert ended.code == 0, ended.err
    assert pip.read_text().split("\n")[:3] == ["-m", "pip", "install"]
    assert "subluminal==1 ; x" in pip.read_text().split("\n")


def test_shellcheck():
    for script in (SCRIPT, ROOT / "tools" / "setup_system.sh"):
        done = subprocess.run(["shellcheck", script], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("shell", SHELLS)
def test_servers_that_were_not_seen_fail_the_job_unless_they_are_allowed(runner, shell):
    """In a fresh job nothing is wrapped, and the repository brings servers along."""
    servers = {"fs": {"command": "npx"}, "my web": {"type": "http", "url": "https://example.com"}}
    (runner.work / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))
    claude = runner.bin / "claude"
    claude.write_text("#!/bin/sh\n")
    claude.chmod(0o755)
    given = {"run": "set -x\nclaude -p 'fix it'", "policy": runner.policy()}
    done = runner.step(runner.github(**given), shell)
    assert done.code == 3
    assert "2 servers not seen" in done.err
    assert "outcome=violated\n" in runner.output.read_text()
    done = runner.step(runner.github(**given, **{"allow-silent": "fs\nmy web\n"}), shell)
    assert (done.code, "not seen, as allowed: `fs`, `my web`" in done.err) == (0, True)
    gitlab = runner.gitlab(
        SUBLUMINAL_RUN="claude",
        SUBLUMINAL_POLICY=runner.policy(),
        SUBLUMINAL_ALLOW_SILENT="fs\nmy web",
    )
    assert runner.job(gitlab, shell).code == 0
