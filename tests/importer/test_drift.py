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
    found = [finding.kind for finding in findings(scene, where, ours, **options)]
    # Another test's Codex daemon may be running beside this one.
    return [kind for kind in found if kind is not DriftKind.DAEMON]


def test_nothing_drifts_after_an_import(
    sub: Any, write: Write, program: Path, user_home: Path
) -> None:
    write(".claude.json", CLAUDE)
    assert kinds(user_home) == [DriftKind.UNWRAPPED]
    sub("import", "claude")
    assert kinds(user_home) == []
    ran = sub("import", "--check")
    assert (ran.code, ran.err) == (0, "Every stdio server goes through a shim.\n")


def test_a_new_server_is_found(sub: Any, write: Write, program: Path, user_home: Path) -> None:
    file = write(".claude.json", CLAUDE)
    sub("import", "claude")
    file.write_text(file.read_text().replace('{"fs"', '{"late": {"command": "y"}, "fs"'))
    assert kinds(user_home) == [DriftKind.UNWRAPPED]
    ran = sub("import", "--check")
    assert ran.code == 1
    assert ran.out == (
        f"unwrapped: `late` in `{file}` is not wrapped\n  hint: wrap it with `sub import claude`\n"
    )


def test_a_wiped_file_is_found(sub: Any, write: Write, program: Path, user_home: Path) -> None:
    file = write(".claude.json", CLAUDE)
    sub("import", "claude")
    file.write_text("{}")
    assert kinds(user_home) == [DriftKind.WIPED]
    file.unlink()
    assert kinds(user_home) == [DriftKind.WIPED]
    file.write_text("{")
    assert kinds(user_home) == [DriftKind.UNREADABLE]


def test_a_missing_program_is_found(
    sub: Any, write: Write, program: Path, user_home: Path, tmp_path: Path, monkeypatch: Any
) -> None:
    write(".claude.json", CLAUDE)
    sub("import", "claude", "--no-hooks")
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


def test_what_was_restored_is_not_wrapped(
    sub: Any, write: Write, program: Path, user_home: Path
) -> None:
    write(".claude.json", CLAUDE)
    sub("import", "claude")
    sub("restore", "claude")
    assert kinds(user_home) == [DriftKind.UNWRAPPED]


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


def test_a_client_that_was_never_imported_does_not_look_healthy(
    sub: Any, write: Write, program: Path, user_home: Path
) -> None:
    file = write(
        ".claude.json",
        '{"mcpServers": {"fs": {"command": "npx"}, "web": {"type": "http", "url": "https://x"}}}',
    )
    ran = sub("import", "--check")
    assert (ran.code, ran.out) == (
        1,
        f"unwrapped: `fs` in `{file}` is not wrapped\n  hint: wrap it with `sub import claude`\n"
        f"remote: `web` in `{file}` is reached by URL: its calls are not seen\n"
        "  hint: http and sse servers cannot be wrapped yet\n",
    )
    checks = json.loads(sub("doctor", "--json").out)["checks"]
    found = [(c["ok"], c["detail"]) for c in checks if c["name"] == "client (claude)"]
    assert found == [
        (False, f"`fs` in `{file}` is not wrapped"),
        (True, f"`web` in `{file}` is reached by URL: its calls are not seen"),
    ]


def test_a_server_that_is_reached_by_url_is_named_and_fails_nothing(
    sub: Any, write: Write, program: Path
) -> None:
    write(".claude.json", '{"mcpServers": {"web": {"type": "http", "url": "https://x"}}}')
    ran = sub("import", "--check")
    assert (ran.code, ran.err) == (0, "Every stdio server goes through a shim.\n")
    assert ran.out.startswith("remote: `web` in ")
    (row,) = map(json.loads, sub("import", "--check", "--json").out.splitlines())
    assert (row["kind"], row["server"]) == ("remote", "web")


def test_a_file_above_the_repository_is_found(
    sub: Any, write: Write, program: Path, user_home: Path, monkeypatch: Any
) -> None:
    """Claude Code reads it; an import leaves it alone unless it is named."""
    file = write(".mcp.json", CLAUDE)
    (user_home / "shop" / ".git").mkdir(parents=True)
    monkeypatch.chdir(user_home / "shop")
    ran = sub("import", "claude", "--check")
    assert (ran.code, ran.out) == (
        1,
        f"unwrapped: `fs` in `{file}` is not wrapped\n"
        f"  hint: wrap it with `sub import claude --path {file}`\n",
    )
    assert sub("import", "claude", "--path", str(file)).code == 0
    assert sub("import", "claude", "--check").code == 0
