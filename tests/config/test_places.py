"""Where things are, who may enter, and how outside names become paths."""

import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subluminal.config.places import encode_name, make_private_dir, places


def test_the_home_is_the_argument_then_the_variable_then_the_default() -> None:
    environ = {"SUB_HOME": "/var/sub"}
    assert places(environ, "/elsewhere").home == "/elsewhere"
    assert places(environ).home == "/var/sub"
    assert places({}).home == os.path.expanduser("~/.subluminal")
    assert places({"SUB_HOME": "~/x"}).home == os.path.expanduser("~/x")


def test_sockets_are_in_the_runtime_directory() -> None:
    environ = {"SUB_HOME": "/h", "XDG_RUNTIME_DIR": "/run/user/7"}
    assert places(environ).runtime_dir == "/run/user/7/subluminal"
    assert places({**environ, "SUB_RUNTIME_DIR": "/r"}).runtime_dir == "/r"
    assert places({"SUB_HOME": "/h"}).runtime_dir == "/h/run"


def test_files_are_below_the_home() -> None:
    found = places({"SUB_HOME": "/h"})
    assert found.settings == "/h/config.toml"
    assert found.journal == "/h/journal"
    assert found.ledger == "/h/ledger.db"
    assert found.policy == "/h/policy.yaml"


def test_a_private_directory_and_its_parents_are_private(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        made = make_private_dir(str(tmp_path / "home" / "journal"))
    finally:
        os.umask(before)
    for path in (made, os.path.dirname(made)):
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o700
    assert make_private_dir(made) == made


def test_a_file_where_a_directory_should_be_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "home"
    file.write_text("")
    with pytest.raises(FileExistsError):
        make_private_dir(str(file))


names = st.text(max_size=200) | st.sampled_from(["", ".", "..", "a/b", "a%2f.b", "%", "\x00"])


@given(names)
def test_a_name_from_outside_is_one_safe_component(name: str) -> None:
    safe = encode_name(name)
    assert safe.isascii()
    assert safe not in ("", ".", "..")
    assert not set(safe) & set("/\\\x00 ")
    assert len(safe) <= 120


@given(names, names)
def test_different_names_stay_different(left: str, right: str) -> None:
    assert (encode_name(left) == encode_name(right)) == (left == right)
