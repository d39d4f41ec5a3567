"""After the agent: nothing that it started stays (no-orphans). Shims get the time to end in order.

`sub run` is a subreaper, so whatever escaped by double fork and setsid() is its child by now. The
ledger's daemon is spared: it belongs to the user, whoever started it first.
"""

import os
import signal
import time
from collections.abc import Callable

from subluminal.supervise import sweep_descendants
from subluminal.supervise.processes import Process, descendants
from subluminal.supervise.serving import NAME as WARDEN

SHIMS_S = 8.0
"""A shim that lost its client ends within 3 s by default, and its warden's last words take some."""
OTHERS_S = 1.0
"""What gets no more time than SIGTERM and this."""
_LOOK_S = 0.01


def sweep(shim_pids: Callable[[], frozenset[int]], spare: frozenset[int]) -> list[Process]:
    """Ends all descendants; returns those that did not end by themselves."""
    told: dict[int, Process] = {}
    begun = time.monotonic()
    while True:
        _collect()
        shims = _shims(shim_pids(), spare)
        others = [p for p in descendants(os.getpid(), spare | shims) if not p.is_dead]
        for process in others:
            if process.pid not in told:
                told[process.pid] = process
                _terminate(process.pid)
        waited_s = time.monotonic() - begun
        if not others and not shims:
            return list(told.values())
        if waited_s > (SHIMS_S if shims else OTHERS_S):
            break
        time.sleep(_LOOK_S)
    stuck = [p for p in descendants(os.getpid(), spare) if not p.is_dead]
    sweep_descendants(spare=spare)
    return [*told.values(), *(p for p in stuck if p.pid not in told)]


def _shims(attached: frozenset[int], spare: frozenset[int]) -> frozenset[int]:
    """The shims and wardens among our descendants."""
    below = [p for p in descendants(os.getpid(), spare) if not p.is_dead]
    return frozenset(p.pid for p in below if p.pid in attached or p.name.encode() == WARDEN)


def _terminate(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGTERM)
    except (ProcessLookupError, PermissionError):
        return


def _collect() -> None:
    """Reaps what is dead; the agent's own status was taken before."""
    while True:
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                return
        except ChildProcessError:
            return
