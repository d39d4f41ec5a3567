"""What a guarded function costs: one call, in a task, from eight threads, and beside other guards.

The bar is what no recorder can do without: canonical JSON, SHA-256 and two appends to a file. The
guard has 50 rules and its journal. All tasks take small turns in one process.

Of the other guards only sudoagent records as much: a policy, and a chained ledger that it syncs to
the disk. The others have no bar: tool-call-guard appends a line without a chain, and what
agent-os-kernel notes ends with the process.
"""

import asyncio
import os
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Any

from bench.bundles import bundle_of
from bench.harness import Result, interleaved
from bench.policy import rules_of
from bench.rivals.installing import ensure_installed
from bench.rivals.rules import TOOL, refusals
from bench.stdio_peers import WORK
from subluminal import Guard
from subluminal.canonical import encode

_TURNS = 3_000
"""Turns of one call: a longer turn would often be interrupted on a busy machine."""
_TURNS_BESIDE, _TURNS_OF_SUDO = 1_000, 100
_THREADS, _CALLS = 8, 40
_FIRST = count(0, 10**6)
"""Each task has titles of its own, so that no call is a duplicate."""
_SYNC_BAR, _ASYNC_BAR, _THREADS_BAR, _SUDO_BAR = 6.0, 1.25, 0.8, 30.0
_DENIES = 48


def measure() -> Iterator[Result]:
    """Yields the cost of a call over its least, of an asynchronous one, and of threads."""
    home = WORK / "home" / "guard"
    shutil.rmtree(home, ignore_errors=True)
    guard = Guard(home=home, run_id="r", policy=bundle_of(_rules()))
    fd = os.open(home / "least", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    loop = asyncio.new_event_loop()
    pool = ThreadPoolExecutor(_THREADS)
    try:
        tasks = [_least(fd), _plain(guard), _later(guard, loop), _nothing(loop)]
        least, plain, later, nothing = interleaved(tasks, rounds=_TURNS)
        one, eight = interleaved(_threads(guard, pool), rounds=30)
        others = list(_beside(guard, home))
    finally:
        pool.shutdown()
        loop.close()
        os.close(fd)
        guard.close()
    later -= nothing  # what the event loop costs without us
    us = f"{plain * 1e6:.0f} us against {least * 1e6:.1f} us"
    yield Result("a guarded call over hash and two appends", plain / least, _SYNC_BAR, False, us)
    us = f"{later * 1e6:.0f} us"
    yield Result("an asynchronous one over a plain one", later / plain, _ASYNC_BAR, False, us)
    each = f"{_CALLS * _THREADS / eight:,.0f} a second, one thread {_CALLS * _THREADS / one:,.0f}"
    yield Result("eight threads over one", one / eight, _THREADS_BAR, True, each)
    yield from others


def _beside(guard: Guard, home: Path) -> Iterator[Result]:
    """Yields how much more the same call takes under other guards."""
    ensure_installed("guards")
    from bench.rivals.guards import agent_os, sudo, tool_call  # importable only now

    rules, ours = refusals(_DENIES), _plain(guard)
    tasks = [ours, tool_call.caller(rules, home), agent_os.caller(rules, home)]
    own, *theirs = interleaved(tasks, rounds=_TURNS_BESIDE)
    for name, took in zip(("tool-call-guard", "agent-os-kernel"), theirs, strict=True):
        us = f"{own * 1e6:.0f} us against {took * 1e6:.0f} us"
        yield Result(f"{name} takes more", took / own, 0.0, True, us)

    def several() -> None:
        for _ in range(_CALLS):
            ours()

    # It syncs the disk, for which the next write of anybody waits: hence many calls in our turns.
    own, took = interleaved([several, sudo.caller(rules, home)], rounds=_TURNS_OF_SUDO)
    own /= _CALLS
    us = f"{own * 1e6:.0f} us against {took * 1e6:,.0f} us"
    yield Result("sudoagent takes more", took / own, _SUDO_BAR, True, us)


def _rules() -> list[dict[str, Any]]:
    """48 denies, four of them about this tool, a budget and a rate limit."""
    return [
        each for each in rules_of(refusals(_DENIES)) if each["kind"] not in ("breaker", "dedupe")
    ]


def _least(fd: int) -> Callable[[], object]:
    numbers = count()

    def run() -> None:
        title = f"A-{next(numbers)}"
        text = encode({"owner": "acme", "title": title, "limit": 50, "repo": "widgets"})
        line = sha256(text).hexdigest().encode() + text + b"\n"
        os.write(fd, line)
        os.write(fd, line)

    return run


def _plain(guard: Guard) -> Callable[[], object]:
    numbers = count(next(_FIRST))

    @guard.tool(name=TOOL)
    def create(owner: str, title: str, limit: int, repo: str = "widgets") -> str:
        return "done"

    def run() -> None:
        create("acme", f"A-{next(numbers)}", 50)

    return run


def _later(guard: Guard, loop: asyncio.AbstractEventLoop) -> Callable[[], object]:
    numbers = count(next(_FIRST))

    @guard.tool(name=TOOL)
    async def create(owner: str, title: str, limit: int, repo: str = "widgets") -> str:
        return "done"

    async def one() -> None:
        await create("acme", f"A-{next(numbers)}", 50)

    return lambda: loop.run_until_complete(one())


def _nothing(loop: asyncio.AbstractEventLoop) -> Callable[[], object]:
    async def one() -> None:
        return None

    return lambda: loop.run_until_complete(one())


def _threads(guard: Guard, pool: ThreadPoolExecutor) -> list[Callable[[], object]]:
    """The same number of calls, by one thread of the pool and by all of them."""
    call = _plain(guard)

    def run(calls: int) -> None:
        for _ in range(calls):
            call()

    def by_one() -> None:
        pool.submit(run, _CALLS * _THREADS).result()

    def by_all() -> None:
        for each in [pool.submit(run, _CALLS) for _ in range(_THREADS)]:
            each.result()

    return [by_one, by_all]
