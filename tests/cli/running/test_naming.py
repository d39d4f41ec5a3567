"""How a run is called, what is recorded with it, and which run started it (Pack 1.4, section 5)."""

import json
import os
import pty
import pwd
import subprocess
import sys

import pytest
from tests.requirements import requirement
from tests.shim.household import SUB, WITHIN_S, wait_until

PYTHON = [sys.executable, "-I", "-S", "-c"]
SHOW = "import os,json;print(json.dumps({k:v for k,v in os.environ.items() if k[:4]=='SUB_'}))"


def starts(runner):
    return {event["run_id"]: event for event in runner.events("run_start")}


def sub(runner, *words):
    ran = subprocess.run(
        [*SUB, *words],
        env=runner.env(),
        cwd=runner.cwd,
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def found_runs(runner, where):
    rows = sub(runner, "query", "runs", where, "--json").splitlines()
    return [json.loads(row)["run_id"] for row in rows]


@pytest.fixture
def no_daemon(runner):
    """Queries start ledgerd."""
    yield
    sub(runner, "ledgerd", "stop")


class TestRunId:
    """`--run-id`, and SUB_RUN_ID of `sub run` itself."""

    def test_it_is_kept_from_the_environment(self, runner):
        env = {**runner.env(), "SUB_RUN_ID": "job-42"}
        code, out, _ = runner.run(command=[*PYTHON, SHOW], env=env)
        assert (code, json.loads(out)["SUB_RUN_ID"]) == (0, "job-42")
        assert list(starts(runner)) == ["job-42"]
        assert "parent_run_id" not in starts(runner)["job-42"]["run"]["meta"]

    def test_the_flag_comes_first(self, runner):
        env = {**runner.env(), "SUB_RUN_ID": "job-42"}
        _, out, _ = runner.run("--run-id", "mine/1", "--print-run-id", command=["true"], env=env)
        assert out == "mine/1\n"
        assert list(starts(runner)) == ["mine/1"]

    def test_a_run_that_another_run_starts_is_a_run_of_its_own(self, runner):
        inner = [*SUB, "run", "--", *runner.agent("exit=0", "echo")]
        code, out, _ = runner.run("--run-id", "outer", command=inner)
        assert (code, out) == (0, "echo 0\n")
        found = starts(runner)
        (name,) = set(found) - {"outer"}
        assert found[name]["run"]["meta"]["parent_run_id"] == "outer"
        assert "parent_run_id" not in found["outer"]["run"]["meta"]
        assert {event["run_id"] for event in runner.events("tool_call_start")} == {name}

    def test_a_session_that_is_recorded_is_the_parent_too(self, runner):
        """Claude Code names its session, which names the run where SUB_RUN_ID does not."""
        shim = runner.start(run=None, CLAUDE_CODE_SESSION_ID="session-1")
        assert shim.code() == 0
        env = {**runner.env(), "CLAUDE_CODE_SESSION_ID": "session-1"}
        assert runner.run(command=["true"], env=env)[0] == 0
        shim.close()
        shim.wait()
        (meta,) = [
            event["run"]["meta"] for name, event in starts(runner).items() if name != "session-1"
        ]
        assert meta["parent_run_id"] == "session-1"

    def test_a_living_run_is_not_joined_by_its_name(self, runner):
        inner = [*SUB, "run", "--run-id", "outer", "--", "true"]
        code, _, err = runner.run("--run-id", "outer", command=inner)
        assert code == 2
        assert "error: the run `outer` is still running\nhint: give another `--run-id`" in err

    @pytest.mark.parametrize("name", ["", " ", "a\nb", "operator", "x" * 201])
    def test_what_is_not_a_name(self, runner, name):
        code, out, err = runner.run("--run-id", name, command=[*PYTHON, "print(1)"])
        assert (code, out) == (2, "")
        assert err.startswith("error: `--run-id` is ")
        assert runner.events() == []

    def test_the_same_name_again_is_the_same_run(self, runner):
        for _ in range(2):
            assert runner.run("--run-id", "job", command=runner.agent("exit=0", "echo"))[0] == 0
        assert [event["call"]["seq"] for event in runner.events("tool_call_start")] == [1, 2]
        assert len(runner.events("run_start")) == 1


class TestMeta:
    """`--meta KEY=VALUE` and SUB_RUN_META."""

    def test_it_is_recorded_and_given_to_the_agent(self, runner):
        env = {**runner.env(), "SUB_RUN_META": "issue_id=1,task_type=fix"}
        words = ("--run-id", "r", "--meta", "issue_id=42", "--meta", "note=a=b, c")
        code, out, _ = runner.run(*words, command=[*PYTHON, SHOW], env=env)
        wanted = {"issue_id": "42", "task_type": "fix", "note": "a=b, c"}
        assert (code, json.loads(json.loads(out)["SUB_RUN_META"])) == (0, wanted)
        meta = starts(runner)["r"]["run"]["meta"]
        assert {key: meta[key] for key in wanted} == wanted

    def test_it_is_shown_and_found_again(self, runner, no_daemon):
        agent = runner.agent("exit=0", "echo")
        runner.run("--run-id", "r1", "--meta", "issue_id=42", "--meta", "b=2", command=agent)
        runner.run("--run-id", "r2", "--meta", "issue_id=7", command=agent)
        assert found_runs(runner, "meta:issue_id=42") == ["r1"]
        assert found_runs(runner, "meta:issue_id=*") == ["r1", "r2"]
        assert found_runs(runner, "meta!=issue_id=42") == ["r2"]
        assert "  meta      issue_id=42 b=2\n" in sub(runner, "show", "r1")
        assert json.loads(sub(runner, "show", "r1", "--json"))["run"]["metadata"]["b"] == "2"

    def test_json_in_the_environment(self, runner):
        env = {**runner.env(), "SUB_RUN_META": '{"n": 3, "labels": ["a"]}'}
        assert runner.run("--run-id", "r", command=["true"], env=env)[0] == 0
        meta = starts(runner)["r"]["run"]["meta"]
        assert (meta["n"], meta["labels"]) == (3, ["a"])

    def test_a_shim_without_sub_run_records_it_too(self, runner):
        shim = runner.start(run="r", SUB_RUN_META="issue_id=42")
        shim.ready()
        shim.close()
        shim.wait()
        assert starts(runner)["r"]["run"]["meta"]["issue_id"] == "42"

    def test_a_secret_is_masked(self, runner):
        token = "ghp_" + "a1B2" * 9
        assert runner.run("--meta", f"token={token}", command=["true"])[0] == 0
        assert token not in json.dumps(runner.events())
        assert "REDACTED" in json.dumps(runner.events("run_start"))

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (["--meta", "issue"], "`issue` is not KEY=VALUE"),
            (["--meta", "=x"], "is not a key"),
            (["--meta", "strict=no"], "`sub` itself sets the key `strict`"),
            (["--meta", f"x={'y' * 9000}"], "larger than 8192 bytes"),
            ([word for n in range(33) for word in ("--meta", f"k{n}=1")], "more than 32 keys"),
        ],
        ids=["no value", "no key", "ours", "large", "many"],
    )
    def test_what_is_refused(self, runner, words, said):
        code, out, err = runner.run(*words, command=[*PYTHON, "print(1)"])
        assert (code, out) == (2, "")
        assert said in err
        assert runner.events() == []

    @pytest.mark.parametrize("text", ["{", "[1]", "{1}", '{"strict":"x"}', "rubbish", "\udcff=1"])
    def test_rubbish_in_the_environment(self, runner, text):
        """`sub run` refuses it. A shim cannot, so it ignores it."""
        env = {**runner.env(), "SUB_RUN_META": text, "SUB_RUN_ID": "r"}
        code, out, err = runner.run(command=[*PYTHON, "print(1)"], env=env)
        assert (code, out, err.startswith("error: ")) == (2, "", True)
        shim = runner.start(run="r", SUB_RUN_META=text)
        assert shim.code() == 0
        shim.close()
        shim.wait()
        assert set(starts(runner)["r"]["run"].get("meta", {})) <= {"env_source"}


class TestParent:
    """What a run says of the run that started it, in queries."""

    def test_it_is_shown_and_found(self, runner, no_daemon):
        inner = [*SUB, "run", "--run-id", "inner", "--", *runner.agent("exit=0", "echo")]
        assert runner.run("--run-id", "outer", command=inner)[0] == 0
        assert found_runs(runner, "parent:outer") == ["inner"]
        assert "  parent    outer\n" in sub(runner, "show", "inner")


def test_the_principal_without_user(runner):
    env = {name: value for name, value in runner.env().items() if name not in ("USER", "LOGNAME")}
    assert runner.run("--run-id", "r", command=["true"], env=env)[0] == 0
    assert starts(runner)["r"]["principal"] == pwd.getpwuid(os.getuid()).pw_name


class TestEnv:
    """Which environment a shim is in, and how it knows."""

    QUIET = ("GITHUB_ACTIONS", "CI", "GITLAB_CI", "XDG_CURRENT_DESKTOP", "DESKTOP_SESSION")

    def env(self, runner, **more):
        kept = {name: value for name, value in runner.env().items() if name not in self.QUIET}
        return {**kept, "SUB_RUN_ID": "r", **more}

    def shim(self, runner, *, terminal=False, client=sys.executable, words=(), **more):
        """A shim that a client starts, in a terminal or without one."""
        command = [*SUB, "shim", "stdio", "--server", "echo", "--", *runner.server()]
        script = (
            "import os,sys;c=sys.argv[1:sys.argv.index('end')];"
            "p=os.fork();p or os.execv(c[0],c);os.waitpid(p,0)"
        )
        options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
        if terminal:
            master, slave = pty.openpty()
            control = f"import fcntl,termios;fcntl.ioctl({slave},termios.TIOCSCTTY,0);"
            script, options["pass_fds"] = control + script, (slave,)
        process = subprocess.Popen(
            [client, *PYTHON[1:], script, *command, "end", *words],
            env=self.env(runner, **more),
            cwd=runner.cwd,
            stderr=subprocess.PIPE,
            start_new_session=True,
            **options,
        )
        runner.started.append(process)
        process.communicate(timeout=WITHIN_S)
        if terminal:
            os.close(master)
            os.close(slave)
        wait_until(lambda: "r" in starts(runner), "the run's start")
        start = starts(runner)["r"]
        return start["env"], start["run"].get("meta", {}).get("env_source")

    def test_a_terminal(self, runner):
        assert self.shim(runner, terminal=True) == ("dev", "terminal")

    def test_a_desktop(self, runner):
        assert self.shim(runner, XDG_CURRENT_DESKTOP="GNOME") == ("dev", "desktop")

    def test_a_desktop_client_that_clears_the_environment(self, runner, tmp_path):
        (tmp_path / "cursor").symlink_to(sys.executable)
        assert self.shim(runner, client=str(tmp_path / "cursor")) == ("dev", "desktop")

    def test_the_daemon_of_interactive_codex(self, runner):
        assert self.shim(runner, words=["--managed-daemon"]) == ("dev", "terminal")

    def test_ci(self, runner):
        assert self.shim(runner, terminal=True, GITHUB_ACTIONS="true") == ("ci", "ci")

    def test_given(self, runner):
        assert self.shim(runner, terminal=True, SUB_ENV="prod") == ("prod", "given")

    def test_nothing_shows_it(self, runner):
        assert self.shim(runner) == ("unknown", None)

    @pytest.mark.parametrize(
        ("words", "more", "found"),
        [
            ((), {}, ("dev", "default")),
            ((), {"GITHUB_ACTIONS": "true"}, ("ci", "ci")),
            (("--env", "prod"), {"GITHUB_ACTIONS": "true"}, ("prod", "given")),
        ],
        ids=["default", "ci", "given"],
    )
    def test_sub_run(self, runner, words, more, found):
        env = self.env(runner, **more)
        runner.run(*words, command=["true"], env=env, start_new_session=True)
        start = starts(runner)["r"]
        assert (start["env"], start["run"]["meta"]["env_source"]) == found

    @requirement("trust:run-environment")
    @pytest.mark.parametrize("flag", [True, False], ids=["--env", "SUB_ENV"])
    def test_any_name(self, runner, flag):
        """Rules can match it (`environment`), so it goes on as it was written."""
        more = {} if flag else {"SUB_ENV": "Pre-Prod 2"}
        words = ("--env", "Pre-Prod 2") if flag else ()
        env = self.env(runner, **more)
        _, out, _ = runner.run(*words, command=[*PYTHON, SHOW], env=env)
        assert json.loads(out)["SUB_ENV"] == "Pre-Prod 2"
        (start,) = starts(runner).values()
        assert (start["env"], start["run"]["meta"]["env_source"]) == ("unknown", "given")

    def test_it_is_shown(self, runner, no_daemon):
        runner.run("--run-id", "r", "--env", "ci", command=["true"])
        assert "custom in ci (as given)" in sub(runner, "show", "r")


class TestTaint:
    """`--taint`, SUB_TAINT of `sub run` itself, and the level of the run that starts another."""

    def test_nothing_is_said_of_it_by_default(self, runner):
        _, out, _ = runner.run(command=[*PYTHON, SHOW])
        assert "SUB_TAINT" not in json.loads(out)

    @requirement("taint:start")
    @pytest.mark.parametrize(
        ("flag", "given", "level"),
        [
            ("TRUSTED", "", "TRUSTED"),
            ("", "TRUSTED", "TRUSTED"),
            ("SYSTEM", "UNTRUSTED", "UNTRUSTED"),
            ("UNTRUSTED", "TRUSTED", "UNTRUSTED"),
        ],
    )
    def test_the_lowest_holds(self, runner, flag, given, level):
        words = ("--taint", flag) if flag else ()
        env = {**runner.env(), **({"SUB_TAINT": given} if given else {})}
        code, out, _ = runner.run(*words, command=[*PYTHON, SHOW], env=env)
        assert (code, json.loads(out)["SUB_TAINT"]) == (0, level)
        (started,) = starts(runner).values()
        assert started["run"]["taint"] == level

    def test_a_level_that_does_not_exist_is_refused(self, runner):
        env = {**runner.env(), "SUB_TAINT": "LOW"}
        code, _, err = runner.run(command=["true"], env=env)
        assert code == 2
        assert "`LOW` is not a level" in err

    def test_a_run_hands_its_level_on(self, runner):
        inner = [*SUB, "run", "--run-id", "inner", "--", *PYTHON, SHOW]
        lower = [*SUB, "taint", "set", "outer", "UNTRUSTED"]
        both = f'{" ".join(lower)} >&2 && exec "$@"'
        _, out, _ = runner.run("--run-id", "outer", command=["sh", "-c", both, "sh", *inner])
        assert json.loads(out)["SUB_TAINT"] == "UNTRUSTED"
        assert starts(runner)["inner"]["run"]["taint"] == "UNTRUSTED"
