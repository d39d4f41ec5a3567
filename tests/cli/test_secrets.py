"""`sub secrets`: values come in by prompt or stdin, and go out to nobody who is not a person."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from tests.secrets.fixtures import _service, keychain_here, no_keychain  # noqa: F401

from subluminal.config.places import places
from subluminal.contracts.events import Injection
from subluminal.contracts.vocabulary import SecretSource
from subluminal.secrets.usage import record_use

VALUE = "s3cr3t-V4lue-here"
BINDING = """
[[servers.github.secret_bindings]]
inject_as = "GITHUB_TOKEN"
secret_ref = "github_token"
source = "{source}"
"""


@pytest.fixture
def config(own_home: Path) -> Any:
    def write(text: str) -> None:
        own_home.mkdir(parents=True, exist_ok=True)
        (own_home / "config.toml").write_text(text)

    return write


@pytest.mark.usefixtures("no_keychain")
def test_add_stores_from_stdin_and_says_what_is_left_to_do(sub: Any, own_home: Path) -> None:
    ran = sub("secrets", "add", "github_token", stdin=VALUE.encode() + b"\n")
    assert (ran.code, ran.out) == (0, "")
    assert ran.err == (
        "Stored `github_token` (plain).\n"
        f"No server uses it yet. Bind it in `{own_home}/config.toml`:\n\n"
        "  [[servers.NAME.secret_bindings]]\n"
        '  inject_as = "VARIABLE"\n'
        '  secret_ref = "github_token"\n'
        '  source = "file"\n\n'
        "Then run `sub secrets approve NAME -- COMMAND…` with the server's command.\n"
        "warning: the file store is not encrypted; only its mode (0600) protects it\n"
        "hint: set `passphrase_file` in `[secrets]`, or install `subluminal[keychain]`\n"
    )


@pytest.mark.usefixtures("keychain_here")
def test_the_keychain_is_the_default_where_there_is_one(
    sub: Any, config: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    added = sub("secrets", "add", "by_default", "--json", stdin=VALUE.encode())
    assert json.loads(added.out) == {
        "name": "by_default",
        "source": "keychain",
        "protection": "keychain",
    }
    config(BINDING.format(source="keychain").replace("github_token", "by_default"))
    assert sub("secrets", "approve", "github", "--", "env").code == 0
    assert sub("secrets", "check").code == 0
    assert sub("secrets", "rename", "by_default", "renamed").code == 0
    assert sub("secrets", "check").code == 1
    assert sub("secrets", "remove", "renamed").code == 0
    assert sub("secrets", "remove", "renamed").code == 2


def test_a_value_on_the_command_line_is_refused_and_not_repeated(sub: Any) -> None:
    ran = sub("secrets", "add", "github_token", VALUE)
    assert ran.code == 2
    assert "never taken from the command line" in ran.err
    assert VALUE not in ran.err + ran.out


@pytest.mark.parametrize(("name", "value"), [("a b", "x"), ("", "x"), ("ok", ""), ("ok", "a\0b")])
@pytest.mark.usefixtures("no_keychain")
def test_bad_names_and_empty_values_are_refused(sub: Any, name: str, value: str) -> None:
    assert sub("secrets", "add", name, stdin=value.encode()).code == 2
    assert sub("secrets", "list", "--json").out == ""


@pytest.mark.usefixtures("no_keychain")
def test_short_values_are_stored_with_a_warning(sub: Any) -> None:
    assert "cannot be masked" in sub("secrets", "add", "pin", stdin=b"123").err
    assert "only where it stands alone" in sub("secrets", "add", "pin", stdin=b"12345").err


@pytest.mark.usefixtures("no_keychain")
def test_a_prompt_asks_twice(sub: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter([VALUE, VALUE, "one", "two"])
    monkeypatch.setattr("subluminal.cli.commands.secrets_add.is_at_terminal", lambda: True)
    monkeypatch.setattr("getpass.getpass", lambda prompt: next(answers))
    assert sub("secrets", "add", "typed").code == 0
    ran = sub("secrets", "add", "typed")
    assert (ran.code, ran.err) == (2, "error: the two values differ; nothing was stored\n")


@pytest.mark.usefixtures("no_keychain")
def test_list_and_get_show_who_uses_what_and_when_it_worked(sub: Any, config: Any) -> None:
    config(BINDING.format(source="file"))
    sub("secrets", "add", "github_token", stdin=VALUE.encode())
    record_use(
        places(os.environ),
        [
            Injection(
                inject_as="GITHUB_TOKEN",
                secret_ref="github_token",
                source=SecretSource.FILE,
                success=True,
                server_name="github",
            )
        ],
        "2026-11-15T12:00:00.000Z",
    )
    row = json.loads(sub("secrets", "list", "--json").out)
    assert row["servers"] == ["github"]
    assert row["last_ok"] == "2026-11-15T12:00:00.000Z"
    assert row == json.loads(sub("secrets", "get", "github_token", "--json").out)
    listed, got = sub("secrets", "list"), sub("secrets", "get", "github_token")
    assert "github_token  file    github   2026-11-15T12:00:00.000Z" in listed.out
    assert "  last worked  2026-11-15T12:00:00.000Z" in got.out
    assert VALUE not in listed.out + got.out + listed.err + got.err


@pytest.mark.usefixtures("no_keychain")
class TestReveal:
    def test_it_needs_a_terminal(self, sub: Any) -> None:
        sub("secrets", "add", "t", stdin=VALUE.encode())
        ran = sub("secrets", "get", "t", "--reveal")
        assert (ran.code, ran.out) == (2, "")
        assert "only at a terminal" in ran.err

    def test_it_asks_for_the_name(self, sub: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        sub("secrets", "add", "t", stdin=VALUE.encode())
        monkeypatch.setattr("subluminal.cli.commands.secrets_get.is_at_terminal", lambda: True)
        assert sub("secrets", "get", "t", "--reveal", stdin=b"t\n").out == VALUE + "\n"
        ran = sub("secrets", "get", "t", "--reveal", stdin=b"yes\n")
        assert (ran.code, ran.out) == (2, "")

    def test_it_is_not_for_agents(self, sub: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        sub("secrets", "add", "t", stdin=VALUE.encode())
        monkeypatch.setattr("subluminal.cli.commands.secrets_get.is_at_terminal", lambda: True)
        monkeypatch.setenv("CLAUDECODE", "1")
        ran = sub("secrets", "get", "t", "--reveal", stdin=b"t\n")
        assert (ran.code, ran.out) == (2, "")
        assert "`sub secrets get --reveal` is for a person" in ran.err
        assert sub("secrets", "get", "t").code == 0


@pytest.mark.usefixtures("no_keychain")
def test_remove_and_rename_mind_who_uses_a_secret(sub: Any, config: Any) -> None:
    config(BINDING.format(source="file"))
    sub("secrets", "add", "github_token", stdin=VALUE.encode())
    assert "used by `github`" in sub("secrets", "remove", "github_token").err
    ran = sub("secrets", "rename", "github_token", "gh")
    assert ran.code == 0
    assert "bindings still ask for `github_token`: `github`" in ran.err
    assert sub("secrets", "remove", "gh").code == 0
    assert sub("secrets", "remove", "gh").code == 2
    assert sub("secrets", "remove", "github_token", "--force").code == 2


def test_a_variable_is_not_ours_to_change(sub: Any, config: Any) -> None:
    config(BINDING.format(source="env"))
    for words in (("remove", "github_token"), ("rename", "github_token", "x")):
        ran = sub("secrets", *words)
        assert ran.code == 2
        assert "is a variable of the client's environment" in ran.err


@pytest.mark.usefixtures("no_keychain")
def test_a_name_in_two_sources_must_be_told_apart(sub: Any, config: Any) -> None:
    config(BINDING.format(source="env"))
    sub("secrets", "add", "github_token", "--source", "file", stdin=VALUE.encode())
    assert "choose one with `--source`" in sub("secrets", "get", "github_token").err
    assert sub("secrets", "get", "github_token", "--source", "env").code == 0
    assert sub("secrets", "get", "nothing").code == 2
    assert sub("secrets", "get", "nothing", "--source", "file").code == 2


def test_check_resolves_as_a_start_would_and_prints_no_value(
    sub: Any, config: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    config(BINDING.format(source="env"))
    ran = sub("secrets", "check")
    assert ran.code == 1
    assert ran.out == (
        "failed  github: GITHUB_TOKEN from env `github_token`: variable `github_token` is not set\n"
        "  hint: set it where you start the client; some clients clear the environment of servers\n"
    )
    assert ran.err == "1 binding, 1 failed\n"
    monkeypatch.setenv("github_token", VALUE)
    ran = sub("secrets", "check", "--json")
    assert ran.code == 0
    assert json.loads(ran.out)["success"] is True
    assert VALUE not in ran.out
    monkeypatch.setenv("github_token", "abc")
    assert "too short to be masked" in sub("secrets", "check").err
    assert sub("secrets", "check", "--server", "nobody").code == 2


def test_check_refuses_a_pattern_that_cannot_run(sub: Any, config: Any) -> None:
    config('[[redact.patterns]]\nname = "mine"\npattern = "(?=x)"\n')
    ran = sub("secrets", "check")
    assert ran.code == 2
    assert "redact pattern `mine`" in ran.err


def test_an_exposed_store_is_refused_by_every_verb(sub: Any, own_home: Path) -> None:
    (own_home / "secrets").mkdir(parents=True)
    store = own_home / "secrets" / "store.json"
    store.write_text("{}")
    os.chmod(store, 0o644)
    for words in (("list",), ("check",), ("get", "x"), ("scan",)):
        assert "can be read by others" in sub("secrets", *words).err
