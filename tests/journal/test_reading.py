"""Followers see whole lines only, in order, in bounded memory; ingested journals stay 24 h."""

import os
import signal
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from tests.journal.lines import Writer, verify_lines

from subluminal.journal.reading import (
    KEEP_MS,
    READ_BYTES,
    Follower,
    Lines,
    Overlong,
    journal_files,
    remove_ingested,
)
from subluminal.journal.resuming import last_number


def read_all(follower: Follower, max_bytes: int = READ_BYTES) -> list[bytes]:
    lines: list[bytes] = []
    while isinstance(piece := follower.read(max_bytes), Lines):
        lines += piece.lines
    return lines


def test_files_come_in_the_order_they_were_written(tmp_path: Path) -> None:
    for name in (
        "run-b/s.jsonl",
        "run-a/s.10.jsonl",
        "run-a/s.2.jsonl",
        "run-a/s.jsonl",
        "x.jsonl",
    ):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("")
    (tmp_path / "run-a" / "notes.txt").write_text("")
    (tmp_path / "run-a" / "link.jsonl").symlink_to("/etc/passwd")
    found = [(file.run, file.shim, file.part) for file in journal_files(str(tmp_path))]
    assert found == [
        ("", "x", 0),
        ("run-a", "s", 0),
        ("run-a", "s", 2),
        ("run-a", "s", 10),
        ("run-b", "s", 0),
    ]
    assert journal_files(str(tmp_path / "absent")) == []


def test_a_torn_last_line_waits(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(b"one\ntwo\nthr")
    follower = Follower(str(path))
    assert follower.read() == Lines(0, [b"one", b"two"], 8)
    assert follower.read() is None
    assert follower.size() == 11
    with path.open("ab") as file:
        file.write(b"ee\n")
    assert follower.read() == Lines(8, [b"three"], 14)
    follower.close()


def test_a_torn_line_that_is_cut_off_and_written_anew_is_seen(tmp_path: Path) -> None:
    """The writer does this on a full disk; the follower must not remember the old bytes."""
    path = tmp_path / "s.jsonl"
    path.write_bytes(b"one\n" + b"x" * 500)
    follower = Follower(str(path), offset=4)
    assert follower.read() is None
    os.truncate(path, 4)
    with path.open("ab") as file:
        file.write(b"two\n")
    assert follower.read() == Lines(4, [b"two"], 8)
    follower.close()


@given(
    lines=st.lists(st.binary(max_size=50).map(lambda raw: raw.replace(b"\n", b"")), max_size=30),
    max_bytes=st.integers(1, 80),
)
def test_any_cutting_gives_the_same_lines(
    tmp_path_factory: object, lines: list[bytes], max_bytes: int
) -> None:
    path = Path(tmp_path_factory.mktemp("cut")) / "s.jsonl"  # type: ignore[attr-defined]
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    follower = Follower(str(path))
    assert read_all(follower, max_bytes) == lines
    assert follower.offset == path.stat().st_size
    follower.close()


def test_a_line_longer_than_one_read_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(b"x" * (3 * READ_BYTES) + b"\nend\n")
    follower = Follower(str(path))
    assert [len(line) for line in read_all(follower)] == [3 * READ_BYTES, 3]
    follower.close()


def test_an_overlong_line_is_skipped_and_reported_once_it_ends(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(b"a\n" + b"x" * (3 * READ_BYTES))
    follower = Follower(str(path), max_line_bytes=READ_BYTES)
    assert follower.read(64) == Lines(0, [b"a"], 2)
    assert follower.read() is None
    with path.open("ab") as file:
        file.write(b"x" * READ_BYTES + b"\nnext\n")
    told = follower.read()
    digest = sha256(b"x" * (4 * READ_BYTES) + b"\n").digest()
    assert told == Overlong(2, b"x" * 256, 2 + 4 * READ_BYTES + 1, digest)
    assert follower.read() == Lines(follower.offset - 5, [b"next"], path.stat().st_size)
    follower.close()


WRITE_FOR_EVER = """
import sys
from tests.journal.lines import Writer
writer = Writer(sys.argv[1], max_bytes=50_000)
print("ready", flush=True)
while True:
    writer.begin(text="x" * 2000)
"""


def test_kill_9_in_the_middle_of_writing_leaves_a_chain_that_holds(tmp_path: Path) -> None:
    for number in range(5):
        directory = tmp_path / str(number)
        process = subprocess.Popen(
            [sys.executable, "-c", WRITE_FOR_EVER, str(directory)], stdout=subprocess.PIPE
        )
        assert process.stdout is not None
        process.stdout.readline()
        while len(journal_files(str(directory))) < 2 + number:
            assert process.poll() is None
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        lines: list[bytes] = []
        for file in journal_files(str(directory)):
            follower = Follower(file.path)
            lines += read_all(follower)
            follower.close()
        assert len(lines) > 20
        assert verify_lines(lines, "shim") is None


def test_only_an_old_ingested_unused_journal_goes(tmp_path: Path) -> None:
    writer = Writer(str(tmp_path / "run"))
    writer.begin()
    path = Path(writer.journal.path)
    size = path.stat().st_size

    def remove(offset: int, age_ms: int) -> bool:
        return remove_ingested(str(path), offset=offset, ingested_ms=0, now_ms=age_ms)

    assert not remove(size, KEEP_MS), "its writer lives"
    writer.close()
    assert not remove(size, KEEP_MS - 1), "too young"
    assert not remove(size - 100, KEEP_MS), "not all of it was read"
    assert path.exists()
    with path.open("ab") as file:
        file.write(b'{"torn by a shim that is dead')
    assert remove(size, KEEP_MS)
    assert not path.parent.exists()
    assert remove(size, KEEP_MS), "gone already"


def test_a_directory_with_other_journals_stays(tmp_path: Path) -> None:
    first, second = Writer(str(tmp_path), "a"), Writer(str(tmp_path), "b")
    first.begin()
    first.close()
    size = Path(first.journal.path).stat().st_size
    assert remove_ingested(first.journal.path, offset=size, ingested_ms=0, now_ms=KEEP_MS)
    assert tmp_path.exists()
    second.close()


def test_a_pipe_in_place_of_a_journal_makes_nobody_wait(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "shim.jsonl")
    assert last_number(str(tmp_path), "shim") == 0
    assert last_number(str(tmp_path), "no\0name") == 0
    follower = Follower(str(tmp_path / "shim.jsonl"))
    follower.close()
