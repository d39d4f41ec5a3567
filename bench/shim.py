"""The latency, start-up time and memory that the shim adds, compared with other proxies.

The least that a proxy can do is a pass-through in C. All peers run at once, pinned to one CPU, and
are called in turns. The difference to the direct server in the same round counts. The shim has
fifty rules, shared counters and its journal.
"""

import os
import shutil
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from bench import proxies
from bench.harness import Result
from bench.stdio_peers import WORK, Peer, build, shim
from tools import realservers

_EVERYTHING = "node/node_modules/@modelcontextprotocol/server-everything/dist/index.js"
_ROUNDS = 12
_CALLS = 250


def measure() -> Iterator[Result]:
    """Runs all measurements of the shim."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(before)})
    shutil.rmtree(WORK / "home", ignore_errors=True)
    try:
        echo, c_pass = build("echo"), build("pass")
        yield from _closed_loop(echo, c_pass)
        yield from _slow_server(echo, c_pass)
        yield from _pipelined(echo, c_pass)
        yield from _large_results(echo, c_pass)
        yield from _start(echo)
        yield from _start_of_real_server()
        yield from _memory(echo)
    finally:
        os.sched_setaffinity(0, before)


def _closed_loop(echo: str, c_pass: str) -> Iterator[Result]:
    peers = [
        Peer("direct", [echo]),
        Peer("C", [c_pass, echo]),
        Peer("recording", proxies.recording_python(WORK / "home" / "recording", [echo])),
        shim(WORK / "home" / "closed", [echo]),
        Peer("mcp-firewall", proxies.mcp_firewall([echo])),
        Peer("FastMCP", proxies.fastmcp([echo])),
    ]
    try:
        p50, p99 = latencies(peers, _ROUNDS, _CALLS)
    finally:
        close_all(peers)
    added = {name: p50[name] - p50["direct"] for name in p50}
    tail = {name: p99[name] - p99["direct"] for name in p99}
    ours = added["sub shim"]
    detail = (
        f"direct {p50['direct']:.0f}, C +{added['C']:.0f}, sub +{ours:.0f} us;"
        f" the least in Python with a journal +{added['recording']:.0f}"
    )
    yield Result("300 B call, added, to C pass-through", ours / added["C"], 4.0, False, detail)
    yield Result("  the same at p99", tail["sub shim"] / max(tail["C"], 1.0), 8.0, False)
    yield Result("  mcp-firewall adds more", added["mcp-firewall"] / ours, 20.0, True)
    yield Result("  FastMCP adds more", added["FastMCP"] / ours, 40.0, True)


def _slow_server(echo: str, c_pass: str) -> Iterator[Result]:
    slow = [echo, "2", "3000"]
    peers = [
        Peer("direct", slow),
        Peer("C", [c_pass, *slow]),
        shim(WORK / "home" / "slow", slow),
    ]
    try:
        p50, _ = latencies(peers, _ROUNDS, 40)
    finally:
        close_all(peers)
    added_by_c = max(p50["C"] - p50["direct"], 1.0)
    ours = p50["sub shim"] - p50["direct"]
    detail = f"C +{added_by_c:.0f}, sub +{ours:.0f} us"
    yield Result("server takes 3 ms, added, to C", ours / added_by_c, 2.5, False, detail)


def _pipelined(echo: str, c_pass: str) -> Iterator[Result]:
    peers = [
        Peer("C", [c_pass, echo]),
        shim(WORK / "home" / "pipelined", [echo]),
        Peer("FastMCP", proxies.fastmcp([echo])),
    ]
    numbers = {"C": 6400, "sub shim": 3200, "FastMCP": 128}
    rates: dict[str, list[float]] = {peer.name: [] for peer in peers}
    try:
        for _ in range(5):
            for peer in peers:
                number = numbers[peer.name]
                lines = peer.lines(number)
                begun = time.perf_counter()
                peer.calls(lines, 32)
                rates[peer.name].append(number / (time.perf_counter() - begun))
    finally:
        close_all(peers)
    rate = {name: statistics.median(values) for name, values in rates.items()}
    detail = f"{rate['sub shim']:.0f} calls/s, C {rate['C']:.0f}"
    yield Result("32 calls at a time, to C", rate["sub shim"] / rate["C"], 0.08, True, detail)
    yield Result("  to FastMCP", rate["sub shim"] / rate["FastMCP"], 50.0, True)


def _large_results(echo: str, c_pass: str) -> Iterator[Result]:
    for name, size, bar, calls in (("64 KiB", 65_536, 3.0, 100), ("8 MiB", 8 << 20, 2.0, 5)):
        server = [echo, str(size)]
        peers = [
            Peer("direct", server),
            Peer("C", [c_pass, *server]),
            shim(WORK / "home" / f"large{size}", server),
        ]
        try:
            p50, _ = latencies(peers, _ROUNDS, calls)
        finally:
            close_all(peers)
        added_by_c = max(p50["C"] - p50["direct"], 1.0)
        ours = p50["sub shim"] - p50["direct"]
        detail = f"C +{added_by_c:.0f}, sub +{ours:.0f} us"
        yield Result(f"{name} result, added, to C", ours / added_by_c, bar, False, detail)


def _start(echo: str) -> Iterator[Result]:
    """Measures the time to the first reply. The policy is cached, as from the second start on."""
    home = WORK / "home" / "start"
    bare, ours = _first_replies_ms(
        lambda: Peer("bare", proxies.bare_python([echo])), lambda: shim(home, [echo])
    )
    detail = f"bare {bare:.0f} ms, sub {ours:.0f} ms"
    yield Result("start, to a bare pass-through in Python", ours / bare, 8.0, False, detail)


def _start_of_real_server() -> Iterator[Result]:
    """Measures the start of a Node server with and without the shim, on all CPUs."""
    os.sched_setaffinity(0, range(os.cpu_count() or 1))
    server = ["node", str(realservers.install() / _EVERYTHING), "stdio"]
    home = WORK / "home" / "real"
    direct, ours = _first_replies_ms(lambda: Peer("direct", server), lambda: shim(home, server))
    detail = f"direct {direct:.0f} ms, sub {ours:.0f} ms"
    yield Result("start of server-everything, to direct", ours / direct, 1.15, False, detail)


def _first_replies_ms(*starts: Callable[[], Peer]) -> list[float]:
    """Returns the median times to the first reply. The first start only fills caches."""
    for start in starts:
        start().close()
    times: list[list[float]] = [[] for _ in starts]
    for _ in range(15):
        for start, taken in zip(starts, times, strict=True):
            peer = start()
            taken.append(peer.first_reply_s * 1000)
            peer.close()
    return [statistics.median(taken) for taken in times]


def _memory(echo: str) -> Iterator[Result]:
    """Measures the PSS of a shim and its warden, in MiB per pair, with a hundred pairs running."""
    home = WORK / "home" / "memory"
    shim(home, [echo]).close()
    peers = [shim(home, [echo]) for _ in range(100)]
    try:
        pairs = [_pss_kib(peer.pid) + sum(map(_pss_kib, _children(peer.pid))) for peer in peers]
    finally:
        close_all(peers)
    mib = statistics.median(pairs) / 1024
    yield Result("MiB of shim and warden, 100 running", mib, 16.0, False)


def latencies(
    peers: list[Peer], rounds: int, calls: int
) -> tuple[dict[str, float], dict[str, float]]:
    """Returns each peer's p50 and p99 in microseconds, as medians over the rounds."""
    middle: dict[str, list[float]] = {peer.name: [] for peer in peers}
    tail: dict[str, list[float]] = {peer.name: [] for peer in peers}
    for _ in range(rounds):
        for peer in peers:
            # Warm up: the first calls after another peer's turn would make up the whole p99.
            for line in peer.lines(min(calls, 20)):
                peer.call(line)
            number = max(calls // 10, 5) if peer.name in ("mcp-firewall", "FastMCP") else calls
            times = sorted(_timed(peer, line) for line in peer.lines(number))
            middle[peer.name].append(times[len(times) // 2])
            tail[peer.name].append(times[len(times) * 99 // 100])
    return (
        {name: statistics.median(values) for name, values in middle.items()},
        {name: statistics.median(values) for name, values in tail.items()},
    )


def _timed(peer: Peer, line: bytes) -> float:
    begun = time.perf_counter_ns()
    peer.call(line)
    return (time.perf_counter_ns() - begun) / 1000


def close_all(peers: list[Peer]) -> None:
    for peer in peers:
        peer.close()


def _children(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii")
    return [int(word) for word in text.split()]


def _pss_kib(pid: int) -> int:
    rollup = subprocess.run(
        ["grep", "^Pss:", f"/proc/{pid}/smaps_rollup"], capture_output=True, text=True, check=True
    )
    return int(rollup.stdout.split()[1])
