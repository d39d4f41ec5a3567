"""One write, whole lines, one chain across files, processes and full disks (journal-first)."""

import contextlib
import errno
import itertools
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.journal.lines import Writer, verify_lines

from subluminal.journal import Journal, JournalUnavailable
from subluminal.journal.chain import preview_text_json, seed
from subluminal.journal.reading import journal_files


def lines_of(directory: str | Path) -> list[bytes]:
    data = b"".join(Path(file.path).read_bytes() for file in journal_files(str(directory)))
    assert data == b"" or data.endswith(b"\n")
    return data.split(b"\n")[:-1]


def test_events_are_numbered_chained_and_private(writer: Writer) -> None:
    assert (writer.journal.n, writer.journal.prev) == (1, seed("shim"))
    writer.begin()
    writer.finish()
    assert writer.journal.n == 4
    path = Path(writer.journal.path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.parent.parent.stat().st_mode) == 0o700
    assert verify_lines(lines_of(path.parent), "shim", head=writer.journal.prev) is None


def test_nothing_is_written_before_flush_and_then_in_one_write(
    writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    writes: list[bytes] = []
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: (writes.append(data), real(fd, data))[1])
    writer.begin()
    writer.journal.flush()
    assert len(writes) == 1
    assert writes[0].count(b"\n") == 2


def test_rotation_continues_the_chain(tmp_path: Path) -> None:
    writer = Writer(str(tmp_path), max_bytes=2_000)
    for _ in range(10):
        writer.begin()
    files = journal_files(str(tmp_path))
    assert [file.part for file in files] == list(range(len(files)))
    assert len(files) > 5
    assert all(os.path.getsize(file.path) < 4_000 for file in files)
    assert verify_lines(lines_of(tmp_path), "shim", head=writer.journal.prev) is None
    writer.close()


def test_rotation_that_cannot_happen_waits(tmp_path: Path) -> None:
    writer = Writer(str(tmp_path), max_bytes=100)
    (tmp_path / "shim.1.jsonl").mkdir()
    writer.begin()
    writer.begin()
    assert writer.journal.path.endswith("shim.jsonl")
    (tmp_path / "shim.1.jsonl").rmdir()
    writer.begin()
    assert writer.journal.path.endswith("shim.1.jsonl")
    writer.close()


@pytest.mark.parametrize("max_bytes", [1 << 30, 700], ids=["one file", "rotated"])
def test_a_successor_continues_the_chain(tmp_path: Path, max_bytes: int) -> None:
    first = Writer(str(tmp_path), max_bytes=max_bytes)
    first.begin()
    head = (first.journal.n, first.journal.prev)
    path = first.journal.path
    first.close()
    with open(path, "ab") as file:
        file.write(b'{"type":"torn')
    second = Writer(str(tmp_path), max_bytes=max_bytes)
    assert (second.journal.n, second.journal.prev) == head
    second.finish(text="y" * 200_000)
    second.close()
    third = Writer(str(tmp_path), max_bytes=max_bytes)
    third.finish()
    assert verify_lines(lines_of(tmp_path), "shim", head=third.journal.prev) is None
    third.close()


def test_a_successor_refuses_what_it_cannot_continue(tmp_path: Path) -> None:
    (tmp_path / "shim.jsonl").write_bytes(b"not an event\n")
    with pytest.raises(JournalUnavailable, match="last line is not an event"):
        Journal(str(tmp_path), "shim", max_bytes=1000)


def test_an_empty_file_is_continued_from_the_start(tmp_path: Path) -> None:
    (tmp_path / "shim.jsonl").write_bytes(b'{"torn')
    journal = Journal(str(tmp_path), "shim", max_bytes=1000)
    assert journal.n == 1
    journal.close()


def test_two_writers_of_one_shim_are_refused(writer: Writer) -> None:
    with pytest.raises(JournalUnavailable, match="another process is writing it"):
        Writer(os.path.dirname(writer.journal.path))


@pytest.mark.parametrize("shim_id", ["", "../x", ".x"])
def test_a_shim_id_cannot_leave_its_directory(tmp_path: Path, shim_id: str) -> None:
    with pytest.raises(JournalUnavailable, match="cannot be part of a file name"):
        Journal(str(tmp_path), shim_id, max_bytes=1000)


def test_a_directory_that_cannot_be_written_is_reported_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(JournalUnavailable, match=r"journal `.*file/run`: not a directory") as told:
        Journal(str(tmp_path / "file" / "run"), "shim", max_bytes=1000)
    assert "writable" in str(told.value.hint)


def test_a_read_only_file_system_is_reported_at_once(small_disk: Callable[[int], str]) -> None:
    directory = small_disk(1 << 20)
    disk = os.path.dirname(directory)
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
    with pytest.raises(JournalUnavailable, match="read-only file system"):
        Journal(directory, "shim", max_bytes=1000)


def test_events_that_were_not_flushed_count_as_lost(tmp_path: Path) -> None:
    journal = Journal(str(tmp_path), "shim", max_bytes=1000)
    journal.add(b"{}")
    journal.close()
    assert journal.lost == 1


def fill(directory: str, leave_bytes: int = 0) -> str:
    """Fills a disk, except for `leave_bytes`."""
    path = os.path.join(os.path.dirname(directory), "filler")
    with open(path, "ab", buffering=0) as file:
        with contextlib.suppress(OSError):
            while True:
                file.write(b"\0" * 4096)
        file.truncate(file.seek(0, os.SEEK_END) - leave_bytes)
    return path


def begin_until_refused(writer: Writer, text: str) -> tuple[int, str]:
    """Returns how many calls were begun, and the journal's error message."""
    for begun in itertools.count():
        try:
            writer.begin(text=text)
        except JournalUnavailable as error:
            return begun, str(error)
    raise AssertionError


def test_on_a_full_disk_previews_go_first_then_the_reserve_then_it_raises(
    small_disk: Callable[[int], str],
) -> None:
    directory = small_disk(1 << 20)
    writer = Writer(directory, reserve_bytes=65_536)
    writer.begin(text="x" * 9_000)
    filler = fill(directory, leave_bytes=4_096)

    writer.begin(text="y" * 9_000)
    kept = [preview_text_json(line) for line in lines_of(directory)]
    assert kept[0] is not None
    assert kept[2] is None

    begun, told = begin_until_refused(writer, "z" * 9_000)
    assert told.endswith("no space left on device")
    # A call has two events of about 700 bytes in all, so the reserve alone holds about 60 calls.
    assert begun > 50
    lost = writer.journal.lost
    assert lost in (1, 2)
    assert verify_lines(lines_of(directory), "shim", head=writer.journal.prev) is None

    os.unlink(filler)
    writer.begin(text="back")
    assert verify_lines(lines_of(directory), "shim", head=writer.journal.prev) is None
    assert writer.journal.lost == lost
    writer.close()


def test_previews_come_back_when_there_is_room_again(small_disk: Callable[[int], str]) -> None:
    directory = small_disk(4 << 20)
    writer = Writer(directory, reserve_bytes=4_096)
    filler = fill(directory)
    begin_until_refused(writer, "z")
    os.unlink(filler)
    for _ in range(260):
        writer.finish(text="seen")
    texts = [preview_text_json(line) for line in lines_of(directory)]
    assert texts[-1] == b'"seen"'
    assert verify_lines(lines_of(directory), "shim", head=writer.journal.prev) is None
    writer.close()


def test_a_disk_without_room_for_the_reserve_still_records_decisions(
    small_disk: Callable[[int], str],
) -> None:
    directory = small_disk(262_144)
    writer = Writer(directory, reserve_bytes=1 << 20)
    writer.begin(text="dropped")
    assert [preview_text_json(line) for line in lines_of(directory)] == [None, None]
    writer.close()


def test_a_file_size_limit_is_a_full_disk(tmp_path: Path) -> None:
    """RLIMIT_FSIZE, as CI systems set it: EFBIG, after a short write."""
    script = (
        "import resource, sys\n"
        "from subluminal.journal import JournalUnavailable\n"
        "from tests.journal.lines import Writer\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))\n"
        "writer = Writer(sys.argv[1], reserve_bytes=4096)\n"
        "try:\n"
        "    while True: writer.begin(text='x' * 300)\n"
        "except JournalUnavailable as error: print(error, writer.journal.prev.decode())\n"
    )
    told = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], check=True, capture_output=True, text=True
    ).stdout
    assert "file too large" in told
    assert verify_lines(lines_of(tmp_path), "shim", head=told.split()[-1].encode()) is None


def test_a_torn_line_that_cannot_be_cut_off_is_ended(
    writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On an append-only file ftruncate fails; readers then meet one line that is not an event."""
    writer.begin()

    def refuse(fd: int, size: int) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    real = os.write
    room = [150]

    def short(fd: int, data: bytes) -> int:
        if not room[0]:
            raise OSError(errno.ENOSPC, "No space left on device")
        count = real(fd, data[: room[0]])
        room[0] -= count
        return count

    monkeypatch.setattr(os, "ftruncate", refuse)
    monkeypatch.setattr(os, "write", short)
    with pytest.raises(JournalUnavailable):
        writer.begin()
    assert writer.journal.lost == 2
    room[0] = 1 << 30
    writer.begin()
    lines = lines_of(os.path.dirname(writer.journal.path))
    assert len(lines) == 5
    assert len(lines.pop(2)) == 150
    assert verify_lines(lines, "shim", head=writer.journal.prev) is None


def test_another_error_is_not_taken_for_a_full_disk(
    writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(fd: int, data: bytes) -> int:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", broken)
        with pytest.raises(JournalUnavailable, match="input/output"):
            writer.begin()
    writer.begin()
    assert len(lines_of(os.path.dirname(writer.journal.path))) == 2
