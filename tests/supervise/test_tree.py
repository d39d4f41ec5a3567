"""Killing a tree: every killed process is reported, however fast it dies (no-orphans)."""

import os
import signal
import subprocess

from subluminal.config.settings import ServerSettings
from subluminal.supervise import tree
from subluminal.supervise.ending import TERM_GRACE_S


def test_a_kill_is_reported_even_if_the_process_is_dead_before_it_is_listed(monkeypatch):
    child = subprocess.Popen(["sleep", "1000"], start_new_session=True)

    def kill_and_see_it_die(group, signum):
        os.killpg(group, signum)
        os.waitid(os.P_PID, group, os.WEXITED | os.WNOWAIT)

    monkeypatch.setattr(tree, "_signal_group", kill_and_see_it_die)
    # A test runner may have other children, unlike a warden.
    monkeypatch.setattr(tree, "kill_all", lambda _kin: [])
    try:
        killed = tree.Tree(child.pid, adopts=True).kill()
    finally:
        child.kill()
        child.wait()
    assert child.pid in [process.pid for process in killed]
    assert child.returncode == -signal.SIGKILL


def test_the_default_waits_stay_under_three_seconds():
    """Adds up the default waits (no-orphans): a clock would measure the machine."""
    assert ServerSettings().grace_ms / 1000 + TERM_GRACE_S < 3
