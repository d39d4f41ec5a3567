"""Files of the system, by Linux's own calls and without them."""

import errno
import fcntl
import os
import stat
import subprocess
import sys

import pytest

from subluminal.system import files

both_ways = pytest.mark.parametrize("linux", [True, False], ids=["linux", "plain"])


@pytest.fixture
def file(tmp_path):
    fd = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
    yield fd
    os.close(fd)


@both_ways
def test_a_range_gets_its_blocks_and_keeps_its_bytes(file, linux, monkeypatch):
    monkeypatch.setattr(files, "LINUX", linux)
    os.ftruncate(file, 1 << 20)
    os.pwrite(file, b"kept", 300_000)
    before = os.fstat(file).st_blocks * 512
    files.allocate(file, 4096, 600_000)
    os.fsync(file)
    assert os.fstat(file).st_blocks * 512 - before >= 500_000
    assert os.pread(file, 4, 300_000) == b"kept"
    assert os.fstat(file).st_size == 1 << 20


@both_ways
def test_a_file_grows_as_far_as_it_is_allocated(file, linux, monkeypatch):
    monkeypatch.setattr(files, "LINUX", linux)
    files.allocate(file, 0, 8)
    assert os.pread(file, 100, 0) == bytes(8)


def test_a_file_system_that_promises_no_blocks_gets_bytes(file, monkeypatch):
    def unsupported(*_):
        raise OSError(errno.EOPNOTSUPP, "not here")

    monkeypatch.setattr(os, "posix_fallocate", unsupported)
    files.allocate(file, 0, 100_000)
    assert os.fstat(file).st_size == 100_000


@both_ways
def test_an_unnamed_file_has_no_name(linux, monkeypatch):
    monkeypatch.setattr(files, "LINUX", linux)
    fd = files.unnamed_file()
    assert os.fstat(fd).st_nlink == 0
    assert stat.S_IMODE(os.fstat(fd).st_mode) & 0o077 == 0 or linux
    os.write(fd, b"bytes")
    assert os.pread(fd, 9, 0) == b"bytes"
    assert not os.get_inheritable(fd)
    os.close(fd)


@both_ways
def test_two_files_are_exchanged_or_left_alone(tmp_path, linux, monkeypatch):
    monkeypatch.setattr(files, "LINUX", linux)
    one, other = tmp_path / "one", tmp_path / "other"
    one.write_text("1")
    other.write_text("2")
    assert files.exchange(str(one), str(other)) is linux
    assert one.read_text() + other.read_text() == ("21" if linux else "12")


def test_the_holder_of_a_lock_is_known(file, tmp_path):
    assert files.lock_holder(file) is None
    code = "import fcntl,sys;f=open(sys.argv[1],'r+');fcntl.lockf(f,fcntl.LOCK_EX);print(1,flush=True);input()"
    words = [sys.executable, "-c", code, str(tmp_path / "file")]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        holder.stdout.readline()
        assert files.lock_holder(file) == holder.pid
        holder.stdin.close()
    fcntl.lockf(file, fcntl.LOCK_EX)
    assert files.lock_holder(file) is None, "our own lock is not in our way"
