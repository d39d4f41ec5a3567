"""Kills at random points, from a fixed seed, never leave an orphan."""

import os
import random
import signal

from tests.supervise import upstreams

ROUNDS = 30
BATCH = 6
"""Rounds at once, so that they share the half second between TERM and KILL."""
KINDS = [
    upstreams.POLITE,
    upstreams.STUBBORN,
    upstreams.WRAPPED,
    upstreams.ESCAPING,
    upstreams.BREEDING,
]


def test_random_kill_points_leave_nothing(household):
    chance = random.Random(20261115)
    for _ in range(ROUNDS // BATCH):
        shims = [
            household.start(*chance.choice(KINDS), grace_ms=30, warden=True) for _ in range(BATCH)
        ]
        for shim in chance.sample(shims, BATCH):
            # From before the fork to well after the upstream's start.
            signal.sigtimedwait([], chance.uniform(0, 0.06))
            hurt(shim, chance)
        for shim in shims:
            shim.close()
            shim.wait()
        household.wait_empty()


def hurt(shim, chance):
    """Kills the shim or its warden, stops the shim by signal, or only closes its input."""
    way = chance.choice(["shim", "warden", "signal", "close"])
    known = shim.records("warden")
    if way == "shim":
        shim.kill(signal.SIGKILL)
    elif way == "warden" and known:
        os.kill(known[0]["pid"], signal.SIGKILL)
    elif way == "signal" and known:
        os.killpg(shim.pid, chance.choice([signal.SIGTERM, signal.SIGINT, signal.SIGHUP]))
    # A shim that still lives sees the end of its input next.
