"""ledgerd stops at once, rests while there is nothing to do, and leaves when nobody needs it."""

import os
import shutil
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest
from tests.ledger.home import Home
from tests.ledger.process import Ledgerd, wait_until
from tests.shim.household import Household
from websockets.sync.client import unix_connect

from subluminal.config.settings import LedgerSettings
from subluminal.errors import SubluminalError
from subluminal.ledger.client.http import Client
from subluminal.ledger.client.ledgerd import start, stop
from subluminal.ledger.daemon import writer as writing
from subluminal.ledger.daemon.instance import Lock, is_running
from subluminal.ledger.daemon.writer import Writer
from subluminal.ledger.ingest.ring import Ring

Start = Callable[..., Ledgerd]


def journal(home: Home, name: str = "bad") -> Path:
    directory = Path(home.places.journal, name)
    directory.mkdir(parents=True)
    return directory / "shim.jsonl"


def offset(home: Home) -> int:
    """How far the journals were read, as the ledger says."""
    found = home.reader().execute("SELECT ifnull(sum(offset), 0) FROM journal_offsets").fetchone()
    assert found is not None
    return int(str(found[0]))


# SIGTERM, at any moment


def test_a_signal_is_heeded_among_damaged_lines(home: Home, ledgerd: Start) -> None:
    size = 64 << 20
    journal(home).write_bytes(b"x\n" * (size // 2))
    daemon = ledgerd().ready()
    wait_until(lambda: offset(home) > 0, "the first batch")
    assert daemon.stop() == 0
    assert 0 < offset(home) < size, "it stopped in the middle"


def test_a_signal_is_heeded_within_a_line_of_a_terabyte(home: Home, ledgerd: Start) -> None:
    """The file has holes instead of bytes, so it takes no space; reading it takes minutes."""
    with journal(home).open("wb") as file:
        file.truncate(1 << 40)
    daemon = ledgerd().ready()
    wait_until(lambda: daemon.client.get("/v1/status")["unfinished_bytes"] > 16 << 20, "a search")
    assert daemon.stop() == 0


def test_a_signal_is_heeded_while_a_producer_sends_damage(home: Home, ledgerd: Start) -> None:
    daemon = ledgerd().ready()
    answers: list[object] = []

    def send() -> None:
        try:
            answers.append(Client(home.places).post("/v1/events", b"x\n" * (8 << 20)))
        except SubluminalError as error:
            answers.append(error)

    sending = threading.Thread(target=send)
    sending.start()
    wait_until(lambda: daemon.client.get("/v1/status")["quarantined"] > 0, "the first lines")
    assert daemon.stop() == 0
    sending.join(20)
    assert isinstance(answers[0], SubluminalError), "it was told that not all is stored"


# Nothing to do


class Clockwork:
    """Stands in for the writer's alarm clock: remembers every pause, and ends after some."""

    def __init__(self, writer: Writer, rounds: int) -> None:
        self.pauses: list[float] = []
        self._writer = writer
        self._rounds = rounds

    def wait(self, seconds: float) -> bool:
        self.pauses.append(seconds)
        if len(self.pauses) == self._rounds:
            self._writer.stop()
        return False

    def set(self) -> None:
        pass

    clear = set


@pytest.mark.parametrize(
    ("watched", "longest"), [(False, writing.IDLE_S), (True, writing.WATCHED_S)]
)
def test_the_pauses_grow_while_nothing_comes(home: Home, watched: bool, longest: float) -> None:
    home.producer().call()
    writer = Writer(home.places, LedgerSettings(), Ring(), is_watched=lambda: watched)
    clockwork: Any = Clockwork(writer, 30)
    writer._wake = clockwork
    writer.run()
    assert writer.failure is None
    assert clockwork.pauses == sorted(clockwork.pauses)
    assert clockwork.pauses[0] == writing.POLL_S
    assert clockwork.pauses[-1] == longest


def switches(pid: int) -> int:
    """How often the threads of a process went to sleep so far."""
    total = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        text = Path(f"/proc/{pid}/task/{task}/status").read_text()
        total += int(text.partition("voluntary_ctxt_switches:")[2].split()[0])
    return total


def test_an_idle_ledgerd_hardly_ever_wakes(home: Home, ledgerd: Start) -> None:
    home.producer().call()
    daemon = ledgerd().ready()
    daemon.has_stored(3)
    pid = daemon.process.pid

    def is_calm() -> bool:
        before, begun = switches(pid), time.monotonic()
        wait_until(lambda: time.monotonic() > begun + 2, "two seconds")
        # It used to wake thirty-four times a second.
        return switches(pid) - before <= 4 * (time.monotonic() - begun)

    wait_until(is_calm, "a calm moment")


def test_a_question_is_answered_with_the_newest_events(home: Home, ledgerd: Start) -> None:
    """However long the writer's pause is at that moment."""
    producer = home.producer()
    producer.call()
    daemon = ledgerd().ready()
    daemon.has_stored(3)
    for calls in range(2, 12):
        producer.call()
        assert len(daemon.client.get("/v1/calls", {})["calls"]) == calls


# Nobody needs it


def settings(home: Home, text: str) -> None:
    Path(home.places.home).mkdir(parents=True, exist_ok=True)
    Path(home.places.settings).write_text(text)


def has_left(daemon: Ledgerd) -> bool:
    return daemon.process.poll() is not None


def test_it_exits_when_there_is_nothing_to_follow(home: Home, ledgerd: Start) -> None:
    settings(home, "[ledger]\nidle_exit_s = 1\n")
    home.producer().call()
    daemon = ledgerd()
    wait_until(lambda: has_left(daemon), "its exit")
    assert daemon.process.returncode == 0
    assert daemon.output() == "ledgerd exits: nothing to follow for 1 s\n"
    assert home.rows("SELECT count(*) FROM checkpoints") == [(1,)]
    assert not os.path.exists(home.places.ledgerd_socket)


def test_it_never_exits_by_itself_if_told_so(home: Home, ledgerd: Start) -> None:
    settings(home, "[ledger]\nidle_exit_s = 0\n")
    daemon = ledgerd().ready()
    begun = time.monotonic()
    wait_until(lambda: time.monotonic() > begun + 2 or has_left(daemon), "two seconds")
    assert not has_left(daemon)


def test_it_stays_while_somebody_reads(home: Home, ledgerd: Start) -> None:
    settings(home, "[ledger]\nidle_exit_s = 1\n")
    daemon = ledgerd().ready()
    with unix_connect(home.places.ledgerd_socket, "ws://ledgerd/v1/stream"):
        begun = time.monotonic()
        wait_until(lambda: time.monotonic() > begun + 3 or has_left(daemon), "three idle spans")
        assert not has_left(daemon)
    wait_until(lambda: has_left(daemon), "its exit")


def test_it_stays_while_a_client_has_a_server(
    home: Home, household: Household, ledgerd: Start
) -> None:
    settings(home, "[ledger]\nidle_exit_s = 1\n")
    shim = household.start().ready()
    daemon = ledgerd().ready()
    begun = time.monotonic()
    wait_until(lambda: time.monotonic() > begun + 3 or has_left(daemon), "three idle spans")
    assert not has_left(daemon)
    shim.close()
    wait_until(lambda: has_left(daemon), "its exit")


def test_a_command_that_meets_a_leaving_ledgerd_starts_another(home: Home) -> None:
    leaving = Lock(home.places)
    threading.Timer(0.3, leaving.release).start()
    assert start(home.places, port=None)
    assert stop(home.places)


# Its home is gone


def test_it_leaves_when_its_home_is_renamed(home: Home, ledgerd: Start) -> None:
    home.producer().call()
    daemon = ledgerd().ready()
    daemon.has_stored(3)
    os.rename(home.places.home, home.places.home + "-old")
    wait_until(lambda: has_left(daemon), "its exit")
    assert daemon.process.returncode == 0
    assert daemon.output() == (f"ledgerd exits: `{home.places.home}` or its ledger is gone\n")
    assert not os.path.exists(home.places.home), "nothing of it is made anew"
    os.rename(home.places.home + "-old", home.places.home)
    assert ledgerd().ready().client.get("/v1/status")["events_total"] == 3


def test_it_leaves_when_its_home_is_deleted(home: Home, ledgerd: Start) -> None:
    daemon = ledgerd().ready()
    shutil.rmtree(home.places.home, ignore_errors=True)
    shutil.rmtree(home.places.home, ignore_errors=True)
    wait_until(lambda: has_left(daemon), "its exit")
    assert daemon.process.returncode == 0


def test_another_home_at_the_same_path_is_left_alone(home: Home, ledgerd: Start) -> None:
    """Its sockets and its WAL have the names that those of the first one had."""
    first = ledgerd().ready()
    os.kill(first.process.pid, signal.SIGSTOP)
    os.rename(home.places.home, home.places.home + "-old")
    home.producer("new", "new").call()
    second = ledgerd().ready()
    second.has_stored(3)
    reader = apsw.Connection(home.places.ledger, flags=apsw.SQLITE_OPEN_READONLY)
    os.kill(first.process.pid, signal.SIGCONT)
    wait_until(lambda: has_left(first), "the exit of the first")
    assert is_running(home.places)
    assert second.client.get("/v1/status")["events_total"] == 3
    assert os.path.exists(home.places.ledger + "-wal")
    second.kill()
    assert reader.execute("SELECT count(*) FROM tool_calls").fetchone() == (1,)
    reader.close()
