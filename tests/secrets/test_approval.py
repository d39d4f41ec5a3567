"""A stored secret serves only the command that a person approved, whoever names the server.

Each test runs the real `sub shim stdio`; the server is a program that prints its environment.
"""

import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from subluminal.config.places import places
from subluminal.config.settings import SecretsSettings
from subluminal.secrets.file_store import FileStore
from subluminal.secrets.steering_variables import STEERING_VARIABLES

VALUE = "s3cr3t-V4lue-here"
STORED = """
[[servers.github.secret_bindings]]
inject_as = "GITHUB_TOKEN"
secret_ref = "github_token"
source = "file"
"""


class Ran(NamedTuple):
    """What a server printed, what the shim said, and what was recorded of its secrets."""

    env: dict[str, str]
    err: str
    injections: list[dict[str, Any]]


@pytest.fixture
def printer(tmp_path: Path) -> Path:
    """A program that prints its environment, as an interpreter finds `env`."""
    return script(tmp_path / "bin" / "printer", "#!/bin/sh\nexec env -0\n")


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    folder.mkdir()
    return folder


def script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(stat.S_IRWXU)
    return path


@pytest.fixture
def settings(own_home: Path) -> Callable[[str], Path]:
    """Writes `config.toml`, and stores the secret."""

    def write(text: str) -> Path:
        own_home.mkdir(parents=True, exist_ok=True)
        file = own_home / "config.toml"
        file.write_text(text)
        store = FileStore(places(os.environ), SecretsSettings(keychain_wait_ms=1))
        store.write("github_token", VALUE, "2026-11-15T12:00:00.000Z")
        return file

    return write


@pytest.fixture
def start(own_home: Path, work: Path) -> Callable[..., Ran]:
    """Starts a server through a shim, as an entry of a client does, and waits for its end."""

    def go(*command: str, cwd: Path | None = None, **env: str) -> Ran:
        shim = [sys.executable, "-P", "-m", "subluminal", "shim", "stdio", "--server", "github"]
        ran = subprocess.run(
            [*shim, "--", *command],
            env={**os.environ, **env},
            cwd=cwd or work,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=60,
        )
        pairs = [line.partition("=") for line in ran.stdout.decode().split("\0") if "=" in line]
        events = [
            json.loads(line)
            for file in sorted(own_home.rglob("*.jsonl"))
            for line in file.read_text().splitlines()
        ]
        told = [event["injection"] for event in events if event["type"] == "secret_injection"]
        return Ran({name: value for name, _, value in pairs}, ran.stderr.decode(), told)

    return go


def approved(command: list[str], more: str = "") -> str:
    return f"[servers.github]\ncommand = {json.dumps(command)}\n{more}{STORED}"


def test_the_approved_command_gets_the_value(settings: Any, start: Any, printer: Path) -> None:
    settings(approved([str(printer), "a"]))
    ran = start(str(printer), "a")
    assert ran.env["GITHUB_TOKEN"] == VALUE
    assert (ran.err, [i["success"] for i in ran.injections]) == ("", [True])


def test_another_command_gets_no_value_and_one_sentence(
    settings: Any, start: Any, printer: Path
) -> None:
    """It is started all the same: another project may have a server of the same name."""
    settings(approved([str(printer), "a"]))
    ran = start(str(printer), "b", GITHUB_TOKEN="sub-secret:file:github_token")
    assert "PATH" in ran.env
    assert "GITHUB_TOKEN" not in ran.env, "nor the note of an import"
    why = "server `github` gets no stored secret: its command is not the one that was approved"
    assert ran.err == (
        f"warning: {why}\nhint: if you trust this command, run "
        f"`sub secrets approve github -- {printer} b` in your own terminal\n"
    )
    assert [(i["success"], i["detail"]) for i in ran.injections] == [(False, why)]


@pytest.mark.parametrize("command", [["printenv", "GITHUB_TOKEN"], ["env"], ["sh", "-c", "env"]])
def test_a_home_from_before_approvals_gives_nothing_away(
    settings: Any, start: Any, command: list[str]
) -> None:
    settings(STORED)
    ran = start(*command)
    assert "GITHUB_TOKEN" not in ran.env
    assert "no command was approved for it" in ran.err
    assert VALUE not in ran.err


def test_a_caller_s_own_variable_needs_no_approval(settings: Any, start: Any) -> None:
    settings(STORED.replace('"file"', '"env"').replace("github_token", "GH"))
    ran = start("env", "-0", GH="own-value-1")
    assert ran.env["GITHUB_TOKEN"] == "own-value-1"
    assert ran.err == ""


def test_a_caller_s_own_variable_is_given_beside_a_refused_one(settings: Any, start: Any) -> None:
    own = STORED.replace('"file"', '"env"').replace("GITHUB_TOKEN", "OTHER")
    settings(STORED + own.replace("github_token", "GH"))
    ran = start("env", "-0", GH="own-value-1")
    assert ran.env["OTHER"] == "own-value-1"
    assert "GITHUB_TOKEN" not in ran.env


# What a project's entry can change while the words stay the same.


@pytest.mark.parametrize("more", ["", 'pass_env = ["PATH"]\n'])
def test_a_name_starts_the_approved_program_and_not_what_path_finds(
    settings: Any, start: Any, printer: Path, work: Path, more: str
) -> None:
    settings(approved([str(printer)], more))
    script(work / "bin" / "printer", "#!/bin/sh\necho EVIL=1; exec env -0\n")
    ran = start("printer", PATH=f"{work}/bin:{os.environ['PATH']}")
    assert ran.env["GITHUB_TOKEN"] == VALUE
    assert "EVIL" not in ran.env


@pytest.mark.parametrize("word", ["./printer", "bin/../printer", "{work}/printer"])
def test_a_path_into_the_repository_is_another_command(
    settings: Any, start: Any, printer: Path, work: Path, word: str
) -> None:
    settings(approved([str(printer)]))
    script(work / "printer", "#!/bin/sh\nexec env -0\n")
    (work / "bin").mkdir()
    ran = start(word.format(work=work))
    assert "PATH" in ran.env
    assert "GITHUB_TOKEN" not in ran.env


def test_path_and_home_do_not_come_from_the_entry(
    settings: Any, start: Any, printer: Path, work: Path
) -> None:
    """`npx` and others find their interpreter in PATH, and their settings in HOME."""
    script(work / "bin" / "env", "#!/bin/sh\necho EVIL=1; exec /usr/bin/env -0\n")
    settings(approved([str(printer)]))
    ran = start(str(printer), PATH=f"{work}/bin:{os.environ['PATH']}", HOME=str(work))
    assert "EVIL" not in ran.env
    assert ran.env["PATH"] == f"{printer.parent}:/usr/local/bin:/usr/bin:/bin"
    assert ran.env["HOME"] != str(work)
    assert ran.env["GITHUB_TOKEN"] == VALUE
    settings(approved([str(printer)], 'env = { PATH = "/usr/bin", HOME = "/h" }\n'))
    ran = start(str(printer), PATH=f"{work}/bin:{os.environ['PATH']}", HOME=str(work))
    assert (ran.env["PATH"], ran.env["HOME"]) == ("/usr/bin", "/h")


def test_variables_that_change_what_runs_are_withheld_unless_a_person_names_them(
    settings: Any, start: Any, printer: Path
) -> None:
    # Variables of the dynamic loader would stop the test's own processes.
    names = [
        name.replace("*", "X") for name in STEERING_VARIABLES if name[:3] not in ("LD_", "DYL")
    ]
    evil = {name: "/evil" for name in [*names, "LD_X"] if not name.startswith("PYTHON")}
    settings(approved([str(printer)]))
    ran = start(str(printer), **evil, GITHUB_HOST="h")
    assert not set(evil) & set(ran.env)
    assert ran.env["GITHUB_HOST"] == "h"
    more = 'pass_env = ["NODE_OPTIONS"]\nenv = { UV_INDEX = "mine", GITHUB_HOST = "mine" }\n'
    settings(approved([str(printer)], more))
    ran = start(str(printer), **evil, GITHUB_HOST="h")
    assert set(evil) & set(ran.env) == {"NODE_OPTIONS"}
    assert (ran.env["UV_INDEX"], ran.env["GITHUB_HOST"]) == ("mine", "mine")


def test_a_server_without_stored_secrets_keeps_its_environment(
    settings: Any, start: Any, printer: Path
) -> None:
    settings(f"[servers.github]\ncommand = {json.dumps([str(printer)])}\n")
    ran = start(str(printer), NODE_OPTIONS="--x")
    assert ran.env["NODE_OPTIONS"] == "--x"
    assert ran.env["PATH"] == os.environ["PATH"]


@pytest.mark.parametrize("word", ["server.js", "--require=server.js"])
def test_a_file_of_the_directory_is_not_what_was_approved(
    settings: Any, start: Any, printer: Path, work: Path, word: str
) -> None:
    settings(approved([str(printer), word]))
    assert start(str(printer), word).env["GITHUB_TOKEN"] == VALUE, "there is no such file"
    (work / "server.js").touch()
    ran = start(str(printer), word)
    assert "GITHUB_TOKEN" not in ran.env
    assert "`server.js` is a file in the directory where the server starts" in ran.err
    assert "hint: write absolute paths" in ran.err, "the same approval again would not help"


@pytest.mark.parametrize(
    ("word", "file"),
    [("server", "server/index.js"), ("server", "server.js"), ("./a/b", "a/b.ts")],
)
@pytest.mark.parametrize("interpreter", ["node", "python3.11"])
def test_nor_is_a_directory_that_an_interpreter_would_run(
    settings: Any, start: Any, tmp_path: Path, work: Path, word: str, file: str, interpreter: str
) -> None:
    """`node .` is the server of whoever owns the directory: each repository has one."""
    program = script(tmp_path / "bin" / interpreter, "#!/bin/sh\nexec env -0\n")
    settings(approved([str(program), word]))
    assert start(interpreter, word).env["GITHUB_TOKEN"] == VALUE, "there is nothing of that name"
    (work / file).parent.mkdir(exist_ok=True)
    (work / file).touch()
    ran = start(interpreter, word)
    assert "GITHUB_TOKEN" not in ran.env
    assert f"`{word}` is code in the directory where the server starts" in ran.err


def test_a_directory_is_only_data_to_another_program(
    settings: Any, start: Any, printer: Path, work: Path
) -> None:
    settings(approved([str(printer), "stdio"]))
    (work / "stdio").mkdir()
    assert start(str(printer), "stdio").env["GITHUB_TOKEN"] == VALUE


def test_an_approval_by_name_only_is_not_used(settings: Any, start: Any) -> None:
    settings(approved(["env", "-0"]))
    ran = start("env", "-0")
    assert "GITHUB_TOKEN" not in ran.env
    assert "`env` is not an absolute path" in ran.err


def test_the_sentence_repeats_no_token_and_no_control_character(settings: Any, start: Any) -> None:
    settings(STORED)
    token = "ghp_" + "a1B2" * 9
    ran = start("true", f"--token={token}", "\x1b[2J\u202e")
    assert token not in ran.err
    assert not {"\x1b", "\u202e"} & set(ran.err)


# What a person does.


def test_approving_writes_what_the_shim_wants(
    sub: Any, settings: Any, start: Any, printer: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = settings("# mine\n" + STORED.replace("]]", "]] # a token"))
    monkeypatch.setenv("PATH", f"{printer.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("NODE_OPTIONS", "--x")
    monkeypatch.setenv("SSL_CERT_FILE", "/etc/ca.pem")
    assert sub("secrets", "check").code == 1
    ran = sub("secrets", "approve", "--env", "A=1", "--env", "B", "github", "--", "printer", "-y")
    assert ran.code == 0, ran
    assert f"only as `{printer} -y`" in ran.out
    assert "It gets `GITHUB_TOKEN` at its next start." in ran.err
    assert "`NODE_OPTIONS`" in ran.err
    text = file.read_text()
    assert text.startswith("# mine\n\n[[servers.github.secret_bindings]] # a token\n")
    assert sub("secrets", "check").code == 0
    shown = start("printer", "-y", B="2", SSL_CERT_FILE="/evil.pem").env
    assert (shown["GITHUB_TOKEN"], shown["A"], shown["B"]) == (VALUE, "1", "2")
    assert shown["PATH"] == os.environ["PATH"]
    assert shown["SSL_CERT_FILE"] == "/etc/ca.pem"
    wrapped = ["/x/sub", "shim", "stdio", "--server", "github", "--", "printer"]
    ran = sub("secrets", "approve", "--json", "github", "--", *wrapped)
    assert json.loads(ran.out)["command"] == [str(printer)], "the wrapper is not a part of it"
    assert start("printer").env["GITHUB_TOKEN"] == VALUE


def test_relative_directories_of_path_are_not_approved(
    sub: Any, settings: Any, work: Path, printer: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings(STORED)
    script(work / "bin" / "printer", "#!/bin/sh\n")
    monkeypatch.chdir(work)
    monkeypatch.setenv("PATH", f"bin::.:{printer.parent}:/usr/bin")
    ran = sub("secrets", "approve", "--json", "github", "--", "printer")
    told = json.loads(ran.out)
    assert told["command"] == [str(printer)]
    assert told["env"]["PATH"] == f"{printer.parent}:/usr/bin"


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["github"], "the server's command is missing"),
        (["github", "--"], "the server's command is missing"),
        (["github", "--", "no-such-program"], "cannot find the program `no-such-program`"),
        (["github", "--", "./x"], "`./x` is another program in another directory"),
        (["github", "--", "env", "config.toml"], "`config.toml` is a file in the directory"),
        (["github", "--", "sh", "."], "`.` is code in the directory"),
        (["github", "--env", "A", "--", "env"], "`--env` must stand before NAME"),
        (["--env", "=x", "github", "--", "env"], "`=x` does not name a variable"),
    ],
    ids=str,
)
def test_an_approval_that_cannot_hold_is_refused(
    sub: Any, settings: Any, own_home: Path, monkeypatch: pytest.MonkeyPatch, words: Any, error: str
) -> None:
    file = settings(STORED)
    monkeypatch.chdir(own_home)
    ran = sub("secrets", "approve", *words)
    assert (ran.code, file.read_text()) == (2, STORED)
    assert error in ran.err


def test_only_a_person_approves(
    sub: Any, settings: Any, own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = settings(STORED)
    with monkeypatch.context() as patch:
        patch.setenv("CLAUDECODE", "1")
        for words in (["secrets", "approve", "github", "--", "env"], ["import", "--bind-secrets"]):
            ran = sub(*words)
            assert ran.code == 2
            assert "is for a person to run" in ran.err
    read, write = os.pipe()
    os.write(write, b"open sesame\n")
    os.close(write)
    monkeypatch.setenv("SUB_PASSPHRASE_FD", str(read))
    assert sub("passphrase", "set").code == 0
    monkeypatch.delenv("SUB_PASSPHRASE_FD")
    ran = sub("secrets", "approve", "github", "--", "env")
    assert "asks for this home's passphrase" in ran.err
    assert file.read_text() == STORED


@pytest.mark.parametrize(
    ("program", "warning"),
    [
        ("npx", "`node_modules`"),
        ("uvx", "the package index"),
        ("python3 -m", "the directory"),
        ("python3.11 -u -mserver", "the directory"),
        ("bash -ec", "the directory"),
        ("node --eval", "the directory"),
    ],
)
def test_a_program_that_looks_the_server_up_is_pointed_out(
    sub: Any,
    settings: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    program: str,
    warning: str,
) -> None:
    settings(STORED)
    name, *words = program.split()
    script(tmp_path / "tools" / name, "#!/bin/sh\n")
    monkeypatch.setenv("PATH", str(tmp_path / "tools"))
    ran = sub("secrets", "approve", "github", "--", name, *words, "server")
    assert ran.code == 0
    assert "which code of `github` gets the secret also depends on " in ran.err
    assert warning in ran.err


@pytest.mark.parametrize(("place", "mode"), [("", 0o777), ("printer", 0o707)])
def test_a_program_that_others_can_replace_is_pointed_out(
    sub: Any, settings: Any, printer: Path, place: str, mode: int
) -> None:
    settings(STORED)
    (printer.parent / place).chmod(mode)
    ran = sub("secrets", "approve", "github", "--", str(printer))
    assert "depends on other users, who can replace the program" in ran.err
    (printer.parent / place).chmod(0o755)
    assert "warning" not in sub("secrets", "approve", "github", "--", str(printer)).err


def test_a_file_of_the_project_is_pointed_out(
    sub: Any, settings: Any, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings(STORED)
    (work / ".git").mkdir()
    (work / "server.py").touch()
    monkeypatch.chdir(work)
    ran = sub("secrets", "approve", "github", "--", "cat", str(work / "server.py"))
    assert "a file of this project" in ran.err
    ran = sub("secrets", "approve", "github", "--", "cat", str(work))
    assert "warning" not in ran.err


def test_doctor_and_check_name_servers_without_an_approval(
    sub: Any, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The migration of homes from before approvals: the hint is what to run."""
    user = tmp_path / "user"
    user.mkdir()
    monkeypatch.setenv("HOME", str(user))
    entry = '{"mcpServers": {"github": {"command": "npx", "args": ["-y", "a b"]}}}'
    (user / ".claude.json").write_text(entry)
    settings(STORED)
    line = "sub secrets approve github -- npx -y 'a b'"
    for words in (["doctor"], ["secrets", "check"], ["secrets", "approve", "github"]):
        ran = sub(*words)
        assert ran.code != 0
        assert line in ran.out + ran.err, ran
    settings(approved([str(shutil.which("true"))]))
    assert "stored secrets serve only approved commands" in sub("doctor").out
    settings(approved(["/no/such/program"]))
    assert "`/no/such/program` is not a program" in sub("doctor").out
