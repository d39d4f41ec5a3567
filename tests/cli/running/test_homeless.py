"""Runs where nothing but the artifact can be written: no home, no name, a read-only root."""

import json
import os
import subprocess
import sys

import pytest
from tests.shim.household import SUB, WITHIN_S, deny, policy

PYTHON = [sys.executable, "-I", "-S", "-c"]
INSIDE = """
mount --bind "$0" "$0" && mount -o remount,bind,ro / || exit 99
exec setpriv --inh-caps=-all --ambient-caps=-all --bounding-set=-all "$@"
"""


def confined(runner, uid, out, command, *words, **env):
    """`sub run` as that user, in a mount namespace of its own in which only `out` is writable."""
    kept = {"PATH": os.environ["PATH"], "SUB_TEST_TOKEN": runner.token, **env}
    return subprocess.run(
        [
            *["unshare", "--user", f"--map-user={uid}", f"--map-group={uid}", "--keep-caps", "-m"],
            *["sh", "-c", INSIDE, str(out), *SUB, "run", *words, "--artifact", str(out)],
            *["--", *command],
        ],
        env=kept,
        cwd=runner.cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=4 * WITHIN_S,
        check=False,
    )


@pytest.fixture
def out(tmp_path):
    directory = tmp_path / "out"
    directory.mkdir()
    return directory


@pytest.mark.parametrize("uid", [0, 54321], ids=["root", "nobody-in-particular"])
def test_with_nothing_but_the_artifact(runner, out, uid):
    """Issue 9: no ledgerd, no home, a read-only root, only --artifact writable."""
    runner.write_policy(policy(deny("fail")), runner.cwd / "p.yaml")
    # What a server executes it writes into a file, which it cannot here.
    agent = runner.agent("exit=0", "echo", "fail")
    agent[agent.index(str(runner.log))] = "/dev/null"
    ran = confined(runner, uid, out, agent, "--strict", "--policy", "p.yaml", "--events", "-")
    assert ran.returncode == 3, ran.stderr
    assert "sub: cannot write to the home" in ran.stderr
    assert "echo 0\nfail -32081\n" in ran.stderr
    events = [json.loads(line) for line in ran.stdout.splitlines()]
    assert {event["type"] for event in events} >= {"run_start", "tool_call_end", "run_end"}
    assert sorted(ran.stdout.splitlines()) == sorted(
        (out / "events.jsonl").read_text().splitlines()
    )
    assert json.loads((out / "summary.json").read_text())["decisions"] == {"ALLOW": 1, "BLOCK": 1}
    assert ".home" not in os.listdir(out)
    assert runner.alive() == []


def test_a_home_that_cannot_be_written_is_obeyed_all_the_same(runner, out):
    """A policy that an image brings along must not be lost with the right to write beside it."""
    runner.home.mkdir(parents=True)
    runner.write_policy(policy(deny("echo")))
    agent = runner.agent("exit=0", "echo")
    agent[agent.index(str(runner.log))] = "/dev/null"
    ran = confined(runner, 54321, out, agent, "--strict", SUB_HOME=str(runner.home))
    assert ran.returncode == 3, ran.stderr
    assert "echo -32081\n" in ran.stdout


def test_a_place_for_large_things_is_told(runner, out):
    """Where not even /tmp can be written."""
    show = [*PYTHON, "import os,tempfile; print(os.environ['TMPDIR'] == tempfile.gettempdir())"]
    ran = confined(runner, 54321, out, show)
    assert (ran.returncode, ran.stdout) == (0, "True\n")


class TestWithoutAHome:
    """The home is below a file, so nobody can make it."""

    def run(self, runner, *words, command=("true",)):
        (runner.cwd / "file").write_text("")
        env = {**runner.env(), "SUB_HOME": str(runner.cwd / "file" / "home")}
        return runner.run(*words, command=command, env=env)

    def test_a_run_that_would_leave_no_record_is_not_started(self, runner):
        code, _, err = self.run(runner, command=[*PYTHON, "print(1)"])
        assert code == 2
        assert err.endswith(
            "choose another home with SUB_HOME, or record the run with --artifact\n"
        )

    def test_streamed_events_are_record_enough(self, runner):
        code, out, _ = self.run(runner, "--events", "-")
        assert code == 0
        types = [json.loads(line)["type"] for line in out.splitlines()]
        assert types == ["run_start", "run_end"]

    def test_a_user_without_a_home_gets_none_in_the_working_directory(self, runner, out):
        """`~` does not mean anything then, least of all a directory of that name."""
        ran = confined(runner, 54321, out, ["true"])
        assert ran.returncode == 0
        assert os.listdir(runner.cwd) == []
