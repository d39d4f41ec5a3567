"""A process is identified by its pid and its start time."""

import os
import subprocess
import sys

from subluminal.state.processes import start_time


def test_a_living_process_has_a_start_that_does_not_change():
    assert start_time(os.getpid()) == start_time(os.getpid()) > 0


def test_a_process_started_later_has_a_later_start():
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        assert start_time(child.pid) >= start_time(os.getpid())
        child.stdin.close()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert start_time(child.pid) is None, "a zombie is dead"
    assert start_time(child.pid) is None


def test_a_name_full_of_parentheses_does_not_confuse(tmp_path):
    odd = tmp_path / "a) R 1 (b"
    odd.symlink_to(sys.executable)
    with subprocess.Popen([str(odd), "-c", "input()"], stdin=subprocess.PIPE) as child:
        assert start_time(child.pid) >= start_time(os.getpid())
        child.stdin.close()
