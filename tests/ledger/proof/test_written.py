"""The run's state counts what is in each journal, and a kill -9 never looks like a lost event.

The count is stored after the write(2), so it may lag behind the journal, and never the other way.
"""

import os
import random
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.ledger.events import Producer
from tests.ledger.home import Home
from tests.ledger.process import Ledgerd
from tests.processes import wait_until
from tests.shim.household import Household

from subluminal.journal.resuming import last_number
from subluminal.ledger.upkeep.written import count_written, find_behind
from subluminal.state.processes import start_time
from subluminal.state.run_state import RunState

KILLS = 12


def write_for_ever(home: Home, shim_id: str) -> None:
    """One shim of a run, until it is killed."""
    state = RunState.open(home.places.state, "run")
    with state.locked():
        state.attach(shim_id, os.getpid(), start_time(os.getpid()) or 0)
    producer = Producer(home.places.journal, "run", shim_id, max_bytes=20_000)
    counter = state.counter(shim_id)
    assert counter is not None
    producer.journal.count_in(*counter)
    while True:
        producer.call()


def test_a_count_is_never_ahead_of_the_journal(home: Home) -> None:
    chance = random.Random(16)
    os.makedirs(home.places.state)
    Path(home.places.state, "host_id").write_text("host")
    directory = os.path.join(home.places.journal, "run")
    for number in range(KILLS):
        shim_id = f"shim{number}"
        child = os.fork()
        if child == 0:
            try:
                write_for_ever(home, shim_id)
            finally:
                os._exit(1)
        wanted = chance.randrange(1, 60)
        try:
            wait_until(
                lambda: count_written(home.places).get(("run", shim_id), 0) >= wanted,  # noqa: B023
                f"{wanted} events of {shim_id}",
            )
        finally:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        counted = count_written(home.places)["run", shim_id]
        assert wanted <= counted <= last_number(directory, shim_id)
        # Start and decision are one write, so at most that much was not counted.
        assert last_number(directory, shim_id) <= counted + 2
    home.ingest()
    assert list(find_behind(home.reader(), home.places, count_written(home.places))) == []
    assert home.verify().findings == []


def test_a_full_disk_is_counted_by_what_is_in_the_file(home: Home, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    state = RunState.open(home.places.state, "run")
    with state.locked():
        state.attach("shim", os.getpid(), start_time(os.getpid()) or 0)
    producer = home.producer("run", "shim", reserve_bytes=0)
    counter = state.counter("shim")
    assert counter is not None
    producer.journal.count_in(*counter)
    producer.call()
    assert count_written(home.places) == {("run", "shim"): 3}
    whole = os.write

    def short(fd: int, data: bytes) -> int:
        if fd != producer.journal._fd:
            return whole(fd, data)
        at = data.index(b"\n") + 1
        if len(data) > at:
            return whole(fd, data[: at + 5])
        raise OSError(28, "no space left on device")

    monkeypatch.setattr("subluminal.journal.writing.os.write", short)
    with pytest.raises(Exception, match="cannot write the journal"):
        producer.call()
    monkeypatch.undo()
    counted = count_written(home.places)["run", "shim"]
    assert counted <= last_number(os.path.join(home.places.journal, "run"), "shim") == 4
    producer.call()
    assert count_written(home.places) == {("run", "shim"): 7}
    producer.close()
    state.close()


def test_a_run_with_a_state_that_cannot_be_read_has_no_counts(home: Home) -> None:
    directory = Path(home.places.state) / "runs"
    directory.mkdir(parents=True)
    (directory / "broken").write_bytes(b"not a state")
    (directory / ".unfinished").write_bytes(b"")
    assert count_written(home.places) == {}
    assert count_written(home.places, "never") == {}


@pytest.mark.timeout(300)
def test_killed_shims_leave_a_record_that_holds(
    home: Home, household: Household, ledgerd: Callable[..., Ledgerd], person: Callable[..., str]
) -> None:
    """kill -9 of real shims while calls are under way: whatever is not counted is in the journal."""
    chance = random.Random(9)
    for number in range(3):
        shim = household.start(run=f"run-{number}").ready()
        for _ in range(chance.randrange(1, 9)):
            shim.call("echo")
        for _ in range(20):
            shim.ask("echo")
        shim.kill()
        shim.wait()
    household.wait_empty()
    daemon = ledgerd("--no-http").ready()
    wait_until(lambda: daemon.client.get("/v1/status")["backlog_bytes"] == 0, "the end of journals")
    daemon.client.post("/v1/checkpoints", b"")
    assert daemon.stop() == 0
    assert "verified" in person("ledger", "verify")
