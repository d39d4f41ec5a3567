"""`sub restore`: the exact bytes, or everything but our wrappers."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.requirements import requirement

from subluminal.config.places import places
from subluminal.importer.backups import list_backups

CLAUDE = (
    '{"a": 1, "mcpServers": {"fs": {"command": "npx", "args": ["x"]}, "git": {"command": "g"}}}\n'
)
Write = Callable[[str, str | bytes], Path]


@requirement("001-13:restore")
def test_the_exact_bytes_come_back(sub: Any, write: Write, program: Path) -> None:
    file = write(".claude.json", CLAUDE)
    sub("import", "claude", "--no-hooks")
    ran = sub("restore", "claude")
    assert (ran.code, file.read_text()) == (0, CLAUDE)
    assert ran.out == f"restored `{file}`: the exact bytes from before the import\n"
    again = sub("restore", "claude")
    assert (again.code, again.out, again.err) == (0, "", "Nothing to restore.\n")


def test_several_imports_go_back_to_the_first(
    sub: Any, write: Write, program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(".claude.json", CLAUDE)
    sub("import", "claude")
    monkeypatch.setenv("SUB_RUNTIME_DIR", "/x")
    moved = program.with_name("other") / "sub"
    moved.parent.mkdir()
    program.rename(moved)
    monkeypatch.setattr("sys.argv", [str(moved)])
    assert "wrapped 2 servers" in sub("import", "claude").err
    sub("restore", "claude")
    assert file.read_text() == CLAUDE


def test_later_edits_stay(sub: Any, write: Write, program: Path) -> None:
    file = write(".claude.json", CLAUDE)
    sub("import", "claude")
    edited = file.read_text().replace('"a": 1', '"a": 2, "new": [ ]').replace('"x"]', '"x", "y"]')
    file.write_text(edited)
    ran = sub("restore", "claude")
    assert file.read_text() == CLAUDE.replace('"a": 1', '"a": 2, "new": [ ]').replace(
        '"x"]', '"x", "y"]'
    )
    assert "unwrapped fs, git; everything else is kept" in ran.out


def test_a_server_that_was_renamed_is_unwrapped_too(sub: Any, write: Write, program: Path) -> None:
    file = write(".claude.json", CLAUDE)
    sub("import", "claude")
    file.write_text(file.read_text().replace('"git": {', '"tig": {'))
    sub("restore", "claude")
    assert file.read_text() == CLAUDE.replace('"git"', '"tig"')


def test_a_wrapper_without_a_backup_is_unwrapped(sub: Any, write: Write, program: Path) -> None:
    entry = {"command": "/gone/sub", "args": ["shim", "stdio", "--server=fs", "--", "npx", "x"]}
    nested = {
        "command": "/a/sub",
        "args": ["shim", "stdio", "--server", "n", "--", entry["command"]],
    }
    nested["args"] = [*nested["args"], *entry["args"]]
    file = write(".claude.json", json.dumps({"mcpServers": {"fs": entry, "n": nested}}))
    assert sub("restore", "claude").code == 0
    plain = {"command": "npx", "args": ["x"]}
    assert json.loads(file.read_text()) == {"mcpServers": {"fs": plain, "n": plain}}


def test_what_only_resembles_a_wrapper_is_left_alone(sub: Any, write: Write, program: Path) -> None:
    entries = [
        {"command": "sub", "args": ["shim", "stdio", "--", "x"]},
        {"command": "sub", "args": ["shim", "stdio", "--server", "a"]},
        {"command": "sub", "args": ["shim", "stdio", "--server", "a", "--"]},
        {"command": "sub", "args": ["shim", "stdio", "--server", "a", "--other", "b", "--", "x"]},
        {"command": "sub", "args": ["shim", "http", "--server", "a", "--", "x"]},
        {"command": "subway", "args": ["shim", "stdio", "--server", "a", "--", "x"]},
        {"command": "sub"},
    ]
    text = json.dumps({"mcpServers": {str(n): entry for n, entry in enumerate(entries)}})
    file = write(".claude.json", text)
    assert sub("restore", "claude").err == "Nothing to restore.\n"
    assert file.read_text() == text


def test_files_of_other_projects_come_back_too(
    sub: Any, write: Write, program: Path, user_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write("there/.mcp.json", CLAUDE)
    monkeypatch.chdir(user_home / "there")
    sub("import", "claude")
    monkeypatch.chdir(user_home)
    assert sub("restore", "claude").code == 0
    assert file.read_text() == CLAUDE


def test_one_file_only(sub: Any, write: Write, program: Path) -> None:
    one, two = write(".claude.json", CLAUDE), write(".mcp.json", CLAUDE)
    sub("import", "claude")
    sub("restore", "claude", "--path", ".mcp.json")
    assert (one.read_text() == CLAUDE, two.read_text() == CLAUDE) == (False, True)


def test_a_dry_run_changes_nothing(sub: Any, write: Write, program: Path) -> None:
    file = write(".claude.json", CLAUDE)
    sub("import", "claude")
    imported = file.read_text()
    assert sub("restore", "--dry-run").out.startswith("would restore")
    assert file.read_text() == imported


def test_backups_are_listed(sub: Any, write: Write, program: Path) -> None:
    file = write(".claude.json", CLAUDE)
    assert sub("restore", "--list").err == "No backups.\n"
    sub("import", "claude", "--no-hooks")
    sub("restore", "claude")
    rows = [json.loads(line) for line in sub("restore", "--list", "--json").out.splitlines()]
    assert [(r["kind"], r["client"], r["path"]) for r in rows] == [
        ("import", "claude", str(file)),
        ("restore", "claude", str(file)),
    ]
    assert rows[0]["servers"] == ["fs", "git"]
    assert rows[0]["folder"] in sub("restore", "--list", "claude").out
    assert sub("restore", "--list", "codex").out == ""


def test_a_broken_file_is_refused_and_the_backup_is_named(
    sub: Any, write: Write, program: Path
) -> None:
    file = write(".claude.json", CLAUDE)
    sub("import", "claude", "--no-hooks")
    file.write_text(file.read_text()[:-3])
    broken = file.read_text()
    ran = sub("restore", "claude")
    assert (ran.code, file.read_text()) == (2, broken)
    (backup,) = list_backups(places(os.environ))
    assert f"its backup from before the import is `{backup.folder}/before`" in ran.err


def test_values_go_back_only_for_a_person(
    sub: Any, write: Write, program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A restore would put secrets where the agent reads them (local-is-not-trusted)."""
    text = '{"mcpServers": {"a": {"command": "cat", "env": {"API_KEY": "v4lue-1234"}}}}'
    file = write(".claude.json", text)
    sub("import", "claude", "--bind-secrets", "--source", "file")
    imported = file.read_text()
    with monkeypatch.context() as patch:
        patch.setenv("CLAUDECODE", "1")
        ran = sub("restore", "claude")
    assert (ran.code, file.read_text()) == (2, imported)
    assert "is for a person" in ran.err
    file.write_text(imported + "\n")
    sub("restore", "claude")
    assert file.read_text() == text + "\n"


def test_a_value_that_is_gone_stops_the_restore(sub: Any, write: Write, program: Path) -> None:
    text = '{"mcpServers": {"a": {"command": "cat", "env": {"API_KEY": "v4lue-1234"}}}}'
    file = write(".claude.json", text)
    sub("import", "claude", "--bind-secrets", "--source", "file")
    imported = file.read_text()
    sub("secrets", "remove", "a.API_KEY", "--source", "file", "--yes", stdin=b"y\n")
    (Path(os.environ["SUB_HOME"]) / "secrets" / "store.json").unlink(missing_ok=True)
    ran = sub("restore", "claude")
    assert (ran.code, file.read_text()) == (2, imported)
    assert "`a.API_KEY` is no longer in the file store" in ran.err
