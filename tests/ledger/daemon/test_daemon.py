"""One ledgerd per home. It may die at any moment, and its errors are clear."""

import contextlib
import os
import socket
import stat
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.ledger.home import Home
from tests.ledger.process import Ledgerd, wait_until
from tests.requirements import requirement

from subluminal.config.places import Places
from subluminal.ledger.client import ledgerd as client
from subluminal.ledger.daemon.instance import (
    Lock,
    ingest_path,
    is_running,
    lock_path,
    log_path,
    read_note,
    token_path,
)
from subluminal.system.sockets import ShortAddress

Start = Callable[..., Ledgerd]


def test_it_stores_what_is_journalled_and_stops_cleanly(home: Home, ledgerd: Start) -> None:
    producer = home.producer()
    producer.run_start()
    daemon = ledgerd().ready()
    for _ in range(50):
        producer.call()
    daemon.has_stored(151)
    status = daemon.client.get("/v1/status")
    assert status["pid"] == daemon.process.pid
    assert (status["calls_total"], status["runs_total"], status["problem"]) == (50, 1, None)
    assert daemon.client.get("/v1/calls", {"run": "run", "limit": 7})["calls"][0]["seq"] == 50
    assert daemon.stop() == 0
    assert not is_running(home.places)
    for path in (home.places.ledgerd_socket, ingest_path(home.places)):
        assert not os.path.exists(path)
    assert not os.path.exists(home.places.ledger + "-wal"), "folded into the ledger"
    report = home.verify()
    assert (report.findings, report.checkpoints, report.unanchored_events) == ([], 1, 0)


def test_everything_it_makes_is_private(home: Home, ledgerd: Start) -> None:
    """local-is-not-trusted"""
    ledgerd().ready()
    places = home.places
    for path in (places.ledgerd_socket, ingest_path(places), token_path(places), places.ledger):
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600, path
    for path in (places.home, places.state, places.runtime_dir):
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o700, path


def test_a_second_one_is_refused(home: Home, ledgerd: Start) -> None:
    first = ledgerd().ready()
    second = ledgerd()
    assert second.process.wait(20) == 2
    assert f"ledgerd is already running with pid {first.process.pid}" in second.output()
    assert first.client.get("/v1/status")["running"]


def test_looking_for_it_does_not_keep_it_from_starting(home: Home, ledgerd: Start) -> None:
    """A look takes the lock for a moment."""
    os.makedirs(home.places.state)
    stopping = threading.Event()

    def look() -> None:
        while not stopping.is_set():
            is_running(home.places)

    looking = [threading.Thread(target=look) for _ in range(2)]
    Path(lock_path(home.places)).touch()
    for thread in looking:
        thread.start()
    try:
        for _ in range(20):
            Lock(home.places).release()
    finally:
        stopping.set()
        for thread in looking:
            thread.join()


@requirement("001-11.1:append-only")
def test_kill_9_loses_and_doubles_nothing(home: Home, ledgerd: Start) -> None:
    producer = home.producer()
    for round_ in range(3):
        daemon = ledgerd().ready()
        for _ in range(40):
            producer.call()
        daemon.has_stored(120 * round_ + 1)
        daemon.kill()
    ledgerd().ready().has_stored(360)
    assert home.verify().findings == []
    assert home.rows("SELECT count(*) FROM tool_calls") == [(120,)]
    assert home.rows("PRAGMA integrity_check") == [("ok",)]


def test_commands_start_it_on_demand_and_stop_it(home: Home) -> None:
    places = home.places
    assert not client.stop(places)
    asking = client.ensure_running(places)
    try:
        note = read_note(places)
        assert note is not None
        assert asking.get("/v1/status")["pid"] == note.pid
        assert client.ensure_running(places).get("/v1/tools") == []
        assert not client.start(places), "it runs already"
    finally:
        assert client.stop(places)
    assert not is_running(places)
    wait_until(lambda: not os.path.exists(f"/proc/{note.pid}") or _is_zombie(note.pid))


def _is_zombie(pid: int) -> bool:
    """It was our grandchild: where nobody reaps orphans, it stays as an entry."""
    try:
        return ") Z " in Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return True


def test_a_failed_start_says_why(home: Home) -> None:
    os.makedirs(home.places.ledger)
    with pytest.raises(
        client.DaemonUnavailable, match=r"did not start: .*ledger.db` is not a regular file"
    ):
        client.start(home.places)
    with pytest.raises(client.DaemonUnavailable, match="does not answer"):
        client.Client(home.places).get("/v1/status")


def test_a_long_path_works(tmp_path: Path, ledgerd: Start) -> None:
    """A unix socket's address holds 107 bytes."""
    deep = tmp_path / ("d" * 60) / ("e" * 60)
    places = Places(str(deep), str(deep / "run"))
    daemon = ledgerd(places=places).ready()
    assert daemon.client.get("/v1/runs") == {"runs": [], "next": None}


def test_a_full_disk_is_reported_and_survived(tmp_path: Path, ledgerd: Start) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", str(disk)], check=True)
    home = Home(str(tmp_path / "home"))
    os.makedirs(home.places.home, mode=0o700)
    # The ledger is on the small disk, the journals are not.
    home.places.ledger = str(disk / "ledger.db")
    os.symlink(disk / "ledger.db", os.path.join(home.places.home, "ledger.db"))
    try:
        daemon = ledgerd(places=home.places).ready()
        producer = home.producer()
        producer.padding = "x" * 4_000
        for _ in range(2_000):
            producer.call()
        problem = wait_until(lambda: daemon.client.get("/v1/status")["problem"], "a problem")
        assert "database or disk is full" in problem
        subprocess.run(["mount", "-o", "remount,size=200m", str(disk)], check=True)
        daemon.has_stored(6_000)
        wait_until(lambda: daemon.client.get("/v1/status")["problem"] is None, "its end")
        assert daemon.stop() == 0
        assert home.verify().findings == []
        home.close()
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)


@requirement("001-11.4:roads")
def test_jsonl_over_the_socket_is_acknowledged_once_stored(home: Home, ledgerd: Start) -> None:
    elsewhere = Home(home.places.home + "-elsewhere")
    producer = elsewhere.producer()
    for _ in range(20):
        producer.call()
    daemon = ledgerd().ready()
    with (
        socket.socket(socket.AF_UNIX) as sending,
        ShortAddress(ingest_path(home.places)) as address,
    ):
        sending.settimeout(20)
        sending.connect(address)
        data = b"".join(line + b"\n" for line in elsewhere.lines())
        sending.sendall(data[:1_000])
        sending.sendall(data[1_000:] + b"no event\n")
        sending.shutdown(socket.SHUT_WR)
        answers = sending.makefile("rb").read().splitlines()
    assert answers[-1] == b'{"taken":61}'
    status = daemon.client.get("/v1/status")
    assert (status["events_total"], status["quarantined"]) == (60, 1)
    again = daemon.client.post("/v1/events", data)
    assert again == {"stored": 0, "known": 60, "quarantined": 0}
    elsewhere.close()


def test_a_line_without_end_over_the_socket_is_refused(home: Home, ledgerd: Start) -> None:
    ledgerd().ready()
    with (
        socket.socket(socket.AF_UNIX) as sending,
        ShortAddress(ingest_path(home.places)) as address,
    ):
        sending.settimeout(20)
        sending.connect(address)
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            for _ in range(12):
                sending.sendall(b"x" * (1 << 20))
        answer = sending.makefile("rb").readline()
    assert answer == b'{"error":"the line at 0 is longer than any event"}\n'


def test_a_broken_note_is_ignored(home: Home) -> None:
    assert read_note(home.places) is None
    os.makedirs(home.places.state)
    Path(lock_path(home.places)).write_text("{")
    assert read_note(home.places) is None
    assert log_path(home.places).startswith(home.places.state)
