"""`sub import` and the client's own hooks: what is added, what is asked, what `sub restore` undoes."""

import json
import os
import shlex
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.importer.test_bad_input import nothing_changes
from tests.requirements import requirement

from subluminal.config.places import places
from subluminal.importer.backups import list_backups
from subluminal.importer.clients.table import CLIENTS

CLAUDE = '{"mcpServers": {"fs": {"command": "npx", "args": ["x"]}}}\n'
SETTINGS = """\
{
  "model": "x", // mine
  "hooks": {
    "PreToolUse": [
      {
        "matcher": "Bash",
        "hooks": [{"type": "command", "command": "mine.sh"}]
      }
    ],
    "Notification": []
  },
  "theme": "dark"
}
"""
EVENTS = {name: c.hooks.events for name, c in CLIENTS.items() if c.hooks}
FILES = {
    "claude": ".claude/settings.json",
    "codex": ".codex/hooks.json",
    "gemini": ".gemini/settings.json",
    "copilot": ".copilot/hooks/subluminal.json",
    "opencode": ".config/opencode/plugin/subluminal.js",
}
SERVER_FILES = {
    "claude": (".claude.json", CLAUDE),
    "codex": (".codex/config.toml", "model = 'x'\n"),
    "gemini": (".gemini/settings.json", CLAUDE),
    "copilot": (".copilot/mcp-config.json", CLAUDE),
    "opencode": (".config/opencode/opencode.json", '{"mcp": {}}\n'),
}
Write = Callable[[str, str | bytes], Path]


@pytest.fixture(autouse=True)
def own_shell(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No CI, and no Codex to ask."""
    monkeypatch.delenv("CI", raising=False)
    empty = tmp_path / "path"
    empty.mkdir()
    monkeypatch.setenv("PATH", f"{empty}:/usr/bin:/bin")


@pytest.fixture
def at_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.cli.conftest.Stream.isatty", lambda _: True)
    monkeypatch.setenv("NO_COLOR", "1")


def commands(file: Path, key: str = "command") -> list[str]:
    """Every command in a file of hooks, in order."""
    found = []

    def look(value: Any) -> None:
        if isinstance(value, dict):
            found.extend([value[key]] if isinstance(value.get(key), str) else [])
            for each in value.values():
                look(each)
        elif isinstance(value, list):
            for each in value:
                look(each)

    look(json.loads(file.read_text())["hooks"])
    return found


@requirement("001-13:import")
def test_claude_gets_a_hook_for_every_event(
    sub: Any, write: Write, program: Path, user_home: Path
) -> None:
    write(".claude.json", CLAUDE)
    ran = sub("import", "claude")
    assert ran.code == 0
    file = user_home / ".claude" / "settings.json"
    line = shlex.join([str(program), "hook", "claude", "--home", os.environ["SUB_HOME"]])
    hook = {"type": "command", "command": line, "timeout": 10}
    wanted = {event: [{"hooks": [hook]}] for event in EVENTS["claude"]}
    assert json.loads(file.read_text()) == {"hooks": wanted}
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert "hooks  add       SessionStart, UserPromptSubmit, PreToolUse" in ran.out
    assert f"added hooks to `{file}`" in ran.err
    assert "Every tool of Claude Code is now decided and recorded, not only MCP servers." in ran.err


def test_the_default_home_is_not_named(
    sub: Any, write: Write, program: Path, user_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SUB_HOME")
    write(".claude.json", CLAUDE)
    sub("import", "claude")
    found = commands(user_home / ".claude" / "settings.json")
    assert set(found) == {f"{program} hook claude"}


@requirement("001-13:restore")
@pytest.mark.parametrize("client", list(FILES))
def test_every_client_twice_and_back(
    sub: Any, write: Write, program: Path, user_home: Path, client: str
) -> None:
    """New files appear, a second import changes nothing, and a restore leaves no trace."""
    write(*SERVER_FILES[client])
    with nothing_changes(user_home):
        assert sub("import", client).code == 0
        file = user_home / FILES[client]
        assert f"hook {client}" in file.read_text().replace('", "', " ")
        once = file.stat()
        again = sub("import", client)
        assert (again.code, file.stat().st_ino) == (0, once.st_ino)
        assert "Nothing to change." in again.err
        assert sub("import", "--check", client).code == 0
        ran = sub("restore", client)
        assert ran.code == 0
    made = [Path(FILES[client]).parent] if client in ("copilot", "opencode", "claude") else []
    assert not any((user_home / each).exists() for each in made), "directories go, too"


def test_the_forms_of_the_clients(sub: Any, write: Write, program: Path, user_home: Path) -> None:
    """Seconds and milliseconds, names of events, and who names the event."""
    for name, text in SERVER_FILES.values():
        write(name, text)
    assert sub("import", "--yes").code == 0
    codex = json.loads((user_home / FILES["codex"]).read_text())["hooks"]
    assert list(codex) == list(EVENTS["codex"])
    assert codex["PreToolUse"][0]["hooks"][0]["timeout"] == 10
    gemini = json.loads((user_home / FILES["gemini"]).read_text())
    assert gemini["hooks"]["BeforeTool"][0]["hooks"][0]["timeout"] == 10_000
    assert gemini["mcpServers"]["fs"]["command"] == str(program)
    copilot = json.loads((user_home / FILES["copilot"]).read_text())
    assert copilot["version"] == 1
    assert set(copilot["hooks"]["preToolUse"][0]) == {"type", "bash", "timeoutSec"}
    for event, (hook,) in copilot["hooks"].items():
        assert shlex.split(hook["bash"])[:4] == [str(program), "hook", "copilot", event]
    plugin = (user_home / FILES["opencode"]).read_text()
    words = [str(program), "hook", "opencode", "--home", os.environ["SUB_HOME"]]
    assert f"const COMMAND = {json.dumps(words)}\n" in plugin


def test_hooks_of_the_user_stay(sub: Any, write: Write, program: Path, user_home: Path) -> None:
    write(".claude.json", CLAUDE)
    file = write(".claude/settings.json", SETTINGS)
    assert sub("import", "claude").code == 0
    after = file.read_text()
    assert all(line in after for line in SETTINGS.splitlines()[:8])
    assert after.count("mine.sh") == 1
    assert after.count(" hook claude") == len(EVENTS["claude"])
    assert '\n      },\n      {\n        "hooks": [\n' in after, "in the style of the file"
    sub("restore", "claude")
    assert file.read_text() == SETTINGS


def test_later_edits_of_a_file_of_hooks_stay(sub: Any, write: Write, program: Path) -> None:
    write(".claude.json", CLAUDE)
    file = write(".claude/settings.json", SETTINGS)
    sub("import", "claude")
    file.write_text(file.read_text().replace('"dark"', '"light"').replace("mine.sh", "other.sh"))
    ran = sub("restore", "claude")
    assert file.read_text() == SETTINGS.replace('"dark"', '"light"').replace("mine.sh", "other.sh")
    assert "took out the hooks; everything else is kept" in ran.out


def test_a_new_file_with_later_edits_stays_without_hooks(
    sub: Any, write: Write, program: Path, user_home: Path
) -> None:
    write(".claude.json", CLAUDE)
    sub("import", "claude")
    file = user_home / ".claude" / "settings.json"
    value = {"model": "x", **json.loads(file.read_text())}
    file.write_text(json.dumps(value, indent=2))
    sub("restore", "claude")
    assert json.loads(file.read_text()) == {"model": "x"}


def test_a_file_that_is_not_new_any_more_stays(
    sub: Any, write: Write, program: Path, user_home: Path
) -> None:
    """An earlier import created it, but this one found it there."""
    write(".claude.json", CLAUDE)
    sub("import", "claude")
    sub("restore", "claude")
    file = write(".claude/settings.json", "{}")
    sub("import", "claude")
    file.write_text(json.dumps(json.loads(file.read_text())))
    sub("restore", "claude")
    assert file.read_text() == "{}"


def test_a_new_file_that_its_client_wrote_anew_goes(
    sub: Any, write: Write, program: Path, user_home: Path
) -> None:
    write(".copilot/mcp-config.json", CLAUDE)
    sub("import", "copilot")
    file = user_home / FILES["copilot"]
    file.write_text(json.dumps(json.loads(file.read_text())))
    sub("restore", "copilot")
    assert not file.parent.exists()


def test_a_moved_sub_is_refreshed(
    sub: Any, write: Write, program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a person added to the command stays."""
    for name, text in SERVER_FILES.values():
        write(name, text)
    sub("import")
    user_home = Path.home()
    claude = user_home / FILES["claude"]
    claude.write_text(claude.read_text().replace("hook claude", "hook claude --policy /p.yaml", 1))
    moved = tmp_path / "new place" / "sub"
    moved.parent.mkdir()
    program.rename(moved)
    monkeypatch.setattr("sys.argv", [str(moved)])
    check = sub("import", "--check")
    assert check.code == 1
    assert f"they name `{program}`, which does not exist" in check.out
    ran = sub("import")
    assert "hooks  refresh   SessionStart" in ran.out
    for name in FILES.values():
        assert str(program) not in (user_home / name).read_text()
    assert sum("--policy /p.yaml" in line for line in commands(claude)) == 1
    assert commands(claude)[1].startswith(f"'{moved}' hook claude --home ")
    sub("restore")
    assert not claude.exists()


def test_hooks_can_be_left_alone(
    sub: Any, write: Write, program: Path, user_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(".claude.json", CLAUDE)
    write(".gemini/settings.json", CLAUDE)
    project = write("repo/.mcp.json", CLAUDE)
    (user_home / "repo" / ".git").mkdir()
    monkeypatch.chdir(user_home / "repo")
    for words in (["--no-hooks"], ["--scope", "project"], ["claude", "--path", str(project)]):
        assert sub("import", *words, "--yes").code == 0
    assert not (user_home / ".claude").exists()
    assert "BeforeTool" not in (user_home / ".gemini" / "settings.json").read_text()
    assert sub("import", "--check", "claude").code == 0, "they were never imported"


def test_only_clients_that_are_used_get_hooks(
    sub: Any, write: Write, program: Path, user_home: Path
) -> None:
    write(".mcp.json", CLAUDE)
    (user_home / ".codex").mkdir()
    assert sub("import").code == 0
    assert (user_home / FILES["codex"]).exists()
    assert [each for each in FILES if (user_home / FILES[each]).exists()] == ["codex"]
    ran = sub("import", "gemini")
    assert ran.code == 2
    assert "add hooks alone with `--hooks`" in ran.err
    assert sub("import", "gemini", "--hooks").code == 0
    assert (user_home / FILES["gemini"]).exists()


@pytest.mark.parametrize(
    ("answers", "hooks", "servers"),
    [
        (b"\n\n", True, True),
        (b"n\n\n", False, True),
        (b"y\nn\n", False, False),
        (b"", False, False),
    ],
)
def test_a_person_is_asked_about_hooks(
    sub: Any,
    write: Write,
    program: Path,
    user_home: Path,
    at_terminal: None,
    answers: bytes,
    hooks: bool,
    servers: bool,
) -> None:
    file = write(".claude.json", CLAUDE)
    ran = sub("import", "claude", stdin=answers, terminal=True)
    assert ran.err.count("[Y/n]") == 2
    assert (user_home / FILES["claude"]).exists() is hooks
    assert (file.read_text() != CLAUDE) is servers


@pytest.mark.parametrize("word", ["--yes", "--hooks"])
def test_nobody_is_asked_twice(
    sub: Any, write: Write, program: Path, user_home: Path, at_terminal: None, word: str
) -> None:
    write(".claude.json", '{"mcpServers": {}}')
    ran = sub("import", "claude", word, terminal=True)
    assert (ran.code, ran.err.count("[Y/n]")) == (0, 0)
    assert (user_home / FILES["claude"]).exists()


def test_a_dry_run_writes_nothing(sub: Any, write: Write, program: Path, user_home: Path) -> None:
    for name, text in SERVER_FILES.values():
        write(name, text)
    with nothing_changes(user_home):
        ran = sub("import", "--dry-run")
    assert ran.code == 0
    assert f"+++ {user_home / FILES['claude']} (imported)" in ran.out
    assert '+    "PreToolUse": [' in ran.out


@pytest.mark.parametrize("by", ["flag", "ci"])
def test_failing_closed(
    sub: Any,
    write: Write,
    program: Path,
    user_home: Path,
    monkeypatch: pytest.MonkeyPatch,
    by: str,
) -> None:
    """Codex and Gemini CLI run a call after a silent exit 2, so there is a text on stderr.

    A hook that fails at another event would end the session, or replace a tool's result.
    """
    for name, text in SERVER_FILES.values():
        write(name, text)
    sub("import")
    if by == "ci":
        monkeypatch.setenv("CI", "true")
    words = ["--fail-closed"] if by == "flag" else []
    assert sub("import", *words).code == 0
    claude = json.loads((user_home / FILES["claude"]).read_text())["hooks"]
    assert [e for e, (g,) in claude.items() if "onFailure" in g["hooks"][0]] == ["PreToolUse"]
    assert claude["PreToolUse"][0]["hooks"][0]["onFailure"] == "block"
    for client, event in (("codex", "PreToolUse"), ("gemini", "BeforeTool")):
        found = json.loads((user_home / FILES[client]).read_text())["hooks"]
        lines = {name: group["hooks"][0]["command"] for name, (group,) in found.items()}
        assert [name for name, line in lines.items() if "exit 2" in line] == [event]
        ran = subprocess.run(
            ["/bin/sh", "-c", lines[event].replace(str(program), "/nowhere/sub")],
            capture_output=True,
            check=False,
        )
        assert (ran.returncode, ran.stdout) == (2, b"")
        assert b"so the call is refused" in ran.stderr
    for line in commands(user_home / FILES["copilot"], "bash"):
        assert "exit" not in line
    monkeypatch.delenv("CI", raising=False)
    assert "Nothing to change." in sub("import").err, "once set, it stays set"
    sub("restore")
    assert not any((user_home / FILES[c]).exists() for c in FILES if c != "gemini")


def test_rows_as_json(sub: Any, write: Write, program: Path, user_home: Path) -> None:
    write(".claude.json", CLAUDE)
    rows = [json.loads(line) for line in sub("import", "claude", "--json").out.splitlines()]
    assert [(r["server_name"], r["action"], r["changed"]) for r in rows] == [
        ("fs", "wrap", True),
        ("@claude", "wrap", True),
    ]
    assert rows[1]["hooks"] == list(EVENTS["claude"])
    assert rows[1]["path"] == str(user_home / FILES["claude"])
    restored = [json.loads(line) for line in sub("restore", "claude", "--json").out.splitlines()]
    assert [(r["how"], r["hooks"]) for r in restored] == [
        ("exact", []),
        ("removed", list(EVENTS["claude"])),
    ]


# Files that are not as expected


def test_a_linked_file_stays_a_link(sub: Any, write: Write, program: Path, user_home: Path) -> None:
    write(".claude.json", CLAUDE)
    real = write("dotfiles/settings.json", SETTINGS)
    real.chmod(0o640)
    (user_home / ".claude").mkdir()
    link = user_home / FILES["claude"]
    link.symlink_to("../dotfiles/settings.json")
    sub("import", "claude")
    assert link.is_symlink()
    assert "hook claude" in real.read_text()
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    sub("restore", "claude")
    assert (link.is_symlink(), real.read_text()) == (True, SETTINGS)


def test_a_dangling_link_is_followed(
    sub: Any, write: Write, program: Path, user_home: Path
) -> None:
    write(".claude.json", CLAUDE)
    (user_home / ".claude").mkdir()
    link = user_home / FILES["claude"]
    link.symlink_to(user_home / "dotfiles" / "settings.json")
    assert sub("import", "claude").code == 0
    assert (user_home / "dotfiles" / "settings.json").is_file()
    assert sub("restore", "claude").code == 0
    assert link.is_symlink()
    assert not (user_home / "dotfiles").exists()


@pytest.mark.parametrize(
    "content", [b"", b" \n\t", b"\xef\xbb\xbf", b"{}", b"{ }\r\n", b"\t{\n}\n"]
)
def test_files_with_nothing_in_them(sub: Any, write: Write, program: Path, content: bytes) -> None:
    write(".claude.json", CLAUDE)
    file = write(".claude/settings.json", content)
    assert sub("import", "claude").code == 0
    assert len(commands(file)) == len(EVENTS["claude"])
    sub("restore", "claude")
    assert file.read_bytes() == content


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"hooks": {', "settings.json:1:12: expected a name in double quotes"),
        ("[]", "the file does not hold an object"),
        ('{"hooks": []}', "its `hooks` is not an object"),
        ('{"hooks": {"PreToolUse": {}}}', "its `hooks.PreToolUse` is not a list"),
        ('{"hooks": {}, "hooks": {}}', "`hooks` occurs twice"),
        ('{"hooks": {"Stop": [], "Stop": []}}', "`Stop` occurs twice"),
        (b"\x7fELF\x00\xff", "not UTF-8 text"),
    ],
)
def test_files_that_are_not_understood(
    sub: Any, write: Write, program: Path, user_home: Path, own_home: Path, content: Any, said: str
) -> None:
    write(".claude.json", CLAUDE)
    write(".claude/settings.json", content)
    with nothing_changes(user_home):
        ran = sub("import", "claude")
    assert ran.code == 2
    assert said in ran.err
    assert not list_backups(places(os.environ)), "not even the valid file was changed"
    assert sub("import", "claude", "--no-hooks").code == 0


def test_what_only_resembles_our_hook_is_left_alone(sub: Any, write: Write, program: Path) -> None:
    lines = [
        "sub hook codex",
        "subway hook claude",
        "sub hook claude; rm x",
        "sub hook claude --other x",
        "sub hook claude a b",
        "sub hook claude --home",
        "sub hook 'claude",
        "echo | sub hook claude",
    ]
    hooks = [{"type": "command", "command": line} for line in lines]
    odd = [{"hooks": hooks}, {"hooks": 7}, 7, {"hooks": [{"type": "prompt"}, 7]}]
    write(".claude.json", "{}")
    file = write(".claude/settings.json", json.dumps({"hooks": {"PreToolUse": odd, "X": 7}}))
    before = file.read_text()
    assert sub("restore", "claude").err == "Nothing to restore.\n"
    sub("import", "claude")
    assert json.loads(file.read_text())["hooks"]["PreToolUse"][:4] == odd
    file.write_text(file.read_text() + "\n")
    sub("restore", "claude")
    assert file.read_text() == before + "\n"


def test_a_hook_that_stands_twice_is_left_once(sub: Any, write: Write, program: Path) -> None:
    twice = [{"hooks": [{"type": "command", "command": f"/{n}/sub hook claude"}]} for n in "ab"]
    twice[1]["hooks"].append({"type": "command", "command": "mine.sh"})
    write(".claude.json", CLAUDE)
    file = write(".claude/settings.json", json.dumps({"hooks": {"Stop": twice}}))
    sub("import", "claude")
    stop = json.loads(file.read_text())["hooks"]["Stop"]
    assert [h["command"].split()[-1] for g in stop for h in g["hooks"]][1:] == ["mine.sh"]
    assert len(stop[0]["hooks"]) == 1


def test_a_plugin_of_someone_else_is_refused(sub: Any, write: Write, program: Path) -> None:
    write(".config/opencode/opencode.json", '{"mcp": {}}')
    file = write(FILES["opencode"], "export const Mine = 1\n")
    ran = sub("import", "opencode")
    assert (ran.code, file.read_text()) == (2, "export const Mine = 1\n")
    assert "was not written by `sub import`" in ran.err
    assert sub("restore", "opencode").err == "Nothing to restore.\n"


def test_a_directory_that_cannot_be_made(
    sub: Any, write: Write, program: Path, user_home: Path
) -> None:
    write(".claude.json", CLAUDE)
    write(".claude", "a file")
    with nothing_changes(user_home):
        ran = sub("import", "claude")
    assert ran.code == 2
    assert f"`{user_home}/.claude` is not a directory" in ran.err


def test_a_file_that_cannot_be_written_undoes_the_others(
    sub: Any, write: Write, program: Path, user_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An import changes all of its files, or none: a new file is removed again."""
    write(".claude.json", CLAUDE)
    write(".copilot/mcp-config.json", CLAUDE)

    def link(source: str, target: str) -> None:
        if "copilot" in target:
            raise OSError(28, os.strerror(28))
        real(source, target)

    real = os.link
    monkeypatch.setattr(os, "link", link)
    with nothing_changes(user_home):
        ran = sub("import")
    assert ran.code == 2
    assert "no space left" in ran.err
    assert not (user_home / ".claude").exists()
    assert not (user_home / ".copilot" / "hooks").exists()


def test_a_file_that_appears_meanwhile_is_read(
    sub: Any, write: Write, program: Path, user_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(".claude.json", CLAUDE)
    file = user_home / FILES["claude"]

    def link(source: str, target: str) -> None:
        if not file.exists():
            file.write_text(SETTINGS)
        real(source, target)

    real = os.link
    monkeypatch.setattr(os, "link", link)
    assert sub("import", "claude").code == 0
    assert file.read_text().count(" hook claude") == len(EVENTS["claude"])
    sub("restore", "claude")
    assert file.read_text() == SETTINGS


def test_files_that_are_not_ours_do_not_stop_a_restore(
    sub: Any, write: Write, program: Path
) -> None:
    own, gemini = write(".claude.json", CLAUDE), write(".gemini/settings.json", CLAUDE)
    sub("import", "--no-hooks")
    write(".claude/settings.json", "{")
    write(".copilot/hooks/subluminal.json", '{"hooks": 7}')
    wrapped = gemini.read_text()
    gemini.write_text('{"hooks": [],' + wrapped[1:])
    assert sub("restore").code == 0
    assert own.read_text() == CLAUDE
    assert gemini.read_text() == '{"hooks": [],' + CLAUDE[1:]


# Drift


def test_hooks_that_disappeared_are_found(
    sub: Any, write: Write, program: Path, user_home: Path
) -> None:
    write(".claude.json", CLAUDE)
    sub("import", "claude")
    file = user_home / FILES["claude"]
    imported = file.read_text()
    for damage in ("{}", "", imported.replace("SessionEnd", "SessionFinish")):
        file.write_text(damage)
        ran = sub("import", "--check", "claude")
        assert ran.code == 1
        assert f"hooks: hooks of Claude Code are missing from `{file}`" in ran.out
    file.unlink()
    assert sub("import", "--check", "claude").code == 1
    file.write_text("{")
    assert "unreadable" in sub("import", "--check", "claude").out
    file.write_text(imported)
    assert sub("import", "--check", "claude").code == 0
    assert sub("import", "--check", "claude", "--scope", "project").code == 0
    sub("restore", "claude")
    assert "hooks of Claude Code" not in sub("import", "--check", "claude").out


def test_hooks_see_remote_servers(sub: Any, write: Write, program: Path) -> None:
    """Seen with all five clients: hooks run for calls of http servers, too."""
    write(".claude.json", '{"mcpServers": {"web": {"type": "http", "url": "https://x.test"}}}')
    assert "their calls are not seen: `web`" in sub("import", "claude", "--no-hooks").err
    assert "is reached by URL" in sub("import", "--check", "claude").out
    assert "not seen" not in sub("import", "claude").err
    assert sub("import", "--check", "claude") == (
        0,
        "",
        "Every stdio server goes through a shim.\n",
    )


def test_a_server_with_a_reserved_name_is_refused(sub: Any, write: Write, program: Path) -> None:
    text = '{"mcpServers": {"@claude": {"command": "x"}}}'
    file = write(".claude.json", text)
    ran = sub("import", "claude", "--no-hooks")
    assert (ran.code, file.read_text()) == (0, text)
    assert "names that begin with `@` are Subluminal's own; rename the server" in ran.err
    assert sub("import", "--check", "claude").code == 1


def test_an_import_says_that_hooks_are_switched_off(
    sub: Any, write: Write, program: Path, user_home: Path
) -> None:
    """Otherwise an agent that nobody watches looks watched."""
    write(".claude.json", CLAUDE)
    file = write(".claude/settings.json", '{"disableAllHooks": true}\n')
    ran = sub("import", "claude")
    assert f"Claude Code runs no hooks: `{file}` has `disableAllHooks: true`" in ran.err
    assert "Every tool of Claude Code" not in ran.err


def test_a_restore_names_the_file_that_it_does_not_understand(
    sub: Any, write: Write, program: Path, user_home: Path
) -> None:
    write(".claude.json", CLAUDE)
    sub("import", "claude")
    file = write(".claude/settings.json", '{"hooks": []}\n')
    ran = sub("restore", "claude")
    assert f"`{file}`: its `hooks` is not an object" in ran.err


def test_a_link_that_leads_elsewhere_since_the_import(
    sub: Any, write: Write, program: Path, user_home: Path
) -> None:
    """A file that was imported through a link is restored by its own name."""
    write(".claude.json", CLAUDE)
    old, new = write("dot/old.json", '{"a": 1}\n'), write("dot/new.json", '{"b": 2}\n')
    link = user_home / ".claude" / "settings.json"
    link.parent.mkdir()
    link.symlink_to(old)
    sub("import", "claude")
    link.unlink()
    link.symlink_to(new)
    sub("import", "claude")
    assert sub("restore", "claude").code == 0
    assert (old.read_text(), new.read_text()) == ('{"a": 1}\n', '{"b": 2}\n')
