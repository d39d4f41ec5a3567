"""kill -9 of ledgerd and of producers at random points: every event is stored exactly once.

A slice by default; `make torture` sets TORTURE and runs all of it: 100,000 events of 16 producers,
50 kills.
"""

import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest
from tests.ledger.home import Home
from tests.ledger.process import Ledgerd

IS_WHOLE = bool(os.environ.get("TORTURE"))
KILLS = 50 if IS_WHOLE else 4
PRODUCERS = 16 if IS_WHOLE else 4
EVENTS = 100_000 if IS_WHOLE else 6_000

PRODUCE = """
import sys
from tests.ledger.events import Producer
producer = Producer(sys.argv[1], f"run{int(sys.argv[2]) % 5}", f"shim{sys.argv[2]}", max_bytes=200_000)
print("ready", flush=True)
for calls in sys.stdin:
    for _ in range(int(calls)):
        producer.call()
    print("done", flush=True)
"""


@pytest.fixture
def producers(home: Home) -> Iterator[list["subprocess.Popen[str]"]]:
    started = [
        subprocess.Popen(
            [sys.executable, "-c", PRODUCE, home.places.journal, str(number)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(PRODUCERS)
    ]
    yield started
    for process in started:
        process.kill()
        process.communicate()


def tell(process: "subprocess.Popen[str]", words: str) -> None:
    assert process.stdin is not None
    process.stdin.write(f"{words}\n")
    process.stdin.flush()


def hear(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline()


@pytest.mark.timeout(1800 if IS_WHOLE else 120)
def test_every_event_is_stored_exactly_once(
    home: Home,
    ledgerd: Callable[..., Ledgerd],
    producers: list["subprocess.Popen[str]"],
) -> None:
    chance = random.Random(6)
    for process in producers:
        assert hear(process) == "ready\n"
    calls = EVENTS // 3 // KILLS // PRODUCERS
    for _ in range(KILLS):
        daemon = ledgerd("--no-http").ready()
        for process in producers:
            tell(process, str(calls))
        time.sleep(chance.random() * 0.3)  # a random point, not a wait for something
        daemon.kill()
        for process in producers:
            assert hear(process) == "done\n"
    for process in producers:
        tell(process, "1000")
    for process in producers:
        # In the middle of writing: what is torn was never acted on.
        process.kill()
        process.wait()

    lines = home.lines()
    assert len(lines) >= EVENTS * 0.95
    daemon = ledgerd("--no-http").ready()
    daemon.has_stored(len(lines), 300 if IS_WHOLE else 30)
    assert daemon.stop() == 0
    assert home.rows("SELECT value FROM counters WHERE name = 'events_total'") == [(len(lines),)]
    assert home.rows("SELECT sum(last_n - first_n + 1) FROM segments") == [(len(lines),)]
    assert home.rows("SELECT count(*) FROM quarantine") == [(0,)]
    assert home.rows("PRAGMA integrity_check") == [("ok",)]
    report = home.verify()
    assert report.findings == []
    assert report.events == len(lines)
