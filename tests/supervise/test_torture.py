"""Kills and stops at random points, from a fixed seed, never leave an orphan."""

import contextlib
import os
import random
import signal

from tests.processes import forks_of
from tests.supervise import upstreams

from subluminal.system import LINUX

ROUNDS = 60
BATCH = 6
"""Rounds at once, so that they share the half second between TERM and KILL."""
KINDS = [
    upstreams.POLITE,
    upstreams.STUBBORN,
    upstreams.WRAPPED,
    upstreams.ESCAPING,
    *([upstreams.BREEDING] if LINUX else []),
]
WAYS = ["shim", "warden", "deputy", "shim+warden", "shim+deputy", "warden+deputy"]
WAYS += ["stop warden, shim", "stop deputy, shim", "signal", "close"]


def test_random_kill_points_leave_nothing(household):
    chance = random.Random(20261115)
    for _ in range(ROUNDS // BATCH):
        shims = [household.start(*chance.choice(KINDS), grace_ms=30) for _ in range(BATCH)]
        for shim in chance.sample(shims, BATCH):
            # From before the fork to well after the upstream's start.
            signal.sigtimedwait([], chance.uniform(0, 0.06))
            hurt(shim, chance)
        for shim in shims:
            shim.close()
            shim.wait()
        household.wait_empty()


def hurt(shim, chance):
    """Kills or stops some of shim, deputy and warden, in any order; or only closes the input."""
    way = chance.choice(WAYS)
    line = [shim.pid]
    while len(line) < 3 and (forks := forks_of(line[-1])):
        line.append(forks[0])
    known = dict(zip(("shim", "deputy", "warden"), line, strict=False))
    if way == "signal":
        # Until the shim has started the warden, a signal ends it like any other program.
        os.killpg(shim.pid, chance.choice([signal.SIGTERM, signal.SIGINT, signal.SIGHUP]))
    elif way.startswith("stop"):
        if "warden" in known:  # before that there is nobody who could stop it, and no upstream
            send(known[way.split()[1].rstrip(",")], signal.SIGSTOP)
        send(shim.pid, signal.SIGKILL)
    elif way != "close":
        victims = [known[name] for name in way.split("+") if name in known]
        for pid in chance.sample(victims, len(victims)):
            send(pid, signal.SIGKILL)
    # A shim that still lives sees the end of its input next.


def send(pid, number):
    """Signals a process, which may have ended since it was found."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)
