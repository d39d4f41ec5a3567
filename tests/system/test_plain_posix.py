"""With SUB_PLAIN_POSIX=1 no call is made that only Linux has, and everything still works."""

import ast
import json
import os
import pathlib
import subprocess
import sys

import pytest
from tests.processes import kill_with_warden
from tests.shim.household import SUB, WITHIN_S, Household, budget, deny, policy, wait_until

import subluminal
from subluminal.system import LINUX, PLAIN_POSIX

SOURCE = pathlib.Path(subluminal.__file__).parent
ELSEWHERE = pathlib.Path(__file__).parent / "elsewhere"
LINUX_ONLY = {
    *("prctl", "pidfd_open", "memfd_create", "MFD_CLOEXEC", "posix_fallocate", "O_PATH"),
    *("O_TMPFILE", "CLOCK_BOOTTIME", "F_SETPIPE_SZ", "F_GETPIPE_SZ", "sigwaitinfo"),
    *("sigtimedwait", "renameat2", "listxattr", "getxattr", "setxattr", "epoll", "eventfd"),
    *("inotify_init", "splice", "SO_PEERCRED", "sched_getaffinity", "getresuid", "waitid"),
    *("F_OFD_SETLK", "copy_file_range", "posix_fadvise", "timerfd_create", "unshare", "setns"),
}


def uses_of_linux(path):
    """Finds names that only Linux has, and strings with a path in /proc, in a module's code."""
    tree = ast.parse(path.read_text())
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in LINUX_ONLY:
            yield node.attr
        is_text = isinstance(node, ast.Constant) and id(node) not in docs
        # `core/targets` reads the command lines of agents, who may name a path in /proc.
        if is_text and path.parent.name != "targets" and str(node.value).startswith("/proc"):
            yield str(node.value)


def test_only_the_system_package_knows_linux():
    found = {
        (path.relative_to(SOURCE).as_posix(), use)
        for path in SOURCE.rglob("*.py")
        for use in uses_of_linux(path)
    }
    assert {use for use in found if not use[0].startswith("system/")} == set()
    assert found, "the search finds the uses that are known"


@pytest.fixture
def notes(tmp_path):
    return tmp_path / "uses of Linux"


@pytest.fixture
def elsewhere(tmp_path, own_home, notes):
    """A household on a machine without Linux's calls; every use of them is noted."""

    class Elsewhere(Household):
        def env(self, **more):
            own = {PLAIN_POSIX: "1", "NOT_LINUX": str(notes), "PYTHONPATH": str(ELSEWHERE)}
            return super().env(**own, **more)

    home = Elsewhere(tmp_path, own_home)
    yield home
    home.clean()


def sub(home, *words, **env):
    return subprocess.run(
        [*SUB, *words],
        env=home.env(**env),
        cwd=home.cwd,
        capture_output=True,
        timeout=WITHIN_S,
        check=False,
    )


def test_a_life_of_shims_makes_no_call_of_linux(elsewhere, notes):
    elsewhere.hurry()
    elsewhere.write_policy(policy(deny("rm"), budget(100)))
    shims = [elsewhere.start("daemon", run=None).ready() for _ in range(2)]
    assert [shim.code("echo") for shim in shims] == [0, 0]
    assert shims[0].code("rm") < 0
    assert shims[0].code("echo", {"text": "x" * 3_000_000}) == 0, "a line that goes to the disk"
    assert sub(elsewhere, "kill", "--all", "--reason", "enough").returncode == 0
    assert shims[1].code("echo") < 0
    assert sub(elsewhere, "revive", "--all", "--reason", "again").returncode == 0
    shims[0].close()
    shims[0].wait()
    kill_with_warden(shims[1].pid)
    shims[1].process.wait(WITHIN_S)
    elsewhere.wait_empty()
    assert sub(elsewhere, "doctor").returncode in (0, 1)
    assert len(elsewhere.events("run_start")) == 1, "one client, one run"
    wait_until(lambda: elsewhere.events("run_end"), "whoever looks closes the run")
    assert not notes.exists() or notes.read_text() == ""


def test_commands_make_no_call_of_linux(elsewhere, notes, tmp_path):
    config = tmp_path / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {"echo": {"command": "echo", "args": ["x"]}}}))
    home = {"HOME": str(tmp_path)}
    done = sub(elsewhere, "import", "claude", "--path", str(config), "--yes", **home)
    assert done.returncode == 0, done.stderr
    assert sub(elsewhere, "import", "codex", "--check", **home).returncode in (0, 1)
    agent = ["sh", "-c", "sleep 0.01 & exit 7"]
    assert sub(elsewhere, "run", "--", *agent).returncode == 7
    runtime = elsewhere.tmp_path / ("long" * 20) / ("longer" * 10)
    try:
        started = sub(elsewhere, "ledgerd", "start", SUB_RUNTIME_DIR=str(runtime))
        assert started.returncode == 0, started.stderr
        rows = sub(elsewhere, "query", "runs", "--json", SUB_RUNTIME_DIR=str(runtime))
        assert json.loads(rows.stdout)["status"] == "FAILED"
    finally:
        sub(elsewhere, "ledgerd", "stop", SUB_RUNTIME_DIR=str(runtime))
    elsewhere.wait_empty()
    assert not notes.exists() or notes.read_text() == ""


def test_uses_are_noticed(elsewhere, notes):
    """Without the variable, the same shim makes such calls, and the notes say so."""
    words = [*SUB, "version"]
    code = "import subluminal.system.processes as p; p.process(1); p.table()"
    env = {**elsewhere.env(), PLAIN_POSIX: "0"}
    subprocess.run([sys.executable, "-P", "-c", code], env=env, check=True, timeout=WITHIN_S)
    assert "open /proc/1/stat" in notes.read_text()
    assert subprocess.run(words, env=env, check=False, stdout=-3, timeout=WITHIN_S).returncode == 0


def test_the_variable_decides_on_linux():
    code = "import subluminal.system as s; print(s.LINUX)"
    answers = [
        subprocess.run(
            [sys.executable, "-P", "-c", code],
            env={**os.environ, PLAIN_POSIX: value},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for value in ("", "0", "1")
    ]
    assert answers == ["True", "True", "False"]
    assert LINUX is (os.environ.get(PLAIN_POSIX) != "1")
