"""No process is left, however shim, warden, client or upstream end (no-orphans)."""

import contextlib
import os
import signal
import sys
import time

import pytest
from tests.processes import descendants, kill_with_warden, process, wait_until
from tests.supervise import upstreams

from subluminal.system import LINUX

MOST_S = 10.0
"""Bound of every end, whoever was stopped or killed, in seconds (no-orphans)."""
UNDER_S = 3.0
"""Bound of a default end, in seconds (no-orphans)."""

ALL = {
    "polite": upstreams.POLITE,
    "stubborn": upstreams.STUBBORN,
    "wrapped": upstreams.WRAPPED,
    "escaping": upstreams.ESCAPING,
}
if LINUX:
    ALL["breeding"] = upstreams.BREEDING
STOPPERS = {"once": upstreams.STOPPER, "again and again": upstreams.STOPPING}
every_stopper = pytest.mark.parametrize("argv", STOPPERS.values(), ids=STOPPERS)
every_upstream = pytest.mark.parametrize("argv", ALL.values(), ids=ALL)


@every_upstream
def test_stdin_eof_ends_the_tree(household, argv):
    """A killed client leaves only end of input (clients.md 1.5, 2.6)."""
    shim = household.start(*argv, stop_grace_ms=50).ready()
    shim.close()
    shim.wait()
    assert household.describe() == []
    assert shim.records("left") == [{"kind": "left", "pids": []}]
    assert "gone" in shim.kinds()


def test_default_end_of_a_stubborn_upstream_takes_under_three_seconds(household):
    shim = household.start(*upstreams.STUBBORN).ready()
    begin = time.monotonic()
    shim.close()
    assert shim.wait() == 128 + signal.SIGKILL
    assert 2.5 <= time.monotonic() - begin < UNDER_S + 1, "grace, then half a second after TERM"
    assert household.describe() == []


@every_upstream
def test_killed_shim(household, argv):
    shim = household.start(*argv).ready()
    shim.kill(signal.SIGKILL)
    assert household.wait_empty() < UNDER_S


@every_upstream
def test_killed_warden(household, argv):
    """The upstream dies with its parent; the shim, a subreaper too, sweeps the rest."""
    shim = household.start(*argv).ready()
    os.kill(shim.warden, signal.SIGKILL)
    # A breeding upstream has already exited by itself, perhaps with a report.
    assert shim.wait() in ((0, 70) if argv is upstreams.BREEDING else (70,))
    assert household.describe() == []
    assert shim.kinds()[-2:] == ["swept", "left"]
    assert shim.records("left")[0]["pids"] == []


@every_upstream
def test_killed_shim_and_warden(household, argv):
    """The deputy is left, and everything that the upstream started is its own."""
    shim = household.start(*argv).ready()
    kill_with_warden(shim.pid)
    household.wait_empty()


@every_upstream
def test_killed_deputy(household, argv):
    """The warden ends the tree, because nobody would if the upstream stopped it now."""
    shim = household.start(*argv).ready()
    os.kill(shim.deputy, signal.SIGKILL)
    shim.wait()
    assert household.describe() == []
    assert "exited" in shim.kinds()


@pytest.mark.parametrize("first", ["shim", "warden"])
@every_upstream
def test_killed_deputy_and_another(household, argv, first):
    shim = household.start(*argv).ready()
    victim, deputy = shim.pid if first == "shim" else shim.warden, shim.deputy
    os.kill(victim, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):  # it has ended already
        os.kill(deputy, signal.SIGKILL)
    shim.wait()
    household.wait_empty()


@every_stopper
def test_stopped_warden_and_killed_shim(household, argv):
    """Nobody but the deputy can end this tree: its warden never runs long enough."""
    shim = household.start(*argv).ready()
    wait_until(lambda: process(shim.warden).state == "T", "a stopped warden")
    shim.kill(signal.SIGKILL)
    shim.wait()
    assert household.wait_empty() < MOST_S


@every_stopper
def test_stopped_warden_and_a_shim_that_ends_in_order(household, argv):
    shim = household.start(*argv, grace_ms=50).ready()
    wait_until(lambda: process(shim.warden).state == "T", "a stopped warden")
    shim.close()
    shim.wait()
    assert household.describe() == []
    assert shim.records("left")[0]["pids"] == []


def test_stopped_deputy_and_killed_shim(household):
    shim = household.start(*upstreams.STUBBORN).ready()
    deputy = shim.deputy
    os.kill(deputy, signal.SIGSTOP)
    wait_until(lambda: process(deputy).state == "T", "a stopped deputy")
    shim.kill(signal.SIGKILL)
    household.wait_empty()


@pytest.mark.skipif(not LINUX, reason="only the kernel can tell a stopped deputy of a death")
def test_stopped_warden_and_deputy_and_killed_shim(household):
    shim = household.start(*upstreams.STUBBORN).ready()
    both = (shim.warden, shim.deputy)
    for pid in both:
        os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: all(process(pid).state == "T" for pid in both), "both to be stopped")
    shim.kill(signal.SIGKILL)
    assert household.wait_empty() < MOST_S


def test_background_processes_of_a_shell(household):
    shim = household.start(*upstreams.BACKGROUND)
    # The shim, the deputy, the warden, the shell and its two sleeps.
    wait_until(lambda: len(household.alive()) == 6, "the two sleepers")
    shim.kill(signal.SIGKILL)
    assert household.wait_empty() < UNDER_S


def test_killed_shim_and_client(household):
    """The client, a process of its own, dies at the same moment as its shim."""
    client = "import subprocess, sys; sys.exit(subprocess.call(sys.argv[1:]))"
    shim = household.start(*upstreams.STUBBORN, via=(sys.executable, "-I", "-S", "-c", client))
    shim.ready()
    (shim_pid,) = [entry.pid for entry in descendants(shim.pid) if entry.parent == shim.pid]
    os.kill(shim.pid, signal.SIGKILL)
    os.kill(shim_pid, signal.SIGKILL)
    assert household.wait_empty() < UNDER_S


def test_claude_stops_a_server(household):
    """SIGINT, 100 ms later SIGTERM, 400 ms later SIGKILL; stdin stays open (clients.md 1.5)."""
    shim = household.start(*upstreams.STUBBORN).ready()
    shim.kill(signal.SIGINT)
    signal.sigtimedwait([], 0.1)
    shim.kill(signal.SIGTERM)
    signal.sigtimedwait([], 0.4)
    shim.kill(signal.SIGKILL)
    assert household.wait_empty() < UNDER_S


@every_upstream
def test_codex_stops_a_server(household, argv):
    """SIGTERM to the group and end of input at once, SIGKILL 40 ms later (clients.md 2.6)."""
    shim = household.start(*argv).ready()
    os.killpg(shim.pid, signal.SIGTERM)
    shim.close()
    signal.sigtimedwait([], 0.04)
    shim.kill(signal.SIGKILL)
    assert household.wait_empty() < UNDER_S


def test_warden_is_deaf_to_signals_of_the_terminal_and_the_client(household):
    shim = household.start(*upstreams.POLITE).ready()
    warden = shim.warden
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        os.kill(warden, number)
    shim.close()
    assert shim.wait() == 0, "the warden was there to relay the exit code"


def test_leaked_order_pipe_does_not_hide_the_shims_death(household):
    """A helper that the shim forked without exec still holds the write end."""
    shim = household.start(*upstreams.STUBBORN, leak_orders=True).ready()
    deputy = int(shim.wait_record("deputy")["pid"])
    tree = set(household.alive())
    helper = next(p for p in tree if _parent(p) == shim.pid and p != deputy)
    shim.kill(signal.SIGKILL)
    wait_until(lambda: household.alive() == [helper], "only the helper")
    os.kill(helper, signal.SIGKILL)


def test_client_sees_the_end_of_output_while_the_warden_still_works(household):
    """The warden holds none of the shim's descriptors."""
    shim = household.start(*upstreams.STUBBORN).ready()
    shim.kill(signal.SIGKILL)
    assert shim.process.stdout.read() == b""
    assert household.alive(), "the tree has half a second to end"
    household.wait_empty()


def _parent(pid):
    entry = process(pid)
    return entry.parent if entry else 0
