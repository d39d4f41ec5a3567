"""`sub doctor` and hooks: it starts them, and finds why a client would not run them."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.importer.conftest import program as program
from tests.importer.conftest import user_home as user_home
from tests.importer.conftest import write as write
from tests.importer.fake_codex import install

from subluminal.clock import now, rfc3339
from subluminal.operator.doctor import hooks

CLAUDE = '{"mcpServers": {"fs": {"command": "npx", "args": ["x"]}}}\n'
FILES = {
    "claude": ".claude.json",
    "codex": ".codex/config.toml",
    "gemini": ".gemini/settings.json",
    "copilot": ".copilot/mcp-config.json",
    "opencode": ".config/opencode/opencode.json",
}
Write = Callable[[str, str | bytes], Path]


@pytest.fixture(autouse=True)
def only_hooks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No other checks, no CI, and no Codex but a stand-in."""
    monkeypatch.setattr("subluminal.cli.commands.doctor.all_checks", lambda: (hooks.check_hooks,))
    monkeypatch.delenv("CI", raising=False)
    folder = tmp_path / "path"
    folder.mkdir()
    install(folder)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


def answering(program: Path, home: str | None = None) -> None:
    """Makes the stand-in for `sub` answer as a hook does."""
    told = {"subluminal": {"version": "0.1.0", "home": home or os.environ["SUB_HOME"]}}
    probe = '{"session_id": "sub-doctor", "hook_event_name": "SubDoctor"}'
    script = f"[ \"$(cat)\" = '{probe}' ] && [ \"$1\" = hook ] && echo '{json.dumps(told)}'"
    # Copilot's command names the event, and its own would be a real one.
    script = f'case "$2 $3" in "copilot SubDoctor" | *" --home") {script};; esac\n'
    program.write_text("#!/bin/sh\n" + script)


def checks(sub: Any) -> dict[str, tuple[bool, str]]:
    ran = sub("doctor", "--json")
    return {c["name"]: (c["ok"], c["detail"]) for c in json.loads(ran.out)["checks"]}


def problem(sub: Any, client: str = "claude") -> str:
    ok, detail = checks(sub)[f"hooks:{client}"]
    assert not ok
    return detail


def test_nothing_to_check(sub: Any) -> None:
    assert checks(sub) == {}


def test_hooks_that_run(sub: Any, write: Write, program: Path, user_home: Path) -> None:
    answering(program)
    for client, name in FILES.items():
        write(name, "" if client == "codex" else CLAUDE if client != "opencode" else "{}")
    assert sub("import", "--trust").code == 0
    found = checks(sub)
    assert {name: ok for name, (ok, _) in found.items()} == dict.fromkeys(
        [f"hooks:{name}" for name in ("claude", "codex", "gemini", "opencode", "copilot")], True
    )
    assert found["hooks:claude"][1] == (
        f"Claude Code runs our hook, and it answers: `{user_home}/.claude/settings.json`"
    )


def test_servers_without_hooks_are_told(sub: Any, write: Write, program: Path) -> None:
    write(".claude.json", CLAUDE)
    sub("import", "--no-hooks")
    assert checks(sub) == {"hooks:claude": (True, "no hooks: only calls of MCP servers are seen")}


def test_hooks_that_are_gone(sub: Any, write: Write, program: Path, user_home: Path) -> None:
    answering(program)
    write(".claude.json", CLAUDE)
    sub("import")
    (user_home / ".claude" / "settings.json").write_text("{}")
    assert "hooks of Claude Code are missing" in problem(sub)
    (user_home / ".claude" / "settings.json").write_text("{")
    assert "expected a name in double quotes" in problem(sub)


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("exit 0", "does not answer as it should (exit code 0)"),
        ("exit 2", "does not answer as it should (exit code 2)"),
        ("echo '{\"subluminal\": 7}'", "does not answer as it should (exit code 0)"),
        ("sleep 600 & sleep 600", "did not answer within 1 s"),
        ('echo \'{"subluminal": {"version": "1", "home": "/x"}}\'', "in another home, `/x`"),
    ],
)
def test_hooks_that_do_not_answer(
    sub: Any,
    write: Write,
    program: Path,
    monkeypatch: pytest.MonkeyPatch,
    script: str,
    said: str,
) -> None:
    monkeypatch.setattr(hooks, "_TIMEOUT_S", 1.0)
    program.write_text(f"#!/bin/sh\n{script}\n")
    write(".claude.json", CLAUDE)
    sub("import")
    assert said in problem(sub)


def test_a_program_that_cannot_start(sub: Any, write: Write, program: Path) -> None:
    write(".config/opencode/opencode.json", "{}")
    write(".claude.json", CLAUDE)
    sub("import")
    program.write_text("#!/nowhere/python\n")  # as after an upgrade of Python
    assert "does not answer as it should (exit code 12" in problem(sub)
    assert "cannot be started: no such file or directory" in problem(sub, "opencode")


@pytest.mark.parametrize(
    ("client", "name", "text"),
    [
        ("claude", ".claude/settings.local.json", '{"disableAllHooks": true}'),
        ("claude", "repo/.claude/settings.json", '{"disableAllHooks": true}'),
        ("gemini", "repo/.gemini/settings.json", '{"hooksConfig": {"enabled": false}}'),
        ("copilot", ".copilot/settings.json", '{"disableAllHooks": true // x\n}'),
    ],
)
def test_hooks_that_are_switched_off(
    sub: Any,
    write: Write,
    program: Path,
    user_home: Path,
    monkeypatch: pytest.MonkeyPatch,
    client: str,
    name: str,
    text: str,
) -> None:
    answering(program)
    write(FILES[client], CLAUDE)
    file = write(name, text)
    (user_home / "repo" / ".git").mkdir(parents=True, exist_ok=True)
    sub("import", "--scope", "user")
    monkeypatch.chdir(user_home / "repo")
    assert f"`{file}` switches hooks off: `" in problem(sub, client)
    file.write_text(text.replace("true", "0").replace("false", "0"))
    assert checks(sub)[f"hooks:{client}"][0]


def test_codex_that_does_not_trust(sub: Any, write: Write, program: Path) -> None:
    answering(program)
    config = write(".codex/config.toml", "")
    sub("import", "codex")
    assert problem(sub, "codex") == "Codex does not trust the hooks, so it does not run them"
    sub("import", "codex", "--trust")
    assert checks(sub)["hooks:codex"][0]
    trusted = config.read_text()
    config.write_text(trusted.replace("trusted_hash", "enabled = false\ntrusted_hash", 1))
    assert problem(sub, "codex") == "hooks are switched off in Codex"
    config.write_text("[features]\nhooks = false\n" + trusted)
    assert problem(sub, "codex") == "Codex does not list the hooks: they are switched off"


def test_codex_that_is_gone(
    sub: Any, write: Write, program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answering(program)
    write(".codex/config.toml", "")
    sub("import", "codex", "--trust")
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    assert "cannot be asked whether it trusts the hooks: `codex` is not" in problem(sub, "codex")


def test_runs_without_hooks(sub: Any, write: Write, program: Path, own_home: Path) -> None:
    """A client that was started before the import, or that skips its hooks."""
    answering(program)
    write(".claude.json", CLAUDE)
    record(own_home, "run-before", "claude", "mcp_stdio")
    sub("import")
    assert checks(sub)["hooks:claude"][0], "earlier runs had no hooks to run"
    record(own_home, "run-hooked", "claude", "mcp_stdio", "agent_hook")
    record(own_home, "run-other", "codex", "mcp_stdio")
    record(own_home, "run-idle", "claude")
    assert checks(sub)["hooks:claude"][0]
    record(own_home, "run-skipped", "claude", "mcp_stdio")
    assert problem(sub) == "Claude Code did not run its hooks in 1 recent run: run-skipped"


def record(home: Path, run: str, client: str, *transports: str) -> None:
    """Writes a journal with a call for each transport, each by a shim of its own."""
    folder = home / "journal" / run
    folder.mkdir(parents=True)
    (home / "journal").chmod(0o700)
    for number, transport in enumerate(transports or ("none",)):
        at = rfc3339(now().wall_ms + 1)
        head = {"type": "run_start", "v": "0.1.0", "ts": at, "run_id": run, "client": client}
        call = {**head, "type": "tool_call_start", "call": {"transport": transport}}
        lines = [json.dumps(each, separators=(",", ":")) + "\n" for each in (head, call)]
        (folder / f"shim-{number}.jsonl").write_text("".join(lines[: 1 + bool(transports)]))
