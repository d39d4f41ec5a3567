"""What-if replay of 100,000 recorded calls under a policy with every rule kind: time and memory.

The bar for the time is 10 s. The bar for the memory is that ten times as many runs take no more.
"""

import os
import shutil
import tempfile
import time
import tracemalloc
from collections import deque
from collections.abc import Iterator
from itertools import islice

from tests.adapters.policies import rule, snapshot
from tests.ledger.home import Home

from bench.harness import Result
from subluminal.ledger.query.recorded_runs import run_ids
from subluminal.ledger.query.replaying import LedgerReplay
from subluminal.policy.snapshot import Snapshot

CALLS = 100_000
RUNS = 400
BAR_S = 10.0


def measure() -> Iterator[Result]:
    place = tempfile.mkdtemp(prefix="bench-replay-")
    home = Home(os.path.join(place, "home"))
    try:
        _fill(home)
        yield _timed(home)
        yield _kept(home)
    finally:
        home.close()
        shutil.rmtree(place)


def candidate() -> Snapshot:
    """Twenty denies by name and argument, and one rule of every other kind."""
    no = {"action": "BLOCK", "reason_code": "NO", "message": "no"}
    denies = [
        rule(
            f"no-{number}",
            "deny",
            no,
            tool_name={"glob": ["*_file", f"tool{number}"]},
            args={"key_in": {"path": [f"/etc/{number}"]}, "numeric_range": {"limit": {"max": -1}}},
        )
        for number in range(20)
    ]
    rate = {"capacity": 90, "refill_tokens": 90, "refill_period_ms": 1000, "scope": "tool"}
    repeats = {"repeat_threshold": 3, "repeat_window_ms": 60_000}
    errors = {"error_threshold": 5, "window_ms": 60_000}
    return snapshot(
        rule(
            "writes",
            "tag",
            {"tag": {"add_risk_class": ["write_like"]}},
            tool_name={"regex": ["^(push|write)"]},
        ),
        *denies,
        rule(
            "ok",
            "allow",
            {"action": "ALLOW", "reason_code": "OK", "message": ""},
            risk_class=["write_like"],
        ),
        rule(
            "budget",
            "budget",
            {"budget": {"scope": "run", "limit_calls": 200, "on_exceed": "BLOCK"}},
        ),
        rule(
            "rate", "rate_limit", {"rate_limit": {**rate, "on_limit": "THROTTLE", "backoff_ms": 10}}
        ),
        rule(
            "breaker",
            "breaker",
            {"breaker": {"scope": "tool", **repeats, **errors, "on_trip": "BLOCK"}},
        ),
        rule(
            "once",
            "dedupe",
            {"dedupe": {"scope": "run", "window_ms": 1000, "on_duplicate": "BLOCK"}},
        ),
    )


def _fill(home: Home) -> None:
    for number in range(RUNS):
        producer = home.producer(f"run{number}", f"shim{number}", max_bytes=1 << 40)
        for call in range(CALLS // RUNS):
            producer.call(number * 7 + call)
        home.ingest()


def _timed(home: Home) -> Result:
    replay = LedgerReplay(home.reader(), candidate())
    begun = time.perf_counter()
    deque(replay.rows(), maxlen=0)
    seconds = time.perf_counter() - begun
    assert replay.tally.calls == CALLS
    detail = f"{seconds:.1f} s, bar {BAR_S:g} s; {replay.tally.changes.total()} calls"
    return Result(f"replay of {CALLS} calls / bar", seconds / BAR_S, 1, False, detail)


def _kept(home: Home) -> Result:
    few, many = (_peak_bytes(home, runs) for runs in (RUNS // 40, RUNS // 4))
    detail = f"{few / 1024:.0f} KiB for {RUNS // 40} runs, {many / 1024:.0f} KiB for {RUNS // 4}"
    return Result("replay memory, ten times the runs", many / few, 1.2, False, detail)


def _peak_bytes(home: Home, runs: int) -> int:
    reader = home.reader()
    chosen = list(islice(run_ids(reader), runs))
    replay = LedgerReplay(reader, candidate())
    tracemalloc.start()
    try:
        deque(replay.rows(chosen), maxlen=0)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
