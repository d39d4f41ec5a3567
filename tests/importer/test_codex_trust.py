"""Codex runs no hook that it does not trust: `sub import codex --trust`, and what undoes it."""

import json
import os
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.importer.fake_codex import install
from tests.importer.generated import toml_configs
from tests.importer.test_bad_input import nothing_changes
from tests.processes import pids, wait_until

from subluminal.importer.clients.description import Scene
from subluminal.importer.clients.table import CODEX
from subluminal.importer.document import parse
from subluminal.importer.hooks.trusting import with_trust, without_trust
from subluminal.importer.text.toml_edits import removed
from subluminal.operator import codex_hooks
from subluminal.operator.codex_hooks import our_codex_hooks

CONFIG = '# mine\nmodel = "x"\n\n[mcp_servers.fs]\ncommand = "npx"\n'
OTHER = '\n[hooks.state."/other:stop:0:0"]\ntrusted_hash = "sha256:1"\n'
Write = Callable[[str, str | bytes], Path]


@pytest.fixture(autouse=True)
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory in front of PATH, for a stand-in of Codex."""
    monkeypatch.delenv("CI", raising=False)
    folder = tmp_path / "path"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return folder


@pytest.fixture
def codex(path: Path) -> Path:
    return install(path)


def others_in(folder: Path) -> list[int]:
    """Processes besides this one that run in a directory, where Codex is started."""
    found = []
    for pid in pids():
        try:
            if pid != os.getpid() and os.readlink(f"/proc/{pid}/cwd") == str(folder):
                found.append(pid)
        except OSError:
            continue
    return found


def scene() -> Scene:
    return Scene(os.environ, os.getcwd())


@pytest.mark.parametrize("config", [CONFIG, CONFIG + OTHER, CONFIG.replace("\n", "\r\n"), "", None])
def test_hooks_are_trusted_and_the_bytes_come_back(
    sub: Any, write: Write, program: Path, user_home: Path, codex: Path, config: str | None
) -> None:
    (user_home / ".codex").mkdir()
    if config is not None:
        write(".codex/config.toml", config)
    file = user_home / ".codex" / "config.toml"
    with nothing_changes(user_home):
        ran = sub("import", "codex", "--trust")
        assert ran.code == 0
        assert "Codex trusts the hooks now." in ran.err
        found = our_codex_hooks(scene())
        assert len(found) == 7
        assert all(hook.is_trusted for hook in found)
        state = tomllib.loads(file.read_text())["hooks"]["state"]
        assert {key: s["trusted_hash"] for key, s in state.items() if "other" not in key} == {
            hook.key: hook.hash for hook in found
        }
        again = sub("import", "codex", "--trust")
        assert (again.code, again.err) == (0, "Nothing to change.\n")
        assert sub("restore", "codex").code == 0


def test_without_a_word_nothing_is_trusted(
    sub: Any, write: Write, program: Path, codex: Path
) -> None:
    file = write(".codex/config.toml", CONFIG)
    ran = sub("import", "codex", "--yes")
    assert ran.code == 0
    assert "Codex does not run the hooks, because it does not trust them" in ran.err
    assert "hint: run `sub import codex --trust`" in ran.err
    assert "hooks" not in tomllib.loads(file.read_text())


@pytest.mark.parametrize(("answer", "trusts"), [(b"\n", True), (b"n\n", False), (b"", False)])
def test_a_person_is_asked(
    sub: Any,
    write: Write,
    program: Path,
    codex: Path,
    monkeypatch: pytest.MonkeyPatch,
    answer: bytes,
    trusts: bool,
) -> None:
    write(".codex/config.toml", CONFIG)
    sub("import", "codex", "--yes")
    monkeypatch.setattr("tests.cli.conftest.Stream.isatty", lambda _: True)
    ran = sub("import", "codex", stdin=answer, terminal=True)
    assert (ran.code, ran.err.count("trust these hooks in Codex?")) == (0, 1)
    assert all(hook.is_trusted for hook in our_codex_hooks(scene())) is trusts


def test_trust_follows_a_moved_sub(
    sub: Any, write: Write, program: Path, codex: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(".codex/config.toml", CONFIG)
    sub("import", "codex", "--trust")
    moved = program.with_name("other") / "sub"
    moved.parent.mkdir()
    program.rename(moved)
    monkeypatch.setattr("sys.argv", [str(moved)])
    assert sub("import", "codex", "--trust").code == 0
    assert all(hook.is_trusted for hook in our_codex_hooks(scene()))
    assert len(tomllib.loads(file.read_text())["hooks"]["state"]) == 7
    sub("restore", "codex")
    assert file.read_text() == CONFIG


def test_later_edits_of_the_configuration_stay(
    sub: Any, write: Write, program: Path, codex: Path
) -> None:
    file = write(".codex/config.toml", CONFIG + OTHER)
    sub("import", "codex", "--trust")
    text = file.read_text()
    file.write_text(text.replace('"x"', '"y"') + "\n[tui]\ntheme = 'z'\n")
    sub("restore", "codex")
    wanted = (CONFIG + OTHER).replace('"x"', '"y"') + "\n[tui]\ntheme = 'z'\n"
    assert file.read_text() == wanted


def test_trust_that_a_person_gave_since_stays(
    sub: Any, write: Write, program: Path, codex: Path
) -> None:
    file = write(".codex/config.toml", CONFIG)
    sub("import", "codex", "--trust")
    hook = our_codex_hooks(scene())[0]
    file.write_text(file.read_text().replace(hook.hash, "sha256:other"))
    sub("restore", "codex")
    state = tomllib.loads(file.read_text())["hooks"]["state"]
    assert state == {hook.key: {"trusted_hash": "sha256:other"}}


def test_hooks_of_others_are_not_trusted(
    sub: Any, write: Write, program: Path, codex: Path
) -> None:
    write(".codex/config.toml", CONFIG)
    other = {"hooks": [{"type": "command", "command": "mine.sh"}]}
    write(".codex/hooks.json", json.dumps({"hooks": {"Stop": [other]}}))
    sub("import", "codex", "--trust")
    assert len(our_codex_hooks(scene())) == 7
    assert not any(":stop:0:0" in hook.key for hook in our_codex_hooks(scene()))


def test_no_codex(sub: Any, write: Write, program: Path) -> None:
    write(".codex/config.toml", CONFIG)
    ran = sub("import", "codex", "--yes")
    assert ran.code == 0
    assert "Codex runs no hook that it does not trust: `codex` is not in PATH" in ran.err
    assert sub("import", "codex", "--trust").code == 1, "what was asked for was not done"


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("#!/bin/sh\nexit 1\n", "does not tell which hooks it trusts"),
        ("#!/bin/sh\ncat >/dev/null & sleep 600 & wait\n", "does not tell which hooks it trusts"),
        ("#!/bin/sh\necho '[1]'; echo nonsense; cat >/dev/null\n", "does not tell which hooks"),
        ('#!/bin/sh\necho \'{{"id":2,"error":{{}}}}\'; cat >/dev/null\n', "does not tell which"),
        (
            '#!/bin/sh\necho \'{{"id":2,"result":{{"data":[{{"hooks":[7]}}]}}}}\'\ncat >/dev/null\n',
            "lists its hooks in another form",
        ),
        ("not a program", "cannot start"),
    ],
)
def test_a_codex_that_does_not_tell(
    sub: Any,
    write: Write,
    program: Path,
    user_home: Path,
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
    script: str,
    said: str,
) -> None:
    """It is bounded in time, and leaves no process behind."""
    monkeypatch.setattr(codex_hooks, "_TIMEOUT_S", 0.5)
    write(".codex/config.toml", CONFIG)
    install(path, script)
    ran = sub("import", "codex", "--trust")
    assert ran.code == 1
    assert said in ran.err
    wait_until(lambda: not others_in(user_home), "nothing is left")


def test_trust_is_for_codex(sub: Any, write: Write, program: Path) -> None:
    write(".claude.json", "{}")
    for words in (["claude", "--trust"], ["codex", "--no-hooks", "--trust"]):
        ran = sub("import", *words)
        assert ran.code == 2
        assert "`--trust` is about the hooks of Codex" in ran.err


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(config=toml_configs(), keys=st.lists(st.sampled_from(["/a:x:0:0", "b", 'q"'])))
def test_trust_comes_and_goes_in_any_configuration(config: bytes, keys: list[str]) -> None:
    trusted = {key: f"sha256:{number}" for number, key in enumerate(keys)}
    before = parse(CODEX, "f", config)
    after = parse(CODEX, "f", with_trust(before, trusted))
    assert (tomllib.loads(after.text).get("hooks", {}).get("state", {})) == {
        key: {"trusted_hash": value} for key, value in trusted.items()
    }
    back = without_trust(after, trusted)
    # A last line without an end gets one, as an editor would do it.
    assert back in (config, config + b"\n", config + b"\r\n")


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("[a.b]\nk = 'v'\n", ""),
        ("[a.b]\nk = 'v'", ""),
        ("x = 1\n[a.b]\nk = 'v' # why\ny = 2\n", "x = 1\n[a.b]\n # why\ny = 2\n"),
        ("[a.b]\ny = 2\nk = 'v'\n", "[a.b]\ny = 2\n"),
        ("a.b.k = 'v'\nc = 1\n", "c = 1\n"),
        ("a = { b = { k = 'v' } }\n", "a = { b = {} }\n"),
        ("x = 1\n", "x = 1\n"),
    ],
)
def test_a_value_is_removed_wherever_it_is(text: str, rest: str) -> None:
    assert removed(text, ("a", "b", "k")) == rest
