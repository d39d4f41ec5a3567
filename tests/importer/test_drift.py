"""What `sub import --check` and `sub doctor` find when a client's file is not as it was left."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.e2e.desk import wait_until

from subluminal.config.places import places
from subluminal.importer.clients.description import Scene
from subluminal.importer.drift import DriftKind, codex_daemons, findings
from subluminal.importer.wrapper import our_installation

CLAUDE = '{"mcpServers": {"fs": {"command": "npx", "args": ["x"]}}}\n'
Write = Callable[[str, str | bytes], Path]


def kinds(user_home: Path, **options: Any) -> list[DriftKind]:
    where = places(os.environ)
    scene = Scene(os.environ, os.getcwd())
    ours = our_installation(where, str(user_home))
    return [finding.kind for finding in findings(scene, where, ours, **options)]


def test_nothing_drifts_after_an_import(
    sub: Any, write: Write, program: Path, user_home: Path
) -> None:
    write(".claude.json", CLAUDE)
    assert kinds(user_home) == [DriftKind.UNWRAPPED]
    assert kinds(user_home, imported_only=True) == []
    sub("import", "claude")
    assert kinds(user_home) == []
    ran = sub("import", "--check")
    assert (ran.code, ran.err) == (0, "Every stdio server goes through a shim.\n")


def test_a_new_server_is_found(sub: Any, write: Write, program: Path, user_home: Path) -> None:
    file = write(".claude.json", CLAUDE)
    sub("import", "claude")
    file.write_text(file.read_text().replace('{"fs"', '{"late": {"command": "y"}, "fs"'))
    assert kinds(user_home, imported_only=True) == [DriftKind.UNWRAPPED]
    ran = sub("import", "--check")
    assert ran.code == 1
    assert ran.out == (
        f"unwrapped: `late` in `{file}` is not wrapped\n  hint: wrap it with `sub import claude`\n"
    )


def test_a_wiped_file_is_found(sub: Any, write: Write, program: Path, user_home: Path) -> None:
    file = write(".claude.json", CLAUDE)
    sub("import", "claude")
    file.write_text("{}")
    assert kinds(user_home, imported_only=True) == [DriftKind.WIPED]
    file.unlink()
    assert kinds(user_home, imported_only=True) == [DriftKind.WIPED]
    file.write_text("{")
    assert kinds(user_home, imported_only=True) == [DriftKind.UNREADABLE]


def test_a_missing_program_is_found(
    sub: Any, write: Write, program: Path, user_home: Path, tmp_path: Path, monkeypatch: Any
) -> None:
    write(".claude.json", CLAUDE)
    sub("import", "claude")
    moved = tmp_path / "new" / "sub"
    moved.parent.mkdir()
    moved.write_bytes(program.read_bytes())
    moved.chmod(0o755)
    monkeypatch.setattr("sys.argv", [str(moved)])
    assert kinds(user_home) == [DriftKind.STALE]
    program.unlink()
    assert kinds(user_home) == [DriftKind.MISSING_PROGRAM]
    rows = [json.loads(line) for line in sub("import", "--check", "--json").out.splitlines()]
    # Another test's Codex daemon may be running beside this one.
    found = [(row["kind"], row["server"]) for row in rows if row["kind"] != "daemon"]
    assert found == [("missing_program", "fs")]


def test_what_was_restored_does_not_drift(
    sub: Any, write: Write, program: Path, user_home: Path
) -> None:
    write(".claude.json", CLAUDE)
    sub("import", "claude")
    sub("restore", "claude")
    assert kinds(user_home, imported_only=True) == []


def test_a_background_daemon_of_codex_is_found(program: Path, user_home: Path) -> None:
    script = "import sys; sys.stdin.read()"
    words = ["app-server", "--listen", "unix://", "--managed-daemon"]
    with subprocess.Popen([sys.executable, "-c", script, *words], stdin=subprocess.PIPE) as daemon:
        told = f"process {daemon.pid}"
        wait_until(lambda: any(told in f.message for f in codex_daemons()), 5, "it is found")
        found = next(f for f in codex_daemons() if told in f.message)
        assert found.kind is DriftKind.DAEMON
        assert "--no-daemon" in found.hint
        daemon.communicate()
    assert not any(told in f.message for f in codex_daemons())
