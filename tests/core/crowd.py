"""Threads and processes that use one run at once: what the tests of `ThreadedHost` start.

`python -m tests.core.crowd HOME THREADS CALLS LIMIT` is one process of a crowd: it makes CALLS calls
from each of THREADS threads, waits for a line on stdin before the first, and prints how many passed.
"""

import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.adapters.policies import budget, snapshot
from tests.adapters.records import lines_of
from tests.hosts import host_in

from subluminal.canonical import args_hash, encode
from subluminal.contracts.call import ToolCall
from subluminal.contracts.vocabulary import ErrorClass, Status, Transport
from subluminal.core.host import Host
from subluminal.core.ruling import CallEnding
from subluminal.core.runs.opening import Sharing
from subluminal.policy.snapshot import Snapshot

SHARED = Sharing(threads=True)
_OK = CallEnding(Status.OK, 2, b"{}")
_REFUSED = CallEnding(Status.ERROR, 0, error_class=ErrorClass.POLICY_BLOCK)


def limited(calls: int) -> Snapshot:
    """A policy that lets this many calls of a run pass."""
    return snapshot(budget(calls))


def call(**args: Any) -> ToolCall:
    return ToolCall(
        server_name="probe",
        tool_name="t",
        args=args,
        args_hash=args_hash(args),
        bytes_in=1,
        transport=Transport.UNKNOWN,
    )


def one_call(host: Host, **args: Any) -> bool:
    """Makes a call from its begin to its end; True if it passed."""
    ruling = host.begin(call(**args), encode(args))
    host.finish(ruling, _OK if ruling.is_allowed else _REFUSED)
    return ruling.is_allowed


def at_once(works: list[Callable[[], int]]) -> list[int]:
    """Runs each work in a thread of its own, all released together; returns what they return.

    Threads are switched as often as Python can, so that a missing lock shows.
    """
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        return _at_once(works)
    finally:
        sys.setswitchinterval(before)


def _at_once(works: list[Callable[[], int]]) -> list[int]:
    gate = threading.Barrier(len(works))
    results: list[int | BaseException] = [0] * len(works)

    def run(place: int) -> None:
        try:
            gate.wait()
            results[place] = works[place]()
        except BaseException as error:  # noqa: BLE001 - told in the test's own thread
            results[place] = error

    threads = [threading.Thread(target=run, args=(place,)) for place in range(len(works))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return [result for result in results if isinstance(result, int)]


def many_calls(host: Host, count: int) -> int:
    """Makes calls; returns how many passed."""
    return sum(one_call(host, n=n) for n in range(count))


def journalled(home: Path) -> list[bytes]:
    """Every line of every journal."""
    return [line for _, line in lines_of(home)]


def main(home: str, threads: int, calls: int, limit: int) -> None:
    host = host_in(Path(home), limited(limit), sharing=SHARED)
    host.open_run()
    print("ready", flush=True)
    sys.stdin.readline()
    passed = sum(at_once([lambda: many_calls(host, calls)] * threads))
    host.close()
    print(passed, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], *(int(word) for word in sys.argv[2:]))
