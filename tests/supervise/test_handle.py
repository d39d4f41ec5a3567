"""The shim's side: invalid orders, bounded waits, a dead warden."""

import os
import signal
import subprocess
import sys

import pytest
from tests.processes import WITHIN_S, forks_of, wait_until
from tests.supervise import upstreams
from tests.supervise.conftest import SRC

from subluminal.supervise import WardenHandle


@pytest.fixture
def warden():
    """A warden of the test process itself, which is reaped and whose descriptors are closed."""
    made = WardenHandle.fork()
    yield made
    made.stop(grace_ms=0)
    made.wait_gone(int(WITHIN_S * 1000))
    while not made.closed:
        made.read_reports()
    for fd in (made.stdin_fd, made.stdout_fd, made.stderr_fd, made.report_fd, made._orders):
        os.close(fd)


def test_wait_gone_is_bounded_and_loses_no_report(warden):
    warden.spawn(upstreams.STUBBORN, dict(os.environ))
    assert os.read(warden.stdout_fd, 100) == b"ready\n"
    assert not warden.wait_gone(20)
    assert [r.kind for r in warden.read_reports()] == ["spawned"]
    warden.stop(grace_ms=0)
    assert warden.wait_gone(int(WITHIN_S * 1000))
    assert [r.kind for r in warden.read_reports()][-2:] == ["exited", "gone"]
    assert not warden.lost


def test_nothing_spawned_is_gone_at_once(warden):
    warden.stop()
    assert warden.wait_gone(int(WITHIN_S * 1000))


def test_invalid_orders_are_refused(warden):
    with pytest.raises(ValueError, match="NUL"):
        warden.spawn(["a\0b"], {})
    with pytest.raises(ValueError, match="one upstream"):
        warden.spawn(["sh"], {})


def test_an_order_without_a_program_is_refused(warden):
    with pytest.raises(ValueError, match="program"):
        warden.spawn([], {})


def test_variables_that_no_program_can_have_are_left_out(warden):
    warden.spawn(["sh", "-c", "exit 5"], {"": "x", "A=B": "x", "PATH": os.environ["PATH"]})
    assert warden.wait_gone(int(WITHIN_S * 1000))
    assert [r.exit_code for r in warden.read_reports() if r.kind == "exited"] == [5]


def test_orders_to_a_dead_warden_do_not_raise(warden):
    os.kill(wait_until(lambda: forks_of(warden.pid), "the warden")[0], signal.SIGKILL)
    assert not warden.wait_gone(int(WITHIN_S * 1000))
    assert warden.lost
    warden.spawn(["sh"], {})
    warden.signal(signal.SIGINT)
    warden.stop()
    assert warden.read_reports() == []


def test_closed_standard_descriptors_do_not_swallow_a_pipe():
    """Some clients close the descriptors that they do not use."""
    code = (
        "import os, sys; sys.path.insert(0, sys.argv[1]); os.closerange(0, 3)\n"
        "from subluminal.supervise import WardenHandle\n"
        "warden = WardenHandle.fork(); warden.spawn(['sh', '-c', 'echo fine'], dict(os.environ))\n"
        "ok = min(warden.stdin_fd, warden.report_fd) > 2 and os.read(warden.stdout_fd, 9) == b'fine\\n'\n"
        "warden.stop(); warden.wait_gone(5000); os._exit(0 if ok else 1)"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code, SRC], timeout=WITHIN_S, check=False
    )
    assert done.returncode == 0
