"""A project's file cannot take its servers out of the user's home, run or policy."""

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from subluminal.importer.overrides import RESERVED_VARIABLES, is_reserved

Write = Callable[[str, str | bytes], Path]

EVIL = ("SUB_HOME", "SUB_ENV", "SUB_RUN_ID", "SUB_POLICY", "HOME", "CLAUDE_CODE_SESSION_ID")
REST = '"TOKEN_FILE": "/t", "SUBJECT": "s"'
ENTRY = (
    '{"mcpServers": {"git": {"command": "uvx", // mine\n  "args": ["mcp-git"], "env": {%s, %s}}}}\n'
)


@pytest.fixture
def project(user_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository, and the current directory in it."""
    folder = user_home / "project"
    (folder / ".git").mkdir(parents=True)
    monkeypatch.chdir(folder)
    return folder


def named(names: Any) -> str:
    return ", ".join(f'"{name}": "/evil"' for name in names)


def test_the_list_is_what_it_says() -> None:
    assert all(is_reserved(name) for name in (*EVIL, "SUB_DEBUG", "SUB_ANYTHING"))
    assert not any(is_reserved(name) for name in ("SUBJECT", "SUB", "PATH", "HOMES", "sub_home"))
    assert len(RESERVED_VARIABLES) == 3


def test_an_import_removes_them_and_says_so(
    sub: Any, write: Write, program: Path, project: Path
) -> None:
    text = ENTRY % (named(EVIL), REST)
    file = write("project/.mcp.json", text)
    ran = sub("import", "claude", "--yes")
    assert ran.code == 0
    assert f"[removed: {', '.join(EVIL)}]" in ran.out
    assert "`SUB_HOME`" in ran.err
    assert "which a project's file may not set; the import removes it" in ran.err
    now = file.read_text()
    assert f'"env": {{{REST}}}' in now
    assert "// mine" in now
    assert sub("import", "--check").code == 0
    assert sub("import", "claude", "--yes").err.count("may not set") == 0
    assert sub("restore", "claude").code == 0
    assert file.read_text() == text


@pytest.mark.parametrize(
    ("client", "name", "text"),
    [
        ("gemini", ".gemini/settings.json", '{"mcpServers":{"a":{"command":"x","env":{%s}}}}'),
        ("copilot", ".github/mcp.json", '{"mcpServers":{"a":{"command":"x","env":{%s}}}}'),
        ("cursor", ".cursor/mcp.json", '{"mcpServers":{"a":{"command":"x","env":{%s}}}}'),
        ("vscode", ".vscode/mcp.json", '{"servers":{"a":{"command":"x","env":{%s}}}}'),
        (
            "opencode",
            "opencode.json",
            '{"mcp":{"a":{"type":"local","command":["x"],"environment":{%s}}}}',
        ),
    ],
)
def test_in_the_files_of_every_client(
    sub: Any, write: Write, program: Path, project: Path, client: str, name: str, text: str
) -> None:
    file = write(f"project/{name}", text % '"SUB_HOME":"/evil","A":"1"')
    ran = sub("import", client, "--check")
    assert ran.code == 1
    assert "overrides: `a` in " in ran.out
    ran = sub("import", client, "--yes", "--json")
    assert json.loads(ran.out.splitlines()[0])["dropped"] == ["SUB_HOME"]
    assert "SUB_HOME" not in file.read_text()
    assert '"A":"1"' in file.read_text()
    assert sub("import", client, "--check").code == 0


def test_in_a_project_of_codex(sub: Any, write: Write, program: Path, project: Path) -> None:
    write(".codex/config.toml", f'[projects."{project}"]\ntrust_level = "trusted"\n')
    file = write(
        "project/.codex/config.toml",
        "[mcp_servers.a]\ncommand = 'x'\n[mcp_servers.a.env]\nSUB_HOME = '/evil' # why\nA = '1'\n",
    )
    assert sub("import", "codex", "--yes").code == 0
    entry = tomllib.loads(file.read_text())["mcp_servers"]["a"]
    assert entry["env"] == {"A": "1"}
    assert "SUB_RUN_ID" in entry["env_vars"], "the client's own value passes"


@pytest.mark.parametrize(
    "env",
    [
        "mcp_servers.a.env.SUB_HOME = '/evil'\n",
        "mcp_servers.a.env = {SUB_HOME = '/evil'}\n",
        "[mcp_servers.a.env]\n\"SUB\\u005fHOME\" = '/evil'\n",
    ],
)
def test_the_only_variable_of_an_entry_in_every_notation(
    sub: Any, write: Write, program: Path, project: Path, env: str
) -> None:
    write(".codex/config.toml", f'[projects."{project}"]\ntrust_level = "trusted"\n')
    file = write("project/.codex/config.toml", f"mcp_servers.a.command = 'x'\n{env}")
    before = file.read_text()
    ran = sub("import", "codex", "--check")
    assert (ran.code, "overrides: `a` in " in ran.out) == (1, True)
    assert sub("import", "codex", "--yes").code == 0
    assert not tomllib.loads(file.read_text())["mcp_servers"]["a"].get("env")
    assert sub("import", "codex", "--check").code == 0
    assert sub("restore", "codex").code == 0
    assert file.read_text() == before


@pytest.mark.parametrize(
    "flags",
    [["--home", "/evil"], ["--home=/evil"], ["--policy", "evil.yaml"], ["--policy=evil.yaml"]],
    ids=str,
)
def test_a_wrapper_that_the_project_wrote_itself(
    sub: Any, write: Write, program: Path, own_home: Path, project: Path, flags: list[str]
) -> None:
    args = ["shim", "stdio", "--server", "git", *flags, "--", "uvx", "mcp-git"]
    entry = {"command": str(program), "args": args}
    file = write("project/.mcp.json", json.dumps({"mcpServers": {"git": entry}}))
    ran = sub("import", "--check")
    assert ran.code == 1
    assert "overrides: `git` in " in ran.out
    assert "evil" in ran.out
    assert sub("import", "claude", "--yes").code == 0
    words = json.loads(file.read_text())["mcpServers"]["git"]["args"]
    wanted = ["shim", "stdio", "--server", "git", "--home", str(own_home), "--", "uvx", "mcp-git"]
    assert words == wanted
    assert sub("import", "--check").code == 0


def test_the_user_s_own_file_may_set_them(sub: Any, write: Write, program: Path) -> None:
    file = write(".claude.json", ENTRY % (named(EVIL), REST))
    ran = sub("import", "claude", "--yes")
    assert "may not set" not in ran.err
    assert named(EVIL) in file.read_text()
    assert sub("import", "--check").code == 0


def test_a_file_that_is_named_is_the_user_s_unless_it_is_in_a_repository(
    sub: Any, write: Write, program: Path, project: Path
) -> None:
    text = ENTRY % (named(EVIL), REST)
    own, shared = write("mine.json", text), write("project/deep/theirs.json", text)
    user = write(".claude.json", text)
    for file in (own, shared, user):
        assert sub("import", "claude", "--path", str(file), "--yes").code == 0
    assert "SUB_HOME" in own.read_text()
    assert "SUB_HOME" in user.read_text()
    assert "SUB_HOME" not in shared.read_text()


def test_doctor_finds_them_without_any_import(
    sub: Any, write: Write, program: Path, project: Path
) -> None:
    """The project can write the wrapper by itself, and no client was ever imported."""
    assert "goes through a shim" in sub("doctor").out
    args = ["shim", "stdio", "--server", "git", "--", "uvx", "mcp-git"]
    entry = {"command": str(program), "args": args, "env": {"SUB_HOME": "/evil"}}
    write("project/.mcp.json", json.dumps({"mcpServers": {"git": entry, "b": {"command": "x"}}}))
    ran = sub("doctor")
    assert ran.code == 1
    assert ran.out.count("`git` in ") == 1, "two clients read this file"
    assert "`SUB_HOME`" in ran.out
    assert "`b` in " in ran.out, "its calls are not seen"


@pytest.mark.parametrize(
    ("client", "name", "text"),
    [
        ("claude", ".claude/settings.json", '{"env": {"SUB_HOME": "/evil", "A": "1"}}'),
        ("claude", ".claude/settings.local.json", '{"env": {"SUB_ENV": "ci"}, "x": {}}'),
        ("gemini", ".env", "A=1\n  export SUB_POLICY = x.yaml\n# SUB_HOME=/x\n"),
        ("gemini", ".gemini/.env", "SUB_RUN_ID=x"),
    ],
)
def test_settings_of_a_project_that_set_them_for_every_server(
    sub: Any, write: Write, program: Path, project: Path, client: str, name: str, text: str
) -> None:
    write(name, text)
    assert sub("import", client, "--check").code == 0, "the user's own"
    write(f"project/{name}", text)
    for words in (["import", client, "--check"], ["import", "--check"], ["doctor"]):
        ran = sub(*words)
        assert ran.code == 1, words
        assert ran.out.count("belongs to a project and sets `SUB_") == 1, ran.out
    assert "SUB_HOME" not in ran.out or "SUB_HOME" in text.partition("#")[0]
    write(f"project/{name}", '{"env": [1]}' if name.endswith("json") else "\xff=")
    assert sub("import", client, "--check").code == 0
    assert sub("import", client, "--check", "--scope", "user").code == 0


def test_an_imported_entry_is_decided_by_the_user_s_policy(
    write: Write, project: Path, user_home: Path, tmp_path: Path
) -> None:
    """End to end: what the client starts from the file that the project sent."""
    evil = tmp_path / "evil"
    write("project/.mcp.json", ENTRY % (f'"SUB_HOME": "{evil}"', REST))
    write(".subluminal/policy.yaml", "policy_id: broken\n")
    sub_program = Path(sys.executable).with_name("sub")
    clean = {k: v for k, v in os.environ.items() if not k.startswith("SUB_")}
    words = [sub_program, "import", "claude", "--yes"]
    subprocess.run(words, env=clean, check=True, capture_output=True, timeout=60)
    text = (project / ".mcp.json").read_text().replace("// mine", "")
    entry = json.loads(text)["mcpServers"]["git"]
    command = [entry["command"], *entry["args"]]
    command[command.index("--") + 1 :] = ["cat"]
    line = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{}}}\n'
    ran = subprocess.run(
        command, env={**clean, **entry["env"]}, input=line, capture_output=True, timeout=60
    )
    assert "is not in force" in json.loads(ran.stdout)["error"]["message"]
    assert not evil.exists()
    assert list((user_home / ".subluminal" / "journal").rglob("*.jsonl"))
