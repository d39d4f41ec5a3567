"""The cost of a warden, and its behaviour on a system without prctl and /proc."""

import signal
import subprocess

import pytest
from tests.supervise import upstreams
from tests.supervise.conftest import SRC, WITHIN_S

MOST_PRIVATE_KB = 2048
HEAVY = {"typing", "enum", "re", "signal", "subprocess", "json", "msgspec", "logging", "asyncio"}
HEAVY |= {"collections", "functools", "socket", "selectors", "threading", "struct", "ctypes"}


def test_nothing_heavy_is_loaded_before_the_fork(household):
    shim = household.start(*upstreams.POLITE, warden=True).ready()
    assert not HEAVY & set(shim.wait_record("warden")["modules"])
    shim.close()
    shim.wait()


LEAN_SHIM = """
import os, sys
sys.path.insert(0, sys.argv[1])
from subluminal.supervise import WardenHandle
from subluminal.supervise.processes import read
warden = WardenHandle.fork()
warden.spawn(["sh", "-c", "echo ready; exec cat"], dict(os.environ))
os.read(warden.stdout_fd, 6)
os.write(1, read(warden.pid, "smaps_rollup"))
os.close(warden.stdin_fd)
warden.stop()
warden.wait_gone(5000)
"""


def test_warden_has_little_memory_of_its_own():
    """The warden's own memory is at most a bare interpreter's heap, however much the shim loads.

    Shim and warden share their pages at the fork. When the shim writes to such a page later, the
    warden becomes its only owner.
    """
    done = subprocess.run(
        [*upstreams.PYTHON, LEAN_SHIM, SRC], stdout=subprocess.PIPE, timeout=WITHIN_S, check=True
    )
    lines = done.stdout.decode().splitlines()[1:]
    sizes = {line.split(":")[0]: int(line.split()[1]) for line in lines}
    assert sizes["Private_Dirty"] + sizes["Private_Clean"] <= MOST_PRIVATE_KB


@pytest.mark.parametrize(
    "argv",
    [upstreams.POLITE, upstreams.STUBBORN, upstreams.WRAPPED],
    ids=["polite", "stubborn", "wrapped"],
)
def test_plain_posix_still_ends_the_group_of_a_killed_shim(household, argv):
    shim = household.start(*argv, plain_posix=True).ready()
    shim.kill(signal.SIGKILL)
    household.wait_empty()


@pytest.mark.parametrize(
    "argv", [upstreams.STUBBORN, upstreams.WRAPPED], ids=["stubborn", "wrapped"]
)
def test_plain_posix_orderly_stop(household, argv):
    shim = household.start(*argv, plain_posix=True, grace_ms=50).ready()
    shim.close()
    shim.wait()
    assert household.alive() == []
    assert "gone" in shim.kinds()
