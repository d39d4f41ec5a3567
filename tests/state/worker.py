"""A process of a run, for tests that need several: `python worker.py <verb> <state_dir> <run_id>`.

It says a line when it is ready and waits for one before it goes on.
"""

import os
import signal
import sys

from subluminal.contracts.counters import CellKind
from subluminal.state import layout
from subluminal.state.errors import StateBusy
from subluminal.state.processes import start_time
from subluminal.state.run_state import RunState, Total

PAIR_KEY = b"budget".ljust(16, b".")
WINDOW_KEY = b"window".ljust(16, b".")
RECENT_NAMES = 6_000
"""More than the store keeps, so that it evicts all the time."""


def recent_key(name):
    return (name * 40_503 % 65_536).to_bytes(2, "little") + name.to_bytes(30, "little")


def churned(n):
    """What one step of `churn` writes; every integer of it can be told from its cell's others."""
    name = n % RECENT_NAMES
    return [
        (CellKind.PAIR, PAIR_KEY, (n, ~n)),
        (CellKind.WINDOW, WINDOW_KEY, (n,) * (1 + n % 128)),
        (CellKind.RECENT, recent_key(name), (name, *(n,) * (1 + n % 30))),
    ]


def say(line):
    print(line, flush=True)


def wait():
    return sys.stdin.readline()


def patiently(state, step):
    """Does a step under the lock, however long it takes to get it."""
    while True:
        try:
            with state.locked():
                return step()
        except StateBusy:
            continue


def increment(state_dir, run_id):
    with RunState.open(state_dir, run_id) as state:
        say("ready")
        wait()

        def step():
            (value,) = state.counters.read(CellKind.PAIR, PAIR_KEY) or (0,)
            state.counters.write([(CellKind.PAIR, PAIR_KEY, (value + 1,))])
            state.count(Total.CALLS_ALLOWED)
            return state.take_seq()

        say(" ".join(str(patiently(state, step)) for _ in range(1_000)))


def create(state_dir, run_id):
    say("ready")
    wait()
    with RunState.open(state_dir, run_id) as state:
        seq = patiently(state, state.take_seq)
        first = patiently(state, lambda: state.claim_start(1, 2))
        say(f"{os.stat(state.path).st_ino} {seq} {first}")


def hold(state_dir, run_id):
    with RunState.open(state_dir, run_id) as state, state.locked():
        say("held")
        wait()


def hold_each(*_):
    """Holds the lock of one state after the other: a line names the state, the next frees it."""
    for line in sys.stdin:
        hold(*line.rstrip("\n").split("\t"))
        say("free")


def toil(state_dir, run_id):
    """Holds the lock and never sleeps, until a signal: what a starved holder looks like."""
    with RunState.open(state_dir, run_id) as state, state.locked():
        told = []
        signal.signal(signal.SIGUSR1, lambda *_: told.append(1))
        say("held")
        while not told:
            pass


def churn(state_dir, run_id):
    with RunState.open(state_dir, run_id) as state:
        say("ready")
        while True:
            patiently(state, lambda: state.counters.write(churned(state.take_seq())))


def attach(state_dir, run_id):
    with RunState.open(state_dir, run_id) as state:
        own = start_time(os.getpid())
        patiently(state, lambda: state.attach(f"shim-{os.getpid()}", os.getpid(), own))
        say("ready")
        wait()


def come_and_go(state_dir, run_id):
    """Attaches and detaches over and over, and leaves each time what looks like an old run."""
    own = os.getpid(), start_time(os.getpid())
    kept = 0
    for _ in range(300):
        with RunState.open(state_dir, run_id) as state:
            patiently(state, lambda state=state: state.attach("shim", *own))
            with RunState.open(state_dir, run_id) as found:
                kept += found.live_shims() == state.live_shims() != ()
            patiently(state, lambda state=state: state.detach("shim"))
            path = state.path
        with open(path, "r+b") as file:
            file.seek(layout.W_LAST_USED_MS * layout.WORD_BYTES)
            file.write(bytes(8))
            file.flush()
            os.utime(file.fileno(), (0, 0))  # `prune` may have removed the path
    say(f"kept {kept} times")


def die_with_a_child(state_dir, run_id):
    """Forks while it holds the lock, and dies when the child has seen that it is held."""
    with RunState.open(state_dir, run_id) as state:
        lock = state.locked()
        lock.__enter__()
        if os.fork() == 0:
            lock.held = False
            try:
                with lock:
                    say("free")
            except StateBusy:
                say("busy")
            wait()
            os._exit(0)
        signal.pause()


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
