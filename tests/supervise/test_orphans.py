"""`sub doctor` finds processes that were left behind, and none that is in use."""

import os
import signal
import sys

from tests.processes import read, wait_until
from tests.supervise import upstreams

from subluminal.supervise.orphans import find_orphans


def ours(household):
    alive = set(household.alive())
    return [orphan for orphan in find_orphans() if orphan.pid in alive]


def test_a_tree_in_use_is_not_an_orphan(household):
    shim = household.start(*upstreams.ESCAPING).ready()
    assert ours(household) == []
    shim.close()
    shim.wait()


def test_a_warden_without_shim_and_its_tree_are_found(household):
    """The warden is stopped, and the deputy dead, so that nobody can end the tree."""
    shim = household.start(*upstreams.STUBBORN).ready()
    warden, deputy = shim.warden, shim.deputy
    os.kill(warden, signal.SIGSTOP)
    os.kill(deputy, signal.SIGKILL)
    shim.kill(signal.SIGKILL)
    shim.wait()
    wait_until(lambda: deputy not in household.alive(), "the deputy's end")
    # Between two sleeps the shell has no child for a moment.
    left = wait_until(
        lambda: len(found := ours(household)) == 3 and found, "warden, the shell and its sleep"
    )
    reasons = {orphan.pid: orphan.reason for orphan in left}
    assert reasons.pop(warden) == "its shim is gone"
    assert set(reasons.values()) == {f"its shim (process {shim.pid}) is gone"}
    os.kill(warden, signal.SIGCONT)
    household.wait_empty()


def test_processes_that_lost_shim_deputy_and_warden_at_once_are_found(household):
    """Only a namespace could prevent this case, so doctor must find it."""
    shim = household.start(*upstreams.ESCAPING).ready()
    victims = (shim.pid, shim.deputy, shim.warden)
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for pid in victims:
            os.kill(pid, number)
    shim.wait()
    left = wait_until(lambda: len(household.alive()) == 1 and ours(household), "the escapee alone")
    assert left[0].reason == f"its shim (process {shim.pid}) is gone"
    assert b"signal.pause" in read(left[0].pid, "cmdline")


def test_a_shim_without_client_is_found(household):
    client = "import subprocess, sys; sys.exit(subprocess.call(sys.argv[1:]))"
    # The test holds the shim's input and output, so the shim sees no end when the client dies.
    shim = household.start(
        *upstreams.POLITE, via=(sys.executable, "-I", "-S", "-c", client)
    ).ready()
    shim.kill(signal.SIGKILL)
    shim.wait()
    (orphan,) = ours(household)
    assert orphan.reason == f"its client (process {shim.pid}) is gone"
    assert b"driver.py" in read(orphan.pid, "cmdline")
    shim.close()
    household.wait_empty()
