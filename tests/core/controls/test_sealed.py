"""Sealed files: only what this home wrote is read back (local-is-not-trusted)."""

import os
from pathlib import Path

import pytest

from subluminal.core.controls.sealed import (
    KeyUnusable,
    SealBroken,
    create_sealed,
    read_sealed,
    seal_key,
    unseal,
    write_sealed,
)


def test_what_was_sealed_is_read_back(tmp_path: Path) -> None:
    key = seal_key(str(tmp_path))
    assert key == seal_key(str(tmp_path))
    assert len(key) == 32
    path = str(tmp_path / "a" / "b")
    write_sealed(path, key, "x", b"one\ntwo")
    assert read_sealed(path, key, "x") == b"one\ntwo"
    assert os.stat(path).st_mode & 0o77 == 0
    assert os.listdir(tmp_path / "a") == ["b"]


def test_the_first_one_stays(tmp_path: Path) -> None:
    key, path = seal_key(str(tmp_path)), str(tmp_path / "pin")
    assert create_sealed(path, key, "x", b"first")
    assert not create_sealed(path, key, "x", b"second")
    assert read_sealed(path, key, "x") == b"first"
    assert sorted(os.listdir(tmp_path)) == ["pin", "seal.key"]


@pytest.mark.parametrize("damage", [b"", b"\n", b"no seal\ndata"])
def test_what_was_not_sealed_here_is_nothing(tmp_path: Path, damage: bytes) -> None:
    key, path = seal_key(str(tmp_path)), tmp_path / "file"
    write_sealed(str(path), key, "x", b"data")
    assert read_sealed(str(path), key, "another purpose") is None
    assert read_sealed(str(path), b"another key", "x") is None
    path.write_bytes(path.read_bytes() + b"!")
    assert read_sealed(str(path), key, "x") is None
    path.write_bytes(damage)
    assert read_sealed(str(path), key, "x") is None
    assert read_sealed(str(tmp_path / "missing"), key, "x") is None


@pytest.mark.parametrize("damage", [b"", b"short", b"x" * 33])
def test_a_key_that_is_none_seals_nothing(tmp_path: Path, damage: bytes) -> None:
    """After a power cut a file may be empty; an empty key would be no secret."""
    (tmp_path / "seal.key").write_bytes(damage)
    with pytest.raises(KeyUnusable, match="32 bytes"):
        seal_key(str(tmp_path))
    assert (tmp_path / "seal.key").read_bytes() == damage


def test_a_key_that_cannot_be_read_is_an_os_error_that_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "seal.key").mkdir()
    with pytest.raises(OSError, match="is a directory") as caught:
        seal_key(str(tmp_path))
    assert isinstance(caught.value, KeyUnusable)
    assert caught.value.hint


def test_containers_that_share_a_home_do_not_write_into_each_others_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each container numbers its processes from 1."""
    monkeypatch.setattr(os, "getpid", lambda: 7)
    key, path = seal_key(str(tmp_path)), str(tmp_path / "file")
    replace = os.replace

    def write_another_first(aside: str, target: str) -> None:
        monkeypatch.setattr(os, "replace", replace)
        write_sealed(path, key, "x", b"another")
        replace(aside, target)

    monkeypatch.setattr(os, "replace", write_another_first)
    write_sealed(path, key, "x", b"one")
    assert read_sealed(path, key, "x") == b"one"


def test_a_pipe_or_a_huge_file_in_place_of_the_file_is_refused_at_once(tmp_path: Path) -> None:
    key = seal_key(str(tmp_path))
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="not a regular file"):
        unseal(str(tmp_path / "pipe"), key, "x")
    with open(tmp_path / "endless", "wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(SealBroken):
        unseal(str(tmp_path / "endless"), key, "x")
