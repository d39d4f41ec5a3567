"""The shim's side: orders that cannot be given, waits that end, a guard that is not there."""

import os
import signal
import subprocess
import sys

import pytest
from tests.supervise import upstreams
from tests.supervise.conftest import SRC, WITHIN_S

from subluminal.supervise import Guard


@pytest.fixture
def guard():
    """A guard of the test process itself; all its descriptors are closed and it is collected."""
    made = Guard.fork()
    yield made
    made.stop(grace_ms=0)
    made.wait_gone(int(WITHIN_S * 1000))
    while not made.closed:
        made.read_reports()
    for fd in (made.stdin_fd, made.stdout_fd, made.stderr_fd, made.report_fd, made._orders):
        os.close(fd)


def test_wait_gone_is_bounded_and_loses_no_report(guard):
    guard.spawn(upstreams.STUBBORN, dict(os.environ))
    assert os.read(guard.stdout_fd, 100) == b"ready\n"
    assert not guard.wait_gone(20)
    assert [r.kind for r in guard.read_reports()] == ["spawned"]
    guard.stop(grace_ms=0)
    assert guard.wait_gone(int(WITHIN_S * 1000))
    assert [r.kind for r in guard.read_reports()][-2:] == ["exited", "gone"]
    assert not guard.lost


def test_nothing_spawned_is_gone_at_once(guard):
    guard.stop()
    assert guard.wait_gone(int(WITHIN_S * 1000))


def test_orders_that_cannot_be_given_are_refused(guard):
    with pytest.raises(ValueError, match="NUL"):
        guard.spawn(["a\0b"], {})
    with pytest.raises(ValueError, match="one upstream"):
        guard.spawn(["sh"], {})


def test_an_order_without_a_program_is_refused(guard):
    with pytest.raises(ValueError, match="program"):
        guard.spawn([], {})


def test_variables_that_no_program_can_have_are_left_out(guard):
    guard.spawn(["sh", "-c", "exit 5"], {"": "x", "A=B": "x", "PATH": os.environ["PATH"]})
    assert guard.wait_gone(int(WITHIN_S * 1000))
    assert [r.exit_code for r in guard.read_reports() if r.kind == "exited"] == [5]


def test_orders_to_a_dead_guard_do_not_raise(guard):
    os.kill(guard.pid, signal.SIGKILL)
    assert not guard.wait_gone(int(WITHIN_S * 1000))
    assert guard.lost
    guard.spawn(["sh"], {})
    guard.signal(signal.SIGINT)
    guard.stop()
    assert guard.read_reports() == []


def test_closed_standard_descriptors_do_not_swallow_a_pipe():
    """Some clients close what they do not use."""
    code = (
        "import os, sys; sys.path.insert(0, sys.argv[1]); os.closerange(0, 3)\n"
        "from subluminal.supervise import Guard\n"
        "guard = Guard.fork(); guard.spawn(['sh', '-c', 'echo fine'], dict(os.environ))\n"
        "ok = min(guard.stdin_fd, guard.report_fd) > 2 and os.read(guard.stdout_fd, 9) == b'fine\\n'\n"
        "guard.stop(); guard.wait_gone(5000); os._exit(0 if ok else 1)"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code, SRC], timeout=WITHIN_S, check=False
    )
    assert done.returncode == 0
