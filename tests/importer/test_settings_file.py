"""Edits of `config.toml`: every notation that a person may have used, and all other bytes kept."""

import os
import tomllib
from pathlib import Path

import pytest

from subluminal.config.places import places
from subluminal.errors import SubluminalError
from subluminal.importer.settings_file import Approval, change_settings

APPROVAL = Approval(["/bin/a", 'say "hi"'], {"PATH": "/bin"}, ("B",))
WRITTEN = {"command": ["/bin/a", 'say "hi"'], "env": {"PATH": "/bin"}, "pass_env": ["B"]}
BINDING = '[[servers.x.secret_bindings]] # b\ninject_as = "A"\nsecret_ref = "a"\nsource = "file"\n'


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# only a comment",
        "[ledger]\nkeep_days = 3 # days\n",
        BINDING,
        "[servers.x] # mine\ngrace_ms = 5 # short\n\n" + BINDING + "\n# the end",
        "[servers.x] # empty\n# a comment\n\n" + BINDING,
        BINDING + "\n[servers.x] # empty\n",
        BINDING + "\n[servers.x]\ngrace_ms = 5\n[ledger]\nkeep_days = 3\n",
        "[servers]\nx.grace_ms = 5 # dotted\ny.grace_ms = 6\n",
        "servers.x = { grace_ms = 5 }\n",
        "servers = { x = { grace_ms = 5 }, y = { grace_ms = 6 } } # all\n",
        "[servers.x]\r\ngrace_ms = 5\r\n# windows\r\n",
        "[servers.x]\npass_env = [\n  'A', # one\n]\nsecret_bindings = [\n  # none\n]\n",
        "[servers.x]\ncommand = [\n  '/old', # before\n]\nenv = { HOME = '/h' }\n",
        "[servers.x.env]\nHOME = '/h' # mine\n[servers.x]\ncommand = ['/old']\n",
        "[servers.x]\ncommand = ['/old']\n[servers.x.env]\n",
    ],
    ids=repr,
)
def test_an_approval_is_written_into_any_notation(own_home: Path, text: str) -> None:
    own_home.mkdir()
    file = own_home / "config.toml"
    file.write_bytes(text.encode())
    before = tomllib.loads(text)
    change_settings(places(os.environ), approvals={"x": APPROVAL})
    now = file.read_bytes().decode()
    wanted = tomllib.loads(text)
    server = wanted.setdefault("servers", {}).setdefault("x", {})
    env = {**before.get("servers", {}).get("x", {}).get("env", {}), "PATH": "/bin"}
    passed = [*server.get("pass_env", []), "B"]
    server |= {**WRITTEN, "env": env, "pass_env": passed}
    assert tomllib.loads(now) == wanted
    kept = [line for line in text.splitlines() if "#" in line and "'" not in line]
    assert [line for line in kept if line.partition("#")[2] not in now] == []
    assert ("\r\n" in text) == ("\r\n" in now)
    change_settings(places(os.environ), approvals={"x": APPROVAL})
    assert file.read_bytes().decode() == now, "the second time changes nothing"


@pytest.mark.parametrize("text", ["servers.x = {}\n", "[servers]\nx = {} # nothing\n"])
def test_a_notation_that_leaves_no_room_is_refused(own_home: Path, text: str) -> None:
    own_home.mkdir()
    file = own_home / "config.toml"
    file.write_text(text)
    with pytest.raises(SubluminalError, match="cannot add `command`") as caught:
        change_settings(places(os.environ), approvals={"x": APPROVAL})
    assert "under `[servers.x]` by hand" in str(caught.value.hint)
    assert file.read_text() == text


def test_a_new_file_is_private(own_home: Path) -> None:
    change_settings(places(os.environ), approvals={"a b": APPROVAL})
    file = own_home / "config.toml"
    assert file.stat().st_mode & 0o777 == 0o600
    assert tomllib.loads(file.read_text()) == {"servers": {"a b": WRITTEN}}
