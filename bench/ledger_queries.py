"""Queries on a ledger of a million calls, and the cost of ingest at that size.

LEDGER_CALLS=10000000 makes a larger ledger, and compares its pages with those at the first million.
Bars are times in `ledger.query`, without HTTP.
"""

import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator

import apsw
from tests.ledger.events import START_MS
from tests.ledger.home import Home

from bench.harness import Result, interleaved
from subluminal.clock import now
from subluminal.ledger.ingest.following import Following
from subluminal.ledger.ingest.rows import BUCKET_MS
from subluminal.ledger.query import calls, facets
from subluminal.ledger.query.questions import CallFilter, Paging
from subluminal.ledger.store.database import open_reader
from subluminal.ledger.upkeep.deferred import index_some

CALLS = int(os.environ.get("LEDGER_CALLS", "1000000"))
MILLION = 1_000_000
STEP = 50_000
RUNS = 200

PAGES = {
    "newest": CallFilter(),
    "by run": CallFilter(run="run7"),
    "by server and tool": CallFilter(server="git", tool="push"),
    "by tool pattern": CallFilter(tool="*_file"),
    "by decision and status": CallFilter(decision="BLOCK", status="OK"),
    "by decision, rare": CallFilter(decision="REJECT_WITH_HINT"),
    "by rule": CallFilter(rule="no-push"),
    "by tool and decision": CallFilter(server="fs", decision="BLOCK"),
    "by time": CallFilter(since_ms=START_MS + 3_600_000, until_ms=START_MS + 7_200_000),
}
TEXTS = {
    "text, common": CallFilter(text="well"),
    "text, rare": CallFilter(text="file123456.py"),
    "text, phrase": CallFilter(text='"all is well"'),
    "text and tool": CallFilter(text="well", tool="push"),
}


def measure() -> Iterator[Result]:
    place = tempfile.mkdtemp(prefix="bench-ledger-")
    home = Home(os.path.join(place, "home"))
    million = os.path.join(place, "million.db")
    try:
        yield from _fill(home, million)
        yield from _ask(home)
        if os.path.exists(million):
            yield from _compare(home, million)
    finally:
        home.close()
        shutil.rmtree(place)


def _fill(home: Home, million: str) -> Iterator[Result]:
    """Ingests all calls in steps. Keeps a copy of the ledger at a million calls."""
    producers = [home.producer(f"run{n}", f"shim{n}", max_bytes=1 << 40) for n in range(RUNS)]
    following = Following(home.places.journal, home.store.lookups)
    rates = []
    for step in range(CALLS // STEP):
        for number in range(STEP):
            producer = producers[number % RUNS]
            producer.clock_ms = START_MS + (step * STEP + number) * 10
            producer.call(step * STEP + number)
        begun = time.perf_counter()
        # A cold journal is not read in every round.
        while following.pump(home.store.intake) or following.backlog_bytes():
            home.store.commit()
        home.store.commit()
        rates.append(STEP / (time.perf_counter() - begun))
        while index_some(home.store.connection, now().wall_ms):
            pass
        if (step + 1) * STEP == MILLION < CALLS:
            _copy(home, million)
    following.close()
    early, late = statistics.median(rates[1:3]), statistics.median(rates[-2:])
    size = os.path.getsize(home.places.ledger) / CALLS
    detail = f"{early:.0f} to {late:.0f} calls/s without the text index, {size:.0f} bytes a call"
    yield Result(f"ledger ingest decay to {CALLS} calls", early / late, 2, False, detail)


def _ask(home: Home) -> Iterator[Result]:
    reader = home.reader()
    for name, wanted in PAGES.items():
        yield _timed(f"ledger page, {name}", 20, _page(reader, wanted))
    for name, wanted in TEXTS.items():
        yield _timed(f"ledger page, {name}", 50, _page(reader, wanted))
    span = CallFilter(since_ms=START_MS, until_ms=START_MS + CALLS * 10)
    yield _timed("ledger facets", 200, lambda: facets.count_facets(reader, CallFilter(server="g*")))
    yield _timed("ledger facets of a time", 200, lambda: facets.count_facets(reader, span))
    bar_ms = max(BUCKET_MS, CALLS * 10 // 200)
    yield _timed(
        "ledger histogram", 200, lambda: facets.count_histogram(reader, CallFilter(), bar_ms)
    )


def _page(reader: apsw.Connection, wanted: CallFilter) -> Callable[[], object]:
    def ask() -> object:
        first = calls.find_calls(reader, wanted, Paging(limit=100))
        assert first.calls
        return first

    return ask


def _timed(name: str, bar_ms: float, ask: Callable[[], object]) -> Result:
    times = []
    for _ in range(9):
        begun = time.perf_counter()
        ask()
        times.append((time.perf_counter() - begun) * 1000)
    median = statistics.median(times)
    return Result(f"{name} / bar", median / bar_ms, 1, False, f"{median:.1f} ms, bar {bar_ms} ms")


def _copy(home: Home, path: str) -> None:
    """Copies page by page: a vacuumed copy would be more compact than the ledger."""
    copy = apsw.Connection(path)
    with copy.backup("main", home.store.connection, "main") as backup:
        backup.step()
    copy.close()


def _compare(home: Home, million: str) -> Iterator[Result]:
    """Queries both ledgers in turns, so that a busy moment of the machine slows both."""
    small, large = open_reader(million), home.reader()
    for name, wanted in {**PAGES, **TEXTS}.items():
        tasks = [_page(reader, wanted) for reader in (small, large)]
        before, after = (seconds * 1000 for seconds in interleaved(tasks, rounds=51))
        detail = f"{before:.2f} ms at a million, {after:.2f} ms at {CALLS}"
        yield Result(f"ledger page, {name} / a million", after / before, 2.5, False, detail)
    small.close()
