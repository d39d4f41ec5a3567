"""What ten taint rules cost a shim: the latency of a call, against a shim without them.

Nine of the rules test an argument and do not match; the tenth lowers the run at every call. Both
shims have fifty rules besides, are pinned to one CPU and are called in turns.
"""

import os
import shutil
from collections.abc import Iterator
from typing import Any

from bench.harness import Result
from bench.shim import close_all, latencies
from bench.stdio_peers import WORK, build, shim

_BAR = 1.15
_ROUNDS, _CALLS = 12, 250


def measure() -> Iterator[Result]:
    """Yields the p50 of a shim with ten taint rules over that of a shim without."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(before)})
    home = WORK / "home" / "taint"
    shutil.rmtree(home, ignore_errors=True)
    peers = []
    try:
        echo = build("echo")
        rules = [_rule(number) for number in range(10)]
        peers = [shim(home / "without", [echo], name="without"), shim(home / "with", [echo], rules)]
        p50, _ = latencies(peers, _ROUNDS, _CALLS)
    finally:
        close_all(peers)
        os.sched_setaffinity(0, before)
    bare, ours = p50["without"], p50["sub shim"]
    detail = f"{ours:.0f} us against {bare:.0f} us"
    yield Result("ten taint rules, call through a shim", ours / bare, _BAR, False, detail)


def _rule(number: int) -> dict[str, Any]:
    return {
        "rule_id": f"taint-{number}",
        "kind": "taint",
        "enabled": True,
        "severity": "info",
        "match": {"args": {"has_keys": [f"none-{number}"]}} if number < 9 else {},
        "effect": {"taint": {"lower_to": "UNTRUSTED"}},
    }
