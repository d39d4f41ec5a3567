"""Damaged journals: read in linear time and bounded memory, and every damaged byte accounted for."""

import os
import time
import tracemalloc
from hashlib import sha256
from pathlib import Path

import pytest
from tests.ledger.events import Producer
from tests.ledger.home import Home

from subluminal.ledger.ingest import intake
from subluminal.ledger.ingest.following import Following
from subluminal.ledger.store import committing

GOOD = 4
"""events at the beginning of each journal: a run_start and a call"""


def write(home: Home, data: bytes, run: str = "bad") -> Path:
    """A journal that holds these bytes and nothing else."""
    directory = Path(home.places.journal, run)
    directory.mkdir(parents=True)
    path = directory / "shim.jsonl"
    path.write_bytes(data)
    return path


def event(home: Home) -> bytes:
    """The line of one sound event."""
    producer = Producer(home.places.journal + "-elsewhere", "run", "other")
    producer.call()
    producer.close()
    return Path(producer.journal.path).read_bytes().split(b"\n")[0]


def numbered(line: bytes, n: int) -> bytes:
    return line.replace(b'"n":1,', b'"n":%d,' % n)


DAMAGE = {
    "short lines": lambda line, n: b"x",
    "empty lines": lambda line, n: b"x\n\n\n",
    "cut events": lambda line, n: line[: n % len(line)],
    "nul bytes": lambda line, n: b"\0" * 40,
    "binary": lambda line, n: bytes([128 + n % 100, 255, 200]) * 13,
    "deep nesting": lambda line, n: b"[" * 60,
    "huge numbers": lambda line, n: line.replace(b'"bytes_in":', b'"bytes_in":9' + b"9" * 40),
    "another type": lambda line, n: line.replace(b'"call":{', b'"call":[{'),
    "not text": lambda line, n: line[:-1] + b',"u":"\xff"}',
    "every other event": lambda line, n: numbered(line, 2 * n + 1) + b"\nx",
    "backwards": lambda line, n: numbered(line, 10_000_000 - 2 * n),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_the_time_grows_with_the_bytes(tmp_path: Path, kind: str) -> None:
    """Four times the damage takes about four times as long. It used to take sixteen times."""

    def seconds(lines: int, turn: int) -> float:
        home = Home(str(tmp_path / f"{lines}-{turn}"))
        line = event(home)
        write(home, b"".join(DAMAGE[kind](line, n) + b"\n" for n in range(lines)))
        assert home.store.events_total == 0
        begun = time.thread_time()
        home.ingest()
        spent = time.thread_time() - begun
        home.close()
        return spent

    few, many = (min(seconds(lines, turn) for turn in range(2)) for lines in (3_000, 12_000))
    assert many / few < 9


def test_a_line_that_grows_slowly_is_not_read_again_and_again(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(home, b"{")
    read = 0
    pread = os.pread

    def counted(fd: int, size: int, offset: int) -> bytes:
        nonlocal read
        data = pread(fd, size, offset)
        read += len(data)
        return data

    home.ingest()
    monkeypatch.setattr(os, "pread", counted)
    for _ in range(500):
        with path.open("ab") as file:
            file.write(b"x" * 997)
        home.ingest()
    size = path.stat().st_size
    assert read < 2 * size
    with path.open("ab") as file:
        file.write(b"\n")
    home.ingest()
    assert read < 4 * size
    assert home.rows("SELECT length, lines FROM quarantine") == [(size + 1, 1)]


@pytest.mark.parametrize(
    ("piece", "size"),
    [(b"x", 100 << 20), (b"\0", 100 << 20), (b"x\n", 1 << 19), (b"\n", 1 << 19)],
    ids=repr,
)
def test_the_memory_is_bounded(home: Home, piece: bytes, size: int) -> None:
    write(home, piece * (size // len(piece)))
    home.store.commit()
    tracemalloc.start()
    home.ingest()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # The longest line that may be an event is 8 MiB, and it is read in pieces of 1 MiB.
    assert peak < 24 << 20


def test_every_damaged_byte_is_accounted_for(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """By offset, length and hash: few lines one by one, many as stretches."""
    monkeypatch.setattr(intake, "MAX_SINGLE", 5)
    line = event(home)
    lines = [
        *(b"bad %d" % n for n in range(4)),
        numbered(line, 1),
        *(b"worse %d" % n for n in range(300)),
        b"",
        b"after an empty line",
        numbered(line, 3),
        b"\xff" * (9 << 20),
        b"last",
    ]
    path = write(home, b"\n".join(lines) + b"\n")
    assert home.ingest() == 2
    data = path.read_bytes()
    rows = home.rows("SELECT offset, length, digest, lines, head FROM quarantine ORDER BY offset")
    assert 6 <= len(rows) < 20
    for offset, length, digest, _, head in rows:
        assert isinstance(offset, int)
        assert isinstance(length, int)
        assert isinstance(head, bytes)
        stretch = data[offset : offset + length]
        assert sha256(stretch).digest() == digest
        assert stretch.startswith(head)
        assert stretch.endswith(b"\n")
    assert sum(int(str(row[3])) for row in rows) == 4 + 300 + 1 + 2
    damaged = sum(int(str(row[1])) for row in rows)
    assert damaged == len(data) - 2 * (len(line) + 1)
    counters = dict(home.rows("SELECT name, value FROM counters WHERE name LIKE 'quarantined%'"))
    assert counters == {"quarantined": 307, "quarantined_bytes": damaged}
    assert home.verify().quarantined == 307


def test_the_quarantine_is_bounded_and_its_counts_are_not(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(committing, "MAX_QUARANTINE", 20)
    line = event(home)
    write(home, b"".join(numbered(line, n) + b"\nbad\n" for n in range(1, 101)))
    assert home.ingest() == 100
    rows = home.rows("SELECT offset FROM quarantine ORDER BY id")
    assert len(rows) == 20
    assert rows[-1][0] == Path(home.places.journal, "bad/shim.jsonl").stat().st_size - 4
    assert home.verify().quarantined == 100


def test_damage_between_events_leaves_the_events(home: Home) -> None:
    producer = home.producer()
    producer.run_start()
    producer.call()
    lines = home.lines()
    mixed = [part for line in lines for part in (b"\0garbage", line, b"[" * 5_000, line[:-5])]
    write(home, b"\n".join(mixed) + b"\n", "mixed")
    assert home.ingest() == GOOD
    assert home.rows("SELECT sum(lines) FROM quarantine") == [(3 * GOOD,)]
    assert home.verify().findings == []


def test_a_file_that_was_cut_is_read_again(home: Home) -> None:
    """What is stored already is known by its number; what comes after the cut is not lost."""
    producer = home.producer()
    for _ in range(3):
        producer.call()
    assert home.ingest() == 9
    path = Path(producer.journal.path)
    kept = path.read_bytes().split(b"\n")[0] + b"\n"
    os.truncate(path, len(kept))
    assert home.ingest() == 0
    producer.call()
    assert home.ingest() == 3
    assert home.verify().findings == []


def test_unfinished_lines_are_not_a_backlog(home: Home) -> None:
    from subluminal.ledger.ingest.following import Following

    producer = home.producer()
    producer.call()
    with open(producer.journal.path, "ab") as file:
        file.write(b'{"type":')
    following = Following(home.places.journal, home.store.lookups)
    assert following.backlog_bytes() > 8
    following.pump(home.store.intake)
    assert (following.backlog_bytes(), following.unfinished_bytes()) == (0, 8)
    following.close()


@pytest.mark.parametrize(
    ("text", "rounds"),
    [(b"\n" * 1_000_000, 4), (b"x\n" * 200_000, 3), ((b"x" * 3_000_000 + b"\n") * 12, 3)],
    ids=["empty lines", "damaged lines", "overlong lines"],
)
def test_a_round_ends_soon_whatever_its_lines_are(home: Home, text: bytes, rounds: int) -> None:
    """ledgerd stops, answers and reads other journals between two rounds."""
    path = Path(home.places.journal) / "run" / "shim.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(text)
    following = Following(home.places.journal, home.store.lookups)
    done = 1
    while following.pump(home.store.intake):
        home.store.commit()
        done += 1
    following.close()
    assert done >= rounds
