"""Ingest into the ledger, against a bare executemany of the same rows into the same tables.

Also a hundred producers against one, and the time from a write to a journal to the live stream.
"""

import os
import shutil
import statistics
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from typing import Any

import apsw
from tests.ledger.events import Producer
from tests.ledger.home import Home
from tests.ledger.process import Ledgerd, wait_until
from websockets.sync.client import unix_connect

from bench.harness import Result
from subluminal.ledger.daemon.serving import tune_garbage_collection
from subluminal.ledger.ingest.following import Following
from subluminal.ledger.store.committing import Store
from subluminal.ledger.store.database import open_writer

CALLS = 30_000
PRODUCERS = 16

Statement = tuple[str, list[tuple[Any, ...]]]


class Recorder:
    """A connection that remembers what was written through it."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self.batches: list[list[Statement]] = [[]]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def __enter__(self) -> Any:
        return self._connection.__enter__()

    def __exit__(self, *error: Any) -> Any:
        self.batches.append([])
        return self._connection.__exit__(*error)

    def executemany(self, sql: str, rows: Iterable[tuple[Any, ...]]) -> Any:
        self.batches[-1].append((sql, list(rows)))
        return self._connection.executemany(*self.batches[-1][-1])


def measure() -> Iterator[Result]:
    place = tempfile.mkdtemp(prefix="bench-ledger-")
    tune_garbage_collection()
    try:
        yield from _against_bare(place)
        yield from _many_producers(place)
        yield from _live(place)
    finally:
        shutil.rmtree(place)


def _journals(place: str, name: str, shims: int) -> Home:
    home = Home(os.path.join(place, name))
    producers = [home.producer(f"run{n % 10}", f"shim{n}") for n in range(shims)]
    for producer in producers:
        producer.padding = " and more of it" * 60
    for number in range(CALLS):
        producers[number % shims].call()
    home.close()
    return home


def _ingest(home: Home, ledger: str, recorder: bool = False) -> tuple[list[float], Any]:
    """Ingests a home. Returns the seconds of each batch, and the connection."""
    path = os.path.join(home.places.home, ledger)
    connection: Any = open_writer(path)
    connection = Recorder(connection) if recorder else connection
    store = Store(connection, path)
    following = Following(home.places.journal, store.lookups)
    seconds = []
    more = True
    while more:
        begun = time.perf_counter()
        more = following.pump(store.intake)
        store.commit()
        seconds.append(time.perf_counter() - begun)
    following.close()
    return seconds, connection


def _replay(path: str, batches: list[list[Statement]]) -> Iterator[float]:
    connection = open_writer(path)
    for batch in batches:
        begun = time.perf_counter()
        with connection:
            for sql, rows in batch:
                connection.executemany(sql, rows)
        yield time.perf_counter() - begun
    connection.close()


def _against_bare(place: str) -> Iterator[Result]:
    home = _journals(place, "bare", 1)
    recorded = _ingest(home, "recorded.db", recorder=True)[1]
    batches = [batch for batch in recorded.batches if batch]
    ratios, rates = [], []
    for turn in range(3):
        ingested = sum(_ingest(home, f"ingest{turn}.db")[0])
        bare = sum(_replay(os.path.join(place, f"bare{turn}.db"), batches))
        ratios.append(bare / ingested)
        rates.append(3 * CALLS / ingested)
    detail = f"{statistics.median(rates):.0f} events/s"
    yield Result("ledger ingest / bare", statistics.median(ratios), 0.45, True, detail)


def _many_producers(place: str) -> Iterator[Result]:
    one, many = _journals(place, "one", 1), _journals(place, "many", 100)
    ratios = []
    for turn in range(3):
        alone = sum(_ingest(one, f"{turn}.db")[0])
        together = sum(_ingest(many, f"{turn}.db")[0])
        ratios.append(alone / together)
    # Calls of one journal after another are not in the order of time, as the indexes are.
    yield Result("ledger ingest, 100 producers / 1", statistics.median(ratios), 0.8, True)


def _live(place: str) -> Iterator[Result]:
    """Time from a write to a journal to a line of the stream, with busy producers beside it."""
    home = Home(os.path.join(place, "live"))
    daemon = Ledgerd(home.places, "--no-http")
    stopping = threading.Event()

    def be_busy(number: int) -> None:
        producer = Producer(home.places.journal, "busy", f"busy{number}")
        while not stopping.is_set():
            producer.call()
            stopping.wait(0.02)
        producer.close()

    busy = [threading.Thread(target=be_busy, args=(n,)) for n in range(PRODUCERS)]
    try:
        daemon.ready()
        for thread in busy:
            thread.start()
        probe = home.producer("probe", "probe")
        path = home.places.ledgerd_socket
        delays = []
        with unix_connect(path, "ws://ledgerd/v1/stream?run=probe&decision=ALLOW") as stream:
            wait_until(lambda: daemon.client.get("/v1/status")["events_total"] > 100)
            for _ in range(300):
                begun = time.perf_counter()
                probe.call(1)
                stream.recv(timeout=20)
                delays.append(time.perf_counter() - begun)
        memory = _resident_mb(daemon.process.pid)
    finally:
        stopping.set()
        for thread in busy:
            thread.join()
        daemon.close()
        home.close()
    p99 = sorted(delays)[int(len(delays) * 0.99)] * 1000
    detail = f"median {statistics.median(delays) * 1000:.0f} ms, p99 {p99:.0f} ms, bar 250 ms"
    yield Result("ledger write to stream, p99 / bar", p99 / 250, 1, False, detail)
    yield Result("ledgerd memory / bar", memory / 200, 1, False, f"{memory:.0f} MB, bar 200 MB")


def _resident_mb(pid: int) -> float:
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        for line in file:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    raise AssertionError("no VmHWM")
