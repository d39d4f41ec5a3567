"""Files for their owner alone."""

import os
import stat
from pathlib import Path

import pytest

from subluminal.errors import SecretUnavailable
from subluminal.secrets.private_files import locked, read_private, write_private


def test_a_file_is_written_0600_in_a_0700_directory(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        write_private(str(tmp_path / "a" / "file"), b"one")
        write_private(str(tmp_path / "a" / "file"), b"two")
    finally:
        os.umask(before)
    assert read_private(str(tmp_path / "a" / "file")) == b"two"
    assert stat.S_IMODE((tmp_path / "a" / "file").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o700
    assert os.listdir(tmp_path / "a") == ["file"]


@pytest.mark.parametrize("mode", [0o604, 0o640, 0o644, 0o660, 0o666])
def test_a_file_that_others_can_read_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"secret")
    path.chmod(mode)
    with pytest.raises(SecretUnavailable, match=f"can be read by others.*{mode:04o}") as caught:
        read_private(str(path))
    assert caught.value.hint is not None
    assert f"chmod 600 {path}" in caught.value.hint


def test_what_is_missing_is_none_and_what_is_no_file_is_refused(tmp_path: Path) -> None:
    assert read_private(str(tmp_path / "none")) is None
    (tmp_path / "dir").mkdir(mode=0o700)
    os.mkfifo(tmp_path / "fifo", 0o600)
    for name in ("dir", "fifo"):
        with pytest.raises(SecretUnavailable, match="is not a regular file"):
            read_private(str(tmp_path / name))


def test_a_file_that_cannot_be_written_is_one_failure(tmp_path: Path) -> None:
    (tmp_path / "file").mkdir()
    (tmp_path / "file" / "x").mkdir()
    with pytest.raises(SecretUnavailable, match="cannot write"):
        write_private(str(tmp_path / "file"), b"x")


def test_the_lock_is_let_go(tmp_path: Path) -> None:
    for _ in range(2):
        with locked(str(tmp_path / "file")):
            write_private(str(tmp_path / "file"), b"x")
