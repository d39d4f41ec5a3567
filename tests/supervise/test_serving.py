"""The cost of a warden, and its behaviour on a system without prctl and /proc."""

import signal
import subprocess

import pytest
from tests.supervise import upstreams
from tests.supervise.conftest import SRC, WITHIN_S

MOST_PRIVATE_KB = 2048
MOST_OF_BOTH_KB = 5120
"""Bound of what deputy and warden take together; most of their pages they share."""
HEAVY = {"typing", "enum", "re", "signal", "subprocess", "json", "msgspec", "logging", "asyncio"}
HEAVY |= {"collections", "functools", "socket", "selectors", "threading", "struct", "ctypes"}


def test_nothing_heavy_is_loaded_before_the_fork(household):
    shim = household.start(*upstreams.POLITE).ready()
    assert not HEAVY & set(shim.wait_record("deputy")["modules"])
    shim.close()
    shim.wait()


LEAN_SHIM = """
import os, sys
sys.path.insert(0, sys.argv[1])
from subluminal.supervise import WardenHandle
warden = WardenHandle.fork()
warden.spawn(["sh", "-c", "echo ready; exec cat"], dict(os.environ))
os.read(warden.stdout_fd, 6)
import select, subprocess
pids = [warden.pid, open(f"/proc/{warden.pid}/task/{warden.pid}/children").read().strip()]
for pid in pids:
    print(*open(f"/proc/{pid}/smaps_rollup").readlines()[1:], flush=True)
os.close(warden.stdin_fd)
warden.stop()
warden.wait_gone(5000)
"""


def test_warden_has_little_memory_of_its_own():
    """The warden's own memory is at most a bare interpreter's heap, however much the shim loads.

    Shim, deputy and warden share their pages at the fork. When the shim writes to such a page later,
    deputy and warden share it alone.
    """
    done = subprocess.run(
        [*upstreams.PYTHON, LEAN_SHIM, SRC], stdout=subprocess.PIPE, timeout=WITHIN_S, check=True
    )
    sizes: dict[str, list[int]] = {}
    for line in done.stdout.decode().splitlines():
        if ":" in line:
            sizes.setdefault(line.split(":")[0].strip(), []).append(int(line.split()[1]))
    private = zip(sizes["Private_Dirty"], sizes["Private_Clean"], strict=True)
    assert max(sum(pair) for pair in private) <= MOST_PRIVATE_KB
    assert sum(sizes["Pss"]) <= MOST_OF_BOTH_KB


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
    assert household.describe() == []
    assert "gone" in shim.kinds()
