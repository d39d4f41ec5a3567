"""What a guard costs, and what is left of it on a system without prctl and /proc."""

import signal

import pytest
from tests.supervise import upstreams

from subluminal.supervise import processes

MOST_PRIVATE_KB = 2048
HEAVY = {"typing", "enum", "re", "signal", "subprocess", "json", "msgspec", "logging", "asyncio"}
HEAVY |= {"collections", "functools", "socket", "selectors", "threading", "struct", "ctypes"}


def test_nothing_heavy_is_loaded_before_the_fork(household):
    shim = household.start(*upstreams.POLITE, guard=True).ready()
    assert not HEAVY & set(shim.wait_record("guard")["modules"])
    shim.close()
    shim.wait()


def test_guard_has_little_memory_of_its_own(household):
    shim = household.start(*upstreams.POLITE, guard=True).ready()
    rollup = processes.read(shim.wait_record("guard")["pid"], "smaps_rollup").decode().split("\n")
    sizes = {line.split(":")[0]: int(line.split()[1]) for line in rollup[1:] if line}
    assert sizes["Private_Dirty"] + sizes["Private_Clean"] <= MOST_PRIVATE_KB
    shim.close()
    shim.wait()


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
