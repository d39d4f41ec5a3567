"""`sub scan --start`: asks, starts servers under a warden, lists their tools, calls nothing."""

import json
import os
import pty
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.processes import Marked, wait_until
from tests.requirements import requirement

SUB = Path(sys.executable).with_name("sub")
PROBE = Path(__file__).with_name("probe_server.py")
SECRET = "q7Gd0aXcV2bN-never-shown"
FLOOD = "while :; do head -c 1000000 /dev/zero | tr '\\0' x; echo; done"


class Stage(NamedTuple):
    """A home with one configured server."""

    home: Path
    notes: Path
    marked: Marked
    environ: dict[str, str]

    def configure(self, behaviour: str = "", **more: Any) -> None:
        # As an argument: the scan would keep a variable of this name from the server.
        token = f"SUB_TEST_TOKEN={self.marked.token}"
        args = [token, sys.executable, str(PROBE), str(self.notes)]
        args += [behaviour] if behaviour else []
        env = {
            "API_KEY": SECRET,
            "PLAIN": "yes",
            "FILLED": "${FROM_SHELL:-given}",
            "ALSO_TOKEN": "${MY_TOKEN}",
        }
        entry = {"command": "env", "args": args, "env": env, **more}
        (self.home / ".claude.json").write_text(json.dumps({"mcpServers": {"probe": entry}}))

    def scan(self, *words: str, **environ: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [SUB, "scan", "claude", *words],
            cwd=self.home,
            env={**self.environ, **environ},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )

    def noted(self, kind: str) -> list[Any]:
        if not self.notes.exists():
            return []
        lines = [json.loads(line) for line in self.notes.read_text().splitlines()]
        return [value for what, value in lines if what == kind]


@pytest.fixture
def stage(tmp_path: Path, user_home: Path, subreaper: None) -> Stage:
    marked = Marked()
    environ = {
        "HOME": str(user_home),
        "PATH": os.environ["PATH"],
        "SUB_HOME": str(tmp_path / "sub"),
        "MY_TOKEN": SECRET,
        "OTHER_SECRET": SECRET,
        "SUB_TEST_TOKEN": marked.token,
    }
    return Stage(user_home, tmp_path / "notes", marked, environ)


def rules(ran: "subprocess.CompletedProcess[str]") -> set[str]:
    rows = [json.loads(line) for line in ran.stdout.splitlines()]
    return {finding["rule"] for row in rows for finding in row["findings"]}


@pytest.mark.parametrize("behaviour", ["", "chatty", "modern", "greedy"])
@requirement("trust:scan-start")
def test_tools_are_listed_page_by_page_and_nothing_is_called(stage: Stage, behaviour: str) -> None:
    stage.configure(behaviour)
    ran = stage.scan("--start", "--yes", "--format", "json")
    assert ran.returncode == 0, ran.stderr
    assert ("HIDDEN_INSTRUCTIONS" in rules(ran)) is (behaviour != "greedy")
    asked = [line["method"] for line in stage.noted("line") if "method" in line]
    assert set(asked) <= {"initialize", "notifications/initialized", "tools/list"}
    assert asked.count("tools/list") == 2
    assert stage.noted("env")[0]["SUB_TEST_TOKEN"] == stage.marked.token
    stage.marked.wait_empty()


@requirement("trust:scan-start")
def test_a_server_gets_no_secret(stage: Stage) -> None:
    stage.configure()
    ran = stage.scan("--start", "--yes")
    (given,) = stage.noted("env")
    assert given["API_KEY"] == given["ALSO_TOKEN"] == "sub-scan-placeholder"
    assert (given["PLAIN"], given["FILLED"]) == ("yes", "given")
    assert "OTHER_SECRET" not in given
    assert not [name for name in given if name.startswith("SUB_HOME")]
    assert SECRET not in stage.notes.read_text() + ran.stdout + ran.stderr


@requirement("trust:scan-start")
def test_a_stubborn_server_leaves_no_process(stage: Stage) -> None:
    stage.configure("stubborn")
    assert "HIDDEN_INSTRUCTIONS" in rules(stage.scan("--start", "--yes", "--format", "json"))
    stage.marked.wait_empty()


def test_a_scan_that_is_killed_leaves_no_process(stage: Stage) -> None:
    stage.configure("silent")
    words = [SUB, "scan", "claude", "--start", "--yes"]
    with subprocess.Popen(
        words, cwd=stage.home, env=stage.environ, stderr=subprocess.DEVNULL
    ) as run:
        wait_until(lambda: stage.noted("line"), "the server was asked")
        run.kill()
    stage.marked.wait_empty()


@requirement("trust:scan-no-secret")
@pytest.mark.parametrize("place", ["args", "env"])
def test_what_only_the_client_can_fill_in_is_told_without_what_stands_beside_it(
    stage: Stage, place: str
) -> None:
    text = "q7Gd0aXcV2bN-${HIDDEN}${input:rest}"
    more = {"args": [f"--token={text}"]} if place == "args" else {"env": {"API_KEY": text}}
    stage.environ["HIDDEN"] = "hunter2hunter2"
    stage.configure(command="true", **more)
    ran = stage.scan("--start", "--yes")
    assert "only the client can fill in `${input:rest}`" in ran.stderr
    assert "q7Gd0aXcV2bN" not in ran.stderr + ran.stdout
    assert "hunter2" not in ran.stderr + ran.stdout


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ({"command": "/nowhere/at/all"}, "cannot start `/nowhere/at/all`: no such file"),
        ({"command": "sh", "args": ["-c", "echo ERR: no key >&2; exit 7"]}, "code 7: ERR: no key"),
        ({"command": "true"}, "it exited with code 0"),
        ({"command": "npx", "args": ["x@${input:version}"]}, "only the client can fill in"),
        ({"command": "sh", "args": ["-c", FLOOD]}, "it wrote more than 64 MiB"),
    ],
)
def test_a_server_that_does_not_list_is_named(stage: Stage, command: Any, why: str) -> None:
    stage.configure(**command)
    ran = stage.scan("--start", "--yes")
    assert ran.returncode == 0
    assert why in ran.stderr
    stage.marked.wait_empty()


@requirement("trust:scan-start")
def test_a_server_that_closes_its_output_and_talks_on_is_left_at_the_deadline(stage: Stage) -> None:
    """It writes to stderr without end, and never ends itself."""
    words = ["sh", "-c", "exec 1>&-; while :; do echo busy >&2; sleep 0.05; done"]
    script = (
        "import sys; from subluminal.operator.listing import Command, list_tools\n"
        "from subluminal.errors import SubluminalError\n"
        f"command = Command('s', {words!r}, {{'PATH': {os.environ['PATH']!r}, "
        f"'SUB_TEST_TOKEN': {stage.marked.token!r}}}, ())\n"
        "try: list_tools(command, '/', timeout_s=1)\n"
        "except SubluminalError as error: print(error)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert ran.stdout == "it closed its output: busy\n", ran.stderr
    stage.marked.wait_empty()


def test_a_server_behind_our_shim_is_started_without_it(stage: Stage) -> None:
    stage.configure()
    inner = [sys.executable, str(PROBE), str(stage.notes)]
    words = ["shim", "stdio", "--server", "probe", "--", *inner]
    stage.configure(command="/gone/bin/sub", args=words)
    assert "HIDDEN_INSTRUCTIONS" in rules(stage.scan("--start", "--yes", "--format", "json"))


@requirement("trust:scan-start")
def test_without_a_terminal_nothing_is_started_unless_yes_is_said(stage: Stage) -> None:
    stage.configure()
    ran = stage.scan("--start")
    assert ran.returncode == 2
    assert "no terminal to ask at" in ran.stderr
    assert stage.noted("env") == []


@requirement("trust:scan-start")
def test_an_agent_cannot_start_servers(stage: Stage) -> None:
    stage.configure()
    ran = stage.scan("--start", "--yes", CLAUDECODE="1")
    assert ran.returncode == 2
    assert "is for a person to run" in ran.stderr
    assert stage.noted("env") == []


def read_all(terminal: int) -> bytes:
    """Reads what was written to a terminal whose other end is closed; one read has only a part."""
    said = b""
    with suppress(OSError):
        while data := os.read(terminal, 65_536):
            said += data
    os.close(terminal)
    return said


@pytest.mark.parametrize(("answer", "starts"), [(b"y\n", True), (b"\n", False), (b"n\n", False)])
@requirement("trust:scan-start")
def test_a_person_is_asked(stage: Stage, answer: bytes, starts: bool) -> None:
    stage.configure()
    ours, theirs = pty.openpty()
    os.write(ours, answer)
    words = [SUB, "scan", "claude", "--start", "--format", "json"]
    with subprocess.Popen(
        words,
        cwd=stage.home,
        env=stage.environ,
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=theirs,
    ) as run:
        os.close(theirs)
        out, _ = run.communicate(timeout=60)
    said = read_all(ours).decode()
    assert "start 1 program? They run with your rights." in said
    assert str(PROBE) in said.replace("\r\n", "")
    assert "without API_KEY, ALSO_TOKEN" in said
    assert SECRET not in said
    assert bool(stage.noted("env")) is starts
    assert (run.returncode, bool(out)) == ((0, True) if starts else (2, False))


def test_a_server_reached_by_url_is_not_contacted(stage: Stage) -> None:
    entry = {"type": "http", "url": "http://127.0.0.1:9/mcp"}
    (stage.home / ".claude.json").write_text(json.dumps({"mcpServers": {"far": entry}}))
    ran = stage.scan("--start", "--yes")
    assert ran.returncode == 0
    assert "`far` is reached by URL, so it is not started" in ran.stderr


def test_yes_alone_is_refused(stage: Stage) -> None:
    assert stage.scan("--yes").returncode == 2


def test_two_servers_of_one_name_are_not_mixed_up(stage: Stage) -> None:
    """A project's server may have the name of the user's own, and be another program."""
    stage.configure()
    (stage.home / ".mcp.json").write_text('{"mcpServers": {"probe": {"command": "true"}}}')
    ran = stage.scan("--start", "--yes", "--format", "json")
    rows = [json.loads(line) for line in ran.stdout.splitlines()]
    poisoned = [row["file"] for row in rows if "HIDDEN_INSTRUCTIONS" in str(row["findings"])]
    assert (len(rows), poisoned) == (2, [str(stage.home / ".claude.json")])
    assert "`probe` listed no tools" in ran.stderr


def test_a_server_that_is_switched_off_is_not_started(stage: Stage) -> None:
    folder = stage.home / ".codex"
    folder.mkdir()
    words = json.dumps([str(PROBE), str(stage.notes)])
    (folder / "config.toml").write_text(
        f'[mcp_servers.s]\ncommand = "{sys.executable}"\nargs = {words}\nenabled = false\n'
    )
    assert stage.scan("codex", "--start", "--yes").returncode == 0
    assert stage.noted("env") == []
