"""`sub import`: what a person sees, what changes in the file, and what does not."""

import json
import os
import shutil
import stat
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.requirements import requirement

from subluminal.config.places import places
from subluminal.importer.backups import list_backups

CLAUDE = """\
{
  // my servers
  "mcpServers": {
    "fs": {"command":"npx","args":["-y","${PKG}"],"note":"kept"},
    "git": {
      "command": "uvx",
    },
    "web": { "type": "http", "url": "https://x.test" }
  },
  "projects": {"/p": {"mcpServers": {"loc": {"command": "a", "args": []}}}}
}
"""
CODEX = """\
model = "x" # mine
[mcp_servers.fs]
command = 'npx' # run it
args = [
  "-y", # yes
  "x",
]

[mcp_servers.fs.env]
A = "1"
"""
Write = Callable[[str, str | bytes], Path]


@requirement("001-13:import")
def test_a_claude_configuration_is_wrapped_in_place(sub: Any, write: Write, program: Path) -> None:
    file = write(".claude.json", CLAUDE)
    ran = sub("import", "claude")
    assert ran.code == 0
    shim = f'"command":"{program}","args":["shim","stdio","--server","fs",HOME"--","npx","-y","${{PKG}}"]'
    home = f'"--home","{os.environ["SUB_HOME"]}",'
    spaced = home.replace(",", ", ")
    after = file.read_text()
    assert shim.replace("HOME", home) + ',"note":"kept"' in after
    assert after == (
        CLAUDE.replace('"command":"npx","args":["-y","${PKG}"]', shim.replace("HOME", home))
        .replace(
            '"uvx"',
            f'"{program}",\n      "args": ["shim", "stdio", "--server", "git", {spaced}"--", "uvx"]',
        )
        .replace(
            '"a", "args": []',
            f'"{program}", "args": ["shim", "stdio", "--server", "loc", {spaced}"--", "a"]',
        )
    )
    assert "fs   wrap      npx -y ${PKG}" in ran.out
    assert "web  not yet   http: not wrapped yet" in ran.out
    assert "wrapped 3 servers" in ran.err
    assert "Undo this with `sub restore claude`." in ran.err


@requirement("001-13:import")
def test_a_codex_configuration_is_wrapped_in_place(
    sub: Any, write: Write, program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Codex clears the environment and takes no keys of ours; the default home is not named."""
    monkeypatch.delenv("SUB_HOME")
    file = write(".codex/config.toml", CODEX)
    assert sub("import", "codex").code == 0
    wanted = CODEX.replace("'npx'", f'"{program}"').replace(
        '  "-y", #', """  "shim", "stdio", "--server", "fs", "--", 'npx',\n  "-y", #"""
    )
    passed = (
        'env_vars = ["SUB_RUN_ID", "SUB_AGENT_ID", "SUB_ENV", "SUB_CLIENT", "SUB_PRINCIPAL", '
        '"SUB_WORKLOAD", "SUB_TAINT", "SUB_POLICY"]'
    )
    assert file.read_text() == wanted.replace("]\n\n[mcp", f"]\n{passed}\n\n[mcp")
    entry = tomllib.loads(file.read_text())["mcp_servers"]["fs"]
    assert set(entry) == {"command", "args", "env_vars", "env"}


def test_importing_twice_changes_nothing(sub: Any, write: Write, program: Path) -> None:
    file = write(".claude.json", CLAUDE)
    sub("import", "claude", "--no-hooks")
    once, stamp = file.read_bytes(), file.stat()
    ran = sub("import", "claude", "--no-hooks")
    assert (ran.code, file.read_bytes(), file.stat().st_ino) == (0, once, stamp.st_ino)
    assert "Nothing to change." in ran.err
    assert len(list_backups(places(os.environ))) == 1


def test_an_older_or_moved_sub_is_refreshed(
    sub: Any, write: Write, program: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = write(".claude.json", CLAUDE)
    sub("import", "claude")
    moved = tmp_path / "new" / "sub"
    moved.parent.mkdir()
    program.rename(moved)
    monkeypatch.setattr(sys, "argv", [str(moved)])
    ran = sub("import", "claude")
    assert "fs   refresh" in ran.out
    assert str(program) not in file.read_text()
    assert file.read_text().count('"shim"') == 3


def test_a_dry_run_shows_the_difference_without_secrets(
    sub: Any, write: Write, program: Path
) -> None:
    text = '{"mcpServers": {"g": {"command": "x", "env": {"TOKEN": "s3cret-value-1"}}}}\n'
    file = write(".claude.json", text)
    ran = sub("import", "claude", "--dry-run")
    assert (ran.code, file.read_text()) == (0, text)
    assert ran.out.startswith(f"--- {file}\n+++ {file} (imported)\n")
    assert '"shim", "stdio", "--server", "g"' in ran.out
    assert "s3cret" not in ran.out + ran.err
    assert not list_backups(places(os.environ))


def test_mode_owner_and_links_stay(sub: Any, write: Write, program: Path, user_home: Path) -> None:
    real = write("dotfiles/claude.json", CLAUDE)
    real.chmod(0o640)
    (user_home / ".claude.json").symlink_to("dotfiles/claude.json")
    assert sub("import", "claude", "--no-hooks").code == 0
    assert (user_home / ".claude.json").is_symlink()
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert b"shim" in real.read_bytes()
    (backup,) = list_backups(places(os.environ))
    assert backup.manifest.real_path == str(real)
    assert [p.name for p in real.parent.iterdir()] == ["claude.json"]


def test_backups_are_private(sub: Any, write: Write, program: Path, own_home: Path) -> None:
    write(".claude.json", CLAUDE)
    sub("import", "claude", "--no-hooks")
    (backup,) = list_backups(places(os.environ))
    assert Path(backup.folder).parent == own_home / "backups"
    assert backup.before() == CLAUDE.encode()
    modes = {stat.S_IMODE(p.stat().st_mode) for p in (own_home / "backups").rglob("*")}
    assert modes == {0o600, 0o700}


@pytest.mark.parametrize(
    ("scope", "changed"), [("user", (1, 0)), ("project", (0, 1)), ("all", (1, 1))]
)
def test_scopes(
    sub: Any,
    write: Write,
    program: Path,
    user_home: Path,
    monkeypatch: pytest.MonkeyPatch,
    scope: str,
    changed: tuple[int, int],
) -> None:
    own = write(".claude.json", CLAUDE)
    shared = write("repo/.mcp.json", CLAUDE)
    (user_home / "repo" / ".git").mkdir()
    below = user_home / "repo" / "src"
    below.mkdir()
    monkeypatch.chdir(below)
    ran = sub("import", "claude", "--scope", scope)
    assert ran.code == 0
    assert (own.read_text() != CLAUDE, shared.read_text() != CLAUDE) == changed
    assert ("belongs to the project" in ran.err) == bool(changed[1])


def test_other_places_of_clients(
    sub: Any, write: Write, program: Path, user_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    claude = write("cc/.claude.json", CLAUDE)
    codex, profile = write("cx/config.toml", CODEX), write("cx/work.config.toml", CODEX)
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(user_home / "cc"))
    monkeypatch.setenv("CODEX_HOME", str(user_home / "cx"))
    assert sub("import").code == 0
    assert all("shim" in file.read_text() for file in (claude, codex, profile))


def test_codex_projects_count_only_if_they_are_trusted(
    sub: Any, write: Write, program: Path, user_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = write(".codex/config.toml", CODEX)
    project = write("repo/.codex/config.toml", CODEX)
    monkeypatch.chdir(user_home / "repo")
    assert sub("import", "codex").code == 0
    assert project.read_text() == CODEX
    own.write_text(own.read_text() + f'[projects."{user_home}/repo"]\ntrust_level = "trusted"\n')
    assert sub("import", "codex").code == 0
    assert "shim" in project.read_text()


def test_entries_that_are_not_clear_are_left_alone(sub: Any, write: Write, program: Path) -> None:
    entries = {
        "both": {"command": "x", "url": "https://y"},
        "typed": {"type": "http", "command": "x"},
        "none": {},
        "text": "x",
        "number": {"command": "x", "args": [1]},
        "empty": {"command": ""},
        "words": {"command": ["x"]},
        "@claude": {"command": "x"},
    }
    text = json.dumps({"mcpServers": entries})
    file = write(".claude.json", text)
    ran = sub("import", "claude")
    assert (ran.code, file.read_text()) == (0, text)
    assert ran.out.count("refused") == len(entries)
    assert "`both`" in ran.err
    assert "names that begin with `@` are Subluminal's own" in ran.out + ran.err
    assert sub("import", "claude", "--check").code == 1


def test_rows_as_json(sub: Any, write: Write, program: Path) -> None:
    file = write(".claude.json", CLAUDE)
    ran = sub("import", "claude", "--no-hooks", "--json")
    rows = [json.loads(line) for line in ran.out.splitlines()]
    assert [(r["server_name"], r["action"], r["changed"]) for r in rows] == [
        ("fs", "wrap", True),
        ("git", "wrap", True),
        ("web", "remote", False),
        ("loc", "wrap", True),
    ]
    assert {(r["client"], r["path"], r["scope"]) for r in rows} == {("claude", str(file), "user")}


@pytest.mark.parametrize(
    ("answer", "changes"), [(b"y\n", True), (b"\n", True), (b"n\n", False), (b"", False)]
)
def test_a_person_is_asked_once(
    sub: Any,
    write: Write,
    program: Path,
    monkeypatch: pytest.MonkeyPatch,
    answer: bytes,
    changes: bool,
) -> None:
    file = write(".claude.json", CLAUDE)
    monkeypatch.setattr("tests.cli.conftest.Stream.isatty", lambda _: True)
    monkeypatch.setenv("NO_COLOR", "1")
    ran = sub("import", "claude", "--no-hooks", stdin=answer, terminal=True)
    assert ran.err.count("[Y/n]") == 1
    assert (file.read_text() != CLAUDE) is changes
    assert ran.code == (0 if changes else 2)
    file.write_text(CLAUDE)
    assert "[Y/n]" not in sub("import", "claude", "--no-hooks", "--yes", terminal=True).err


def test_secrets_move_into_a_source(sub: Any, write: Write, program: Path, own_home: Path) -> None:
    own_home.mkdir()
    settings = own_home / "config.toml"
    settings.write_text("# mine\n[ledger]\nkeep_days = 30 # a month\n")
    text = '{"mcpServers": {"my hub": {"command": "cat", "env": {"GH_TOKEN": "v4lue-1234", "A": "${T}"}}}}'
    file = write(".claude.json", text)
    assert "secrets are in `env`" in sub("import", "claude").err
    ran = sub("import", "claude", "--bind-secrets", "--source", "file")
    assert ran.code == 0
    assert "moved `GH_TOKEN` of `my hub` to file" in ran.err
    assert '"GH_TOKEN": "sub-secret:file:my_hub.GH_TOKEN", "A": "${T}"' in file.read_text()
    assert settings.read_text() == (
        "# mine\n[ledger]\nkeep_days = 30 # a month\n\n"
        f'[servers."my hub"]\ncommand = ["{shutil.which("cat")}"]\n'
        f'env = {{ HOME = "{os.environ["HOME"]}", PATH = "{os.environ["PATH"]}" }}\n\n'
        '[[servers."my hub".secret_bindings]]\ninject_as = "GH_TOKEN"\n'
        'secret_ref = "my_hub.GH_TOKEN"\nsource = "file"\n'
    )
    assert sub("secrets", "check").code == 0
    # Not in the backups either, not even in the one from before.
    kept = [p for p in own_home.rglob("*") if p.is_file() and b"v4lue" in p.read_bytes()]
    assert [path.name for path in kept] == ["store.json"]
    assert sub("restore", "claude").code == 0
    assert file.read_text() == text


def test_a_value_that_is_bound_otherwise_stays(sub: Any, write: Write, program: Path) -> None:
    entry = '"hub": {"command": "cat", "env": {"GH_TOKEN": "%s"}}'
    write(".claude.json", '{"mcpServers": {%s}}' % (entry % "first-value"))
    sub("import", "claude", "--bind-secrets", "--source", "file")
    same = write(".mcp.json", '{"mcpServers": {%s}}' % (entry % "first-value"))
    other = write(".cursor/mcp.json", '{"mcpServers": {%s}}' % (entry % "other-value"))
    sub("import", "claude", "--bind-secrets", "--source", "file")
    ran = sub("import", "cursor", "--bind-secrets", "--source", "file")
    assert "sub-secret:file:hub.GH_TOKEN" in same.read_text()
    assert "other-value" in other.read_text()
    assert (
        "`GH_TOKEN` of `hub` stayed in the configuration: "
        "the server already has a binding for it, with another value" in ran.err
    )


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["claude"], "found no configuration of Claude Code"),
        ([], "found no client's configuration"),
        (["--path", "x.json"], "`--path` needs the name of the client"),
        (["claude", "--path", "x.json"], "no such file"),
        (["claude", "--source", "file"], "`--source` needs `--bind-secrets`"),
    ],
)
def test_a_missing_configuration_is_an_error(
    sub: Any, program: Path, words: list[str], error: str
) -> None:
    ran = sub("import", *words)
    assert ran.code == 2
    assert error in ran.err


HUB = '{"mcpServers": {"hub": {"command": "%s", "args": %s, "env": {"GH_TOKEN": "v4lue-%d"%s}}}}'


def test_binding_approves_the_entry_s_command(
    sub: Any, write: Write, program: Path, own_home: Path
) -> None:
    """The variables that decide what it runs are kept with the approval."""
    write(".claude.json", HUB % ("cat", '["-u"]', 1, ', "PYTHONPATH": "/src", "MODE": "x"'))
    ran = sub("import", "claude", "--bind-secrets", "--source", "file")
    assert "approved `" in ran.err
    hub = tomllib.loads((own_home / "config.toml").read_text())["servers"]["hub"]
    assert hub["command"] == [shutil.which("cat"), "-u"]
    assert hub["env"]["PYTHONPATH"] == "/src"
    assert "MODE" not in hub["env"]
    # The wrapper is no part of it, so a second import approves nothing else.
    before = (own_home / "config.toml").read_text()
    sub("import", "claude", "--bind-secrets", "--source", "file")
    assert (own_home / "config.toml").read_text() == before


def test_binding_says_what_else_decides_which_code_gets_the_secret(
    sub: Any, write: Write, program: Path
) -> None:
    write(".claude.json", HUB % ("sh", '["-c", "server"]', 1, ""))
    ran = sub("import", "claude", "--bind-secrets", "--source", "file")
    assert (
        "warning: which code of `hub` gets the secret also depends on the directory where it starts"
        in ran.err
    )


@pytest.mark.parametrize(
    ("command", "args", "reason"),
    [
        ("no-such-program", "[]", "cannot find the program `no-such-program`"),
        ("./cat", "[]", "`./cat` is another program in another directory"),
        ("cat", '["server.js"]', "`server.js` is a file in the directory"),
        ("cat", '["${HOME}/x"]', "the client fills in a part of its command (`${HOME}/x`)"),
    ],
)
def test_a_secret_whose_command_cannot_be_approved_stays(
    sub: Any,
    write: Write,
    program: Path,
    user_home: Path,
    own_home: Path,
    command: str,
    args: str,
    reason: str,
) -> None:
    (user_home / "server.js").touch()
    file = write(".claude.json", HUB % (command, args, 1, ""))
    ran = sub("import", "claude", "--bind-secrets", "--source", "file")
    assert "v4lue-1" in file.read_text()
    assert f"`GH_TOKEN` of `hub` stayed in the configuration: {reason}" in ran.err.replace(
        "this command runs something else in another directory: ", ""
    )
    assert not (own_home / "config.toml").exists()


def test_a_repository_cannot_claim_a_binding(
    sub: Any, write: Write, program: Path, user_home: Path, own_home: Path
) -> None:
    """Neither of a home with approvals, nor of one from before them."""
    (user_home / ".git").mkdir()
    own_home.mkdir()
    settings = own_home / "config.toml"
    bound = '[[servers.hub.secret_bindings]]\ninject_as = "T"\nsecret_ref = "t"\nsource = "file"\n'
    for text, reason in (
        (bound, "the server already has bindings, which a project's file cannot join"),
        (f'[servers.hub]\ncommand = ["/x"]\n{bound}', "another command is approved"),
    ):
        settings.write_text(text)
        file = write(".mcp.json", HUB % ("cat", "[]", 1, ""))
        ran = sub("import", "claude", "--bind-secrets", "--source", "file", "--yes")
        assert (ran.code, settings.read_text()) == (0, text)
        assert reason in ran.err
        assert "v4lue-1" in file.read_text()
    settings.unlink()
    write(".mcp.json", HUB % ("cat", "[]", 1, ""))
    sub("import", "claude", "--bind-secrets", "--source", "file", "--yes")
    assert 'inject_as = "GH_TOKEN"' in settings.read_text(), "a server of its own, it can bind"
