"""`sub run`: identity, exit codes, signals, the terminal, and a run that is closed whatever comes."""

import json
import os
import pty
import signal
import subprocess
import sys

import pytest
from tests.requirements import requirement
from tests.shim.household import SUB, budget, policy, wait_until

PYTHON = [sys.executable, "-I", "-S", "-c"]
SHOW = "import os,json;print(json.dumps({k:v for k,v in os.environ.items() if k[:4]=='SUB_'}))"


def only_run(runner):
    """The one run there is: how it began, and how it ended."""
    (start,), (end,) = runner.events("run_start"), runner.events("run_end")
    assert start["run_id"] == end["run_id"]
    return start, end["run"]


@requirement("001-16E:run")
@requirement("5:set")
def test_stamps_the_agents_identity(runner):
    code, out, err = runner.run(
        *["--agent-id", "fixer", "--env", "ci", "--client", "headless", "--principal", "ada"],
        command=[*PYTHON, SHOW],
        env={**runner.env(), "GITHUB_ACTIONS": "1", "GITHUB_REPOSITORY": "acme/x"},
    )
    assert (code, err) == (0, "")
    seen = json.loads(out)
    assert len(seen.pop("SUB_RUN_ID")) == 36
    assert json.loads(seen.pop("SUB_WORKLOAD"))["repo"] == "acme/x"
    assert {
        name: seen[name] for name in sorted(seen) if "HOME" not in name and "TEST" not in name
    } == {
        "SUB_AGENT_ID": "fixer",
        "SUB_CLIENT": "headless",
        "SUB_ENV": "ci",
        "SUB_PRINCIPAL": "ada",
    }
    start, end = only_run(runner)
    assert (start["agent_id"], start["env"], start["principal"]) == ("fixer", "ci", "ada")
    assert end["status"] == "SUCCEEDED"


@pytest.mark.parametrize(
    ("program", "client"),
    [
        ("gemini", "gemini"),
        ("opencode", "opencode"),
        ("copilot", "copilot"),
        ("cursor-agent", "cursor"),
        ("code", "vscode"),
        ("goose", "custom"),
    ],
)
def test_the_program_names_the_client(runner, tmp_path, program, client):
    script = tmp_path / program
    script.write_text("#!/bin/sh\necho $SUB_CLIENT\n")
    script.chmod(0o755)
    _, out, _ = runner.run(command=[str(script)])
    assert out == f"{client}\n"
    assert only_run(runner)[0]["client"] == client


@pytest.mark.parametrize("client", ["gemini", "opencode", "copilot", "cursor", "vscode"])
def test_a_client_that_is_given_can_be_filtered_for(runner, client):
    runner.run("--client", client, command=["true"])
    runner.run("--client", "custom", command=["true"])
    tail = [*SUB, "tail", "--no-follow", "--all", "--json", f"client:{client}"]
    out = subprocess.run(tail, env=runner.env(), capture_output=True, check=True, timeout=60).stdout
    assert {json.loads(line)["client"] for line in out.splitlines()} == {client}


def test_what_is_not_said_is_seen(runner):
    _, out, _ = runner.run(command=[*PYTHON, SHOW], env={**runner.env(), "USER": "ada"})
    seen = json.loads(out)
    names = ("SUB_AGENT_ID", "SUB_ENV", "SUB_CLIENT", "SUB_PRINCIPAL")
    assert [seen[name] for name in names] == [
        os.path.basename(sys.executable),
        "dev",
        "custom",
        "ada",
    ]


def test_prints_the_run_id_before_anything_else(runner):
    _, out, _ = runner.run("--print-run-id", command=[*PYTHON, SHOW])
    first, rest = out.splitlines()
    assert json.loads(rest)["SUB_RUN_ID"] == first == only_run(runner)[0]["run_id"]


def test_a_policy_is_passed_on_as_a_whole_path(runner):
    runner.write_policy(policy(policy_id="mine"), runner.cwd / "mine.yaml")
    code, out, _ = runner.run("--policy", "mine.yaml", command=[*PYTHON, SHOW])
    assert code == 0
    assert json.loads(out)["SUB_POLICY"] == str(runner.cwd / "mine.yaml")
    assert only_run(runner)[0]["run"]["policy"]["policy_id"] == "mine"


def test_a_policy_that_does_not_compile_starts_nothing(runner):
    (runner.cwd / "bad.yaml").write_text("rules: 7\n")
    code, out, err = runner.run("--policy", "bad.yaml", command=[*PYTHON, "print(1)"])
    assert (code, out) == (2, "")
    assert "bad.yaml" in err
    assert runner.events() == []


def test_without_a_command(runner):
    code, _, err = runner.run(command=[])
    assert code == 2
    assert err == (
        "error: the agent's command is missing\nhint: write `sub run -- COMMAND [ARG…]`\n"
    )


@pytest.mark.parametrize(("program", "code"), [("no-such-agent", 127), ("/etc/passwd", 126)])
def test_an_agent_that_cannot_start(runner, program, code):
    assert runner.run(command=[program])[0] == code
    assert only_run(runner)[1]["status"] == "FAILED"


@pytest.mark.parametrize(
    ("ending", "code", "status"),
    [
        ("_exit(0)", 0, "SUCCEEDED"),
        ("_exit(7)", 7, "FAILED"),
        ("kill(getpid(), 11)", 139, "FAILED"),
        ("kill(getpid(), 2)", 130, "CANCELLED"),
    ],
)
def test_the_agents_end_is_ours(runner, ending, code, status):
    assert (
        runner.run(
            command=[
                *PYTHON,
                f"from os import _exit,getpid,kill;import signal;signal.signal(2,signal.SIG_DFL);{ending}",
            ]
        )[0]
        == code
    )
    assert only_run(runner)[1]["status"] == status


def test_a_whole_run_through_a_shim(runner):
    runner.write_policy(policy(budget(2)))
    code, out, _ = runner.run(command=runner.agent("exit=0", "echo", "fail", "echo"))
    assert (code, out.split()) == (0, ["echo", "0", "fail", "0", "echo", "-32081"])
    _, end = only_run(runner)
    assert end["status"] == "SUCCEEDED"
    summary = {name: count for name, count in end["summary"].items() if name != "duration_ms"}
    assert summary == {
        "calls_total": 3,
        "calls_allowed": 2,
        "calls_blocked": 1,
        "calls_throttled": 0,
        "errors_total": 2,
    }
    assert runner.alive() == []


def test_a_terminated_run_says_so_whatever_the_agent_returns(runner):
    runner.write_policy(policy(budget(1, "TERMINATE_RUN")))
    code, _, err = runner.run(command=runner.agent("exit=0", "echo", "echo"))
    assert code == 0
    assert err.splitlines()[-1].startswith("sub: policy terminated this run")
    assert only_run(runner)[1]["status"] == "TERMINATED"


def test_one_that_leaves_everything_behind(runner):
    """A daemon that is deaf to SIGTERM, and a shim that nobody closed."""
    code, _, _ = runner.run(command=runner.agent("abandon", "echo", server=["daemon"]))
    assert code == 0
    assert runner.alive() == []
    assert only_run(runner)[1]["status"] == "SUCCEEDED"


def test_background_processes_end_with_the_agent(runner):
    code, _, _ = runner.run(command=["sh", "-c", "setsid sleep 1000 >/dev/null 2>&1 & exit 0"])
    assert code == 0
    assert runner.alive() == []
    (killed,) = runner.events("shim_health")
    assert killed["health"]["detail"].startswith("`")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signals_are_passed_on(runner, number):
    process = runner.start_run(command=runner.agent("hang", "echo"))
    assert process.stdout.readline() == "echo 0\n"
    assert process.stdout.readline() == "hanging\n"
    process.send_signal(number)
    assert process.wait(20) in (128 + number, 1)  # Python turns SIGINT into an exception
    assert runner.alive() == []
    assert only_run(runner)[1]["status"] in ("CANCELLED", "FAILED")


def test_a_signal_that_the_agent_handles_is_its_own_affair(runner):
    code = "import signal,sys;signal.signal(15,lambda *_:sys.exit(5));print(1,flush=True);signal.pause()"
    process = runner.start_run(command=[*PYTHON, code])
    process.stdout.readline()
    process.terminate()
    assert process.wait(20) == 5
    assert only_run(runner)[1]["reason"] == "the agent ended with exit code 5"


def test_killed_without_a_word_it_takes_the_agent_along(runner):
    process = runner.start_run(command=runner.agent("hang", "echo"))
    process.stdout.readline()
    process.kill()
    process.wait(20)
    runner.wait_empty()


def test_the_agent_is_in_the_terminals_foreground(runner):
    """And what the terminal sends is not sent twice."""
    script = (
        "import os,signal;signal.pthread_sigmask(signal.SIG_BLOCK,[2]);"
        "print('fore',os.tcgetpgrp(0)==os.getpgrp(),flush=True);"
        "signal.sigwait([2]);twice=signal.sigtimedwait([2],0.3);print('got',2 if twice else 1)"
    )
    master, slave = pty.openpty()
    process = runner.start_run(
        command=[*PYTHON, script],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        text=None,
        start_new_session=True,
        preexec_fn=lambda: __import__("fcntl").ioctl(0, __import__("termios").TIOCSCTTY, 0),
    )
    os.close(slave)
    seen = b""

    def reads(word):
        nonlocal seen
        try:
            seen += os.read(master, 4096)
        except OSError:  # the terminal is closed
            return True
        return word in seen

    wait_until(lambda: reads(b"fore True"), "the agent")
    os.write(master, b"\x03")
    wait_until(lambda: reads(b"got"), "the interrupt")
    assert b"got 1" in seen
    assert process.wait(20) == 0
    os.close(master)


_SHELL = """
import os, signal, sys, fcntl, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
pid = os.fork()
if pid == 0:
    os.setpgid(0, 0)
    os.tcsetpgrp(0, os.getpid())
    os.execv(sys.argv[1], sys.argv[1:])
status = os.waitpid(pid, os.WUNTRACED)[1]
print("stopped", os.WIFSTOPPED(status), flush=True)
os.tcsetpgrp(0, pid)
os.killpg(pid, signal.SIGCONT)
print("code", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
"""


def test_a_shell_can_stop_and_continue_it(runner):
    """Ctrl-Z stops agent and us together; the shell goes on with both."""
    agent = "import sys;print('ready',flush=True);print('got',sys.stdin.readline(),flush=True);sys.exit(4)"
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [*PYTHON, _SHELL, *SUB, "run", "--", *PYTHON, agent],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env=runner.env(),
        cwd=runner.cwd,
        start_new_session=True,
    )
    runner.started.append(process)
    os.close(slave)
    seen = b""
    for word, answer in ((b"ready", b"\x1a"), (b"stopped True", b"hello\n"), (b"code 4", b"")):
        while word not in seen:
            seen += os.read(master, 4096)
        os.write(master, answer)
    assert b"got hello" in seen
    assert process.wait(20) == 0
    os.close(master)
    assert only_run(runner)[1]["status"] == "FAILED"


def test_two_runs_are_two_runs(runner):
    runner.run(command=["true"])
    runner.run(command=["true"])
    assert len({event["run_id"] for event in runner.events("run_start")}) == 2


def test_a_directory_that_is_no_text(runner):
    project = os.path.join(os.fsencode(runner.cwd), b"caf\xe9")
    os.makedirs(os.path.join(project, b".git"))
    code, out, err = runner.run(command=[*PYTHON, SHOW], cwd=project)
    assert (code, err) == (0, "")
    assert json.loads(json.loads(out)["SUB_WORKLOAD"])["repo_path"].endswith(r"caf\udce9")
    start, _ = only_run(runner)
    assert start["workload"]["repo_path"].endswith(r"caf\udce9")
