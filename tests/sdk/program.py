"""A program with a guard, as the tests of real processes start it.

    python -m tests.sdk.program MODE [WORDS…]

Modes are the functions of this file whose names begin with `run_`. Each says on stdout what the
test waits for.
"""

import asyncio
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NoReturn

from subluminal import Guard, Refused


def passed(guard: Guard, *numbers: int) -> int:
    """Makes a call with each number; returns how many passed."""
    found = 0
    for number in numbers:
        try:
            with guard.call("t", {"n": number}):
                found += 1
        except Refused:
            continue
    return found


async def passed_later(guard: Guard, *numbers: int) -> int:
    """The same, each in a task of its own."""

    async def one(number: int) -> int:
        await asyncio.sleep(0)
        return passed(guard, number)

    return sum(await asyncio.gather(*map(one, numbers)))


def in_child(work: Callable[[], int]) -> int:
    """Forks; returns what the work returns in the child, at most 255."""
    pid = os.fork()
    if pid == 0:
        code = 255
        try:
            code = work()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def wait_for_go() -> None:
    print("ready", flush=True)
    sys.stdin.readline()


def hang() -> NoReturn:
    print("here", flush=True)
    time.sleep(600)
    sys.exit("nobody came")


# Modes


def run_forgets_to_close() -> None:
    guard = Guard()
    passed(guard, 1)
    Guard(run_id="other").check("t", {})
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda n: passed(guard, n), range(4)))


def run_leaves_a_thread_in_a_call() -> None:
    guard, inside = Guard(), threading.Event()

    def forever() -> None:
        with guard.call("forever", {}):
            inside.set()
            time.sleep(600)

    threading.Thread(target=forever, daemon=True).start()
    inside.wait()
    Guard(run_id="other").check("t", {})


def run_hangs_in_a_call() -> None:
    with Guard().call("forever", {}):
        hang()


def run_exits_at_once() -> None:
    passed(Guard(), 1)
    os._exit(3)


def run_is_terminated() -> None:
    """With a handler as servers have it: the call is cancelled, the run ends."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with Guard().call("forever", {}):
        hang()


def run_closes_in_a_handler(after_s: str) -> None:
    """The handler may come at any point, also inside of the guard."""
    guard = Guard()

    def close(*_: object) -> None:
        guard.close()
        raise SystemExit

    signal.signal(signal.SIGALRM, close)
    print("here", flush=True)
    signal.setitimer(signal.ITIMER_REAL, float(after_s))
    while True:
        passed(guard, 1)


def run_multiprocessing(method: str) -> None:
    """Children of `multiprocessing`: before and after the first use."""
    guard = Guard()
    if method == "spawn":
        os.environ.update(guard.environ())
    context: Any = multiprocessing.get_context(method)
    for _ in range(2):
        children = [context.Process(target=child_work, args=(n,)) for n in range(2)]
        _shared["guard"] = guard
        for child in children:
            child.start()
        for child in children:
            child.join()
        passed(guard, 9)


_shared: dict[str, Guard] = {}


def child_work(number: int) -> None:
    passed(_shared.get("guard") or Guard(), number)


def run_prefork(workers: str) -> None:
    """A server that forks its workers: each line on stdin is work, whoever gets it."""
    guard = Guard()
    read, write = os.pipe()
    pids = [start_worker(guard, read, write) for _ in range(int(workers))]
    print(*pids, flush=True)
    for line in sys.stdin:
        if line.startswith("another"):
            print(start_worker(guard, read, write), flush=True)
        else:
            os.write(write, line.encode())
    os.close(write)
    while True:
        try:
            os.wait()
        except ChildProcessError:
            return


def start_worker(guard: Guard, read: int, write: int) -> int:
    pid = os.fork()
    if pid:
        return pid
    os.close(write)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    while work := os.read(read, 2):
        os.write(1, b"done\n" if passed(guard, *work.strip()) else b"refused\n")
    sys.exit(0)


def run_race(threads: str, calls: str) -> None:
    """Threads with event loops, and two forks, all at once; says how many calls passed."""
    guard = Guard()
    guard.check("first", {}) if os.environ.get("RACE_FIRST") else None
    wait_for_go()
    numbers = range(int(calls))

    def work(thread: int) -> int:
        if thread % 2:
            return asyncio.run(passed_later(guard, *numbers))
        return passed(guard, *numbers)

    with ThreadPoolExecutor(int(threads)) as pool:
        working = [pool.submit(work, thread) for thread in range(int(threads))]
        forked = sum(in_child(lambda: passed(guard, *numbers)) for _ in range(2))
        print(sum(each.result() for each in working) + forked, flush=True)


def run_forks_under_load(forks: str) -> None:
    """Forks while other threads are in `begin`; a child that hangs is ended by its alarm."""
    guard, over = Guard(), threading.Event()

    def load() -> None:
        while not over.is_set():
            passed(guard, 1)

    def child() -> int:
        signal.alarm(30)
        return passed(guard, 1, 2)

    threads = [threading.Thread(target=load) for _ in range(4)]
    for thread in threads:
        thread.start()
    print(*(in_child(child) for _ in range(int(forks))), flush=True)
    over.set()
    for thread in threads:
        thread.join()


def run_executes(log: str) -> None:
    """Notes in a file what was executed, until it is killed."""
    guard = Guard()
    fd = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    @guard.tool
    def act(number: int) -> None:
        os.write(fd, f"{number}\n".encode())

    print("here", flush=True)
    with ThreadPoolExecutor(4) as pool:
        for _ in pool.map(act, range(1_000_000)):
            pass


def run_journal_is_full(policy: str) -> None:
    """From the second call on, no file can grow: as on a full disk."""
    import resource

    guard = Guard(policy=policy)
    ran: list[int] = []
    act = guard.tool(name="act")(ran.append)
    act(1)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
    try:
        act(2)
        print("passed", ran)
    except Refused as refused:
        print(refused.reason_code, ran)


if __name__ == "__main__":
    globals()[f"run_{sys.argv[1]}"](*sys.argv[2:])
