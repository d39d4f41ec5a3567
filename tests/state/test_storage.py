"""State files are private, cheap, and refused if they are damaged."""

import os
import stat
import struct

import pytest

from subluminal.errors import SubluminalError
from subluminal.state import layout, storage
from subluminal.state.errors import StateUnusable
from subluminal.state.run_state import RunState
from subluminal.state.storage import StateFile, open_or_create, state_path

SIZE = layout.FILE_WORDS * layout.WORD_BYTES


def header(*words):
    return struct.pack(f"={len(words)}q", *words).ljust(SIZE, b"\0")


@pytest.fixture
def path(state_dir):
    path = state_path(state_dir, "run")
    os.makedirs(os.path.dirname(path))
    return path


def test_files_and_directories_are_private_whatever_the_umask(state_dir):
    before = os.umask(0)
    try:
        open_or_create(state_dir, "run").close()
    finally:
        os.umask(before)
    path = state_path(state_dir, "run")
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    for directory in (os.path.dirname(path), state_dir):
        assert stat.S_IMODE(os.stat(directory).st_mode) == 0o700


def test_a_new_run_takes_little_disk(state):
    found = os.stat(state.path)
    assert found.st_size == SIZE
    assert found.st_blocks * 512 < 200_000


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "it has 0 bytes"),
        (header(layout.MAGIC, layout.VERSION)[:-1], "bytes instead of"),
        (header(layout.MAGIC, layout.VERSION) + b"\0", "bytes instead of"),
        (header(), "not a state file"),
        (header(1, layout.VERSION), "not a state file"),
        (header(layout.MAGIC, layout.VERSION + 1), "its version is 2"),
        (header(layout.MAGIC, layout.VERSION << 56), "its version is 72057594037927936"),
        (header(layout.MAGIC, layout.VERSION, *[-1] * 60), "contradicts itself"),
        (header(layout.MAGIC, layout.VERSION, *[10**6] * 60), "contradicts itself"),
    ],
    ids=["empty", "short", "long", "zeros", "foreign", "newer", "byte order", "negative", "huge"],
)
def test_a_file_that_is_not_sound_is_refused_and_left_alone(state_dir, path, content, reason):
    with open(path, "wb") as file:
        file.write(content)
    with pytest.raises(SubluminalError, match=reason) as refused:
        RunState.open(state_dir, "run")
    assert path in str(refused.value)
    assert refused.value.hint
    with open(path, "rb") as file:
        assert file.read() == content


def test_what_is_no_file_is_refused(state_dir, path):
    os.mkfifo(path)
    with pytest.raises(StateUnusable, match="not a regular file"):
        RunState.open(state_dir, "run")
    os.unlink(path)
    os.mkdir(path)
    with pytest.raises(StateUnusable, match="is a directory"):
        RunState.open(state_dir, "run")


def test_a_link_is_not_followed(state_dir, path, tmp_path):
    open_or_create(str(tmp_path / "elsewhere"), "run").close()
    os.symlink(state_path(str(tmp_path / "elsewhere"), "run"), path)
    with pytest.raises(StateUnusable, match="symbolic link"):
        RunState.open(state_dir, "run")


def test_a_directory_nobody_can_write_in_is_refused_with_a_hint():
    # Not even root makes files there.
    with pytest.raises(StateUnusable, match=r"no such file|read-only|permitted") as refused:
        RunState.open("/proc/self/fdinfo", "run")
    assert "SUB_HOME" in refused.value.hint


def test_a_file_in_place_of_a_directory_is_refused(tmp_path):
    (tmp_path / "state").write_text("")
    with pytest.raises(StateUnusable):
        RunState.open(str(tmp_path / "state"), "run")


def test_a_full_disk_is_an_error_and_leaves_nothing(state_dir, monkeypatch):
    monkeypatch.setattr("subluminal.state.storage.allocate", refuse)
    with pytest.raises(StateUnusable, match="no space left"):
        RunState.open(state_dir, "run")
    assert os.listdir(os.path.join(state_dir, "runs")) == []


def refuse(fd, offset, length):
    raise OSError(28, "No space left on device")


def test_a_file_system_that_cannot_promise_blocks_will_do(state_dir, monkeypatch):
    def unsupported(fd, offset, length):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(os, "posix_fallocate", unsupported)
    with RunState.open(state_dir, "run") as state, state.locked():
        assert state.take_seq() == 1


def test_an_address_space_without_room_is_an_error(state_dir, monkeypatch):
    open_or_create(state_dir, "run").close()

    def no_memory(*_):
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr("subluminal.state.storage.mmap.mmap", no_memory)
    with pytest.raises(StateUnusable, match="cannot allocate memory"):
        RunState.open(state_dir, "run")


def test_a_file_knows_when_its_path_leads_elsewhere(state_dir):
    file = open_or_create(state_dir, "run")
    assert file.is_current()
    os.unlink(file.path)
    assert not file.is_current()
    other = open_or_create(state_dir, "run")
    assert not file.is_current()
    assert other.is_current()
    file.close()
    other.close()


ODD = [
    "",
    ".",
    "..",
    "../../etc/passwd",
    "a/b",
    "a b",
    "ü",
    "💥" * 500,
    "x" * 10_000,
    "\0",
    "\ud800",
]


def test_odd_run_ids_stay_in_the_directory_and_apart(state_dir):
    ids = [*ODD, "x" * 9_999, "%2e.", "A", "a"]
    for number, run_id in enumerate(ids):
        with RunState.open(state_dir, run_id) as state, state.locked():
            state.counters.write([(0, b"k" * 16, (number,))])
    for number, run_id in enumerate(ids):
        with RunState.open(state_dir, run_id) as state:
            assert state.counters.read(0, b"k" * 16) == (number,)
            assert os.path.dirname(state.path) == os.path.join(state_dir, "runs")
    assert len(os.listdir(os.path.join(state_dir, "runs"))) == len(ids)


def test_who_loses_the_race_to_create_a_run_uses_the_winners(state_dir, state, monkeypatch):
    with state.locked():
        state.take_seq()
    real, missing = storage._open, [FileNotFoundError()]

    def not_yet_there(path):
        if missing:
            raise missing.pop()
        return real(path)

    monkeypatch.setattr(storage, "_open", not_yet_there)
    with RunState.open(state_dir, "run") as late, late.locked():
        assert late.take_seq() == 2
    assert len(os.listdir(os.path.dirname(state.path))) == 1


def test_there_is_no_file_before_there_is_a_run(state_dir):
    with pytest.raises(FileNotFoundError):
        StateFile(state_path(state_dir, "run"))


def test_no_descriptor_of_a_new_file_is_closed_after_others_can_find_it(state_dir, monkeypatch):
    """Closing it would free a lock that another thread of this process already holds on the file."""
    link = os.link

    def link_and_look(source, target):
        inode = os.stat(source).st_ino
        link(source, target)
        for fd in os.listdir("/proc/self/fd"):
            try:
                assert os.fstat(int(fd)).st_ino != inode
            except OSError:
                continue  # the listing's own descriptor

    monkeypatch.setattr(storage.os, "link", link_and_look)
    open_or_create(state_dir, "run").close()


def test_everybody_in_a_process_shares_one_descriptor_until_the_last_one_closes(state_dir):
    first, second = open_or_create(state_dir, "run"), open_or_create(state_dir, "run")
    assert first.fd == second.fd
    first.close()
    assert second.words[layout.W_MAGIC] == layout.MAGIC
    second.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(second.fd)
