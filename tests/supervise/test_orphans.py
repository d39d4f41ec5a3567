"""`sub doctor` finds what was left behind, and nothing that is in use."""

import os
import signal
import sys

from tests.supervise import upstreams
from tests.supervise.conftest import wait_until

from subluminal.supervise.orphans import find_orphans


def ours(household):
    alive = set(household.alive())
    return [orphan for orphan in find_orphans() if orphan.pid in alive]


def test_a_tree_in_use_is_no_orphan(household):
    shim = household.start(*upstreams.ESCAPING).ready()
    assert ours(household) == []
    shim.close()
    shim.wait()


def test_a_warden_without_shim_and_its_tree_are_found(household):
    """Here the warden is stopped, so that it cannot end the tree."""
    shim = household.start(*upstreams.STUBBORN, warden=True).ready()
    warden = shim.wait_record("warden")["pid"]
    os.kill(warden, signal.SIGSTOP)
    shim.kill(signal.SIGKILL)
    shim.wait()
    # Between two sleeps the shell is alone for a moment.
    left = wait_until(
        lambda: len(found := ours(household)) == 3 and found, "warden, the shell and its sleep"
    )
    reasons = {orphan.pid: orphan.reason for orphan in left}
    assert reasons.pop(warden) == "its shim is gone"
    assert set(reasons.values()) == {f"its shim (process {shim.pid}) is gone"}
    os.kill(warden, signal.SIGCONT)
    household.wait_empty()


def test_processes_that_lost_shim_and_warden_at_once_are_found(household):
    """The one case that nothing can prevent without a namespace: doctor must see it."""
    shim = household.start(*upstreams.ESCAPING, warden=True).ready()
    warden = shim.wait_record("warden")["pid"]
    os.kill(shim.pid, signal.SIGSTOP)
    os.kill(warden, signal.SIGKILL)
    shim.kill(signal.SIGKILL)
    shim.wait()
    left = wait_until(lambda: len(household.alive()) == 1 and ours(household), "the escapee alone")
    assert left[0].reason == f"its shim (process {shim.pid}) is gone"
    assert "signal.pause" in left[0].cmdline


def test_a_shim_without_client_is_found(household):
    client = "import subprocess, sys; sys.exit(subprocess.call(sys.argv[1:]))"
    # Its output is ours, and so is its input: the shim sees no end when the client dies.
    shim = household.start(
        *upstreams.POLITE, via=(sys.executable, "-I", "-S", "-c", client)
    ).ready()
    shim.kill(signal.SIGKILL)
    shim.wait()
    (orphan,) = ours(household)
    assert orphan.reason == f"its client (process {shim.pid}) is gone"
    assert "driver.py" in orphan.cmdline
    shim.close()
    household.wait_empty()
