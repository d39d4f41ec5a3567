"""The warden's reports, the exit status it relays, and the programs it starts."""

import os
import signal

import pytest
from tests.supervise import upstreams
from tests.supervise.conftest import WITHIN_S, wait_until

from subluminal.system import LINUX


@pytest.mark.parametrize("code", [0, 1, 42, 255])
def test_exit_code_of_the_upstream_is_relayed(household, code):
    shim = household.start("sh", "-c", f"exit {code}")
    assert shim.wait() == code
    assert shim.kinds() == ["spawned", "exited", "gone", "stopping", "left"]


@pytest.mark.parametrize("name", ["KILL", "SEGV", "TERM"])
def test_signal_that_ended_the_upstream_is_relayed(household, name):
    shim = household.start("sh", "-c", f"kill -{name} $$")
    number = getattr(signal, f"SIG{name}")
    assert shim.wait() == 128 + number
    exited = shim.records("exited")[0]
    assert (exited["exit_code"], exited["signal"]) == (None, number)


@pytest.mark.parametrize(
    ("program", "cwd", "line"),
    [
        ("no-such-program", None, "cannot start `no-such-program`: no such file or directory"),
        ("/no/such", None, "cannot start `/no/such`: no such file or directory"),
        ("plain", None, "cannot start `plain`: permission denied"),
        ("binary", None, "cannot start `binary`: exec format error"),
        ("sh", "/no/dir", "cannot start `sh` in `/no/dir`: no such file or directory"),
    ],
    ids=["not in PATH", "no file", "not executable", "not a program", "no directory"],
)
def test_start_failure_is_one_clear_line(household, tmp_path, program, cwd, line):
    (tmp_path / "plain").write_text("not to be run")
    (tmp_path / "binary").write_bytes(b"\x00\x01\x02")
    (tmp_path / "binary").chmod(0o700)
    shim = household.start(program, cwd=cwd, env={"PATH": f"{tmp_path}:{os.environ['PATH']}"})
    shim.wait()
    assert shim.kinds() == ["failed", "gone", "stopping", "left"]
    assert shim.records("failed")[0]["detail"] == line


def test_every_killed_process_is_named_without_its_arguments(household):
    shim = household.start(*upstreams.ESCAPING, grace_ms=50).ready()
    shim.close()
    shim.wait()
    killed = shim.records("killed")
    assert [k["signal"] for k in killed] == [signal.SIGTERM, signal.SIGKILL]
    assert all("left its process group" in k["detail"] for k in killed)
    assert all("signal.pause" not in k["detail"] for k in killed)


def test_huge_arguments_and_environment(household):
    """An order may be of any size; this one is many times the size of a pipe."""
    env = {f"V{n}": "x" * 20_000 for n in range(4)}
    count = (
        "import os, sys; print(len(sys.argv), len(os.environ['V3']), flush=True); sys.stdin.read()"
    )
    shim = household.start(*upstreams.PYTHON, count, env=env, more=20_000)
    assert shim.read_line() == "20001 20000"
    shim.close()
    assert shim.wait() == 0


def test_working_directory_and_path_are_the_upstreams_own(household, tmp_path):
    (tmp_path / "here").mkdir()
    program = tmp_path / "here" / "server"
    program.write_text("#!/bin/sh\npwd\n")
    program.chmod(0o700)
    shim = household.start("server", cwd=str(tmp_path), env={"PATH": "here:/usr/bin:/bin"})
    assert shim.read_line() == str(tmp_path)
    assert shim.wait() == 0


def test_unread_stderr_flood_stops_only_its_writer(household):
    """The warden is not in the data path, so it can end a tree whose pipe is full."""
    flood = "yes 'a line of noise' | head -c 32000000 >&2 & echo ready; exec cat"
    shim = household.start("sh", "-c", flood, unread_stderr=True, grace_ms=50).ready()
    shim.process.stdin.write(b"still here\n")
    shim.process.stdin.flush()
    assert shim.read_line() == "still here"
    shim.close()
    assert shim.wait() == 0
    assert household.describe() == []


def test_drained_stderr_flood_delays_nothing(household):
    flood = "yes 'a line of noise' | head -c 32000000 >&2; echo ready; exec cat"
    shim = household.start("sh", "-c", flood).ready()
    shim.close()
    assert shim.wait() == 0


def test_after_death_runs_when_the_shim_was_killed_and_the_tree_is_gone(household, tmp_path):
    out = tmp_path / "after"
    script = f"echo $SUB_TEST_TOKEN $0 > {out}.part; mv {out}.part {out}"
    shim = household.start(
        *upstreams.STUBBORN, after_death=["sh", "-c", script, "argument"]
    ).ready()
    shim.kill(signal.SIGKILL)
    wait_until(out.exists, "the file of the `after_death` program")
    assert out.read_text() == f"{household.token} argument\n", "with the shim's environment"
    household.wait_empty()


def test_after_death_does_not_run_after_an_orderly_stop(household, tmp_path):
    """Not even when the shim is killed while its warden still ends the tree."""
    out = tmp_path / "after"
    shim = household.start(*upstreams.STUBBORN, after_death=["touch", str(out)]).ready()
    shim.close()
    shim.wait_record("stopping")
    shim.kill(signal.SIGKILL)
    household.wait_empty()
    assert not out.exists()


def test_shim_that_dies_without_an_upstream_leaves_no_warden(household):
    """The warden waits for orders that never come."""
    shim = household.start("unused", die_before_spawn=True)
    shim.process.wait(WITHIN_S)
    household.wait_empty()


def test_upstream_has_default_signals_own_session_and_no_stray_descriptor(household):
    look = (
        "import os, signal;"
        "print(signal.getsignal(signal.SIGTERM) == signal.SIG_DFL, os.getsid(0) == os.getpid(),"
        " sorted(os.listdir('/proc/self/fd')), 'SUBLUMINAL_SHIM_ID' in os.environ);"
        "line = open('/proc/self/status').read(); ignored = line.split('SigIgn:')[1].split()[0];"
        "blocked = line.split('SigBlk:')[1].split()[0]; print(ignored, blocked)"
    )
    shim = household.start(*upstreams.PYTHON, look)
    # Descriptor 3 is that of the listing. Python itself ignores SIGPIPE and SIGXFSZ.
    assert shim.read_line() == "True True ['0', '1', '2', '3'] True"
    ignored, blocked = (int(word, 16) for word in shim.read_line().split())
    # Signals above 31 belong to the C library, and a test runner may have changed them.
    assert (ignored & 0x7FFF_FFFF, blocked) == (0x0100_1000, 0)
    shim.wait()


def test_result_pipe_is_wide(household):
    size = "import fcntl; print(fcntl.fcntl(1, fcntl.F_GETPIPE_SZ))"
    shim = household.start(*upstreams.PYTHON, size)
    assert shim.read_line() == str((256 if LINUX else 64) * 1024)
    shim.wait()


def test_interrupt_is_forwarded_to_the_upstreams_group(household):
    """`WardenHandle.signal`: here the child of the wrapper answers."""
    inner = "trap 'echo interrupted; exit 3' INT; echo ready; while :; do read line || exit 4; done"
    shim = household.start("sh", "-c", f'trap : INT; sh -c "{inner}"; exit $?', forward=True)
    shim.ready()
    shim.kill(signal.SIGINT)
    assert shim.read_line() == "interrupted"
    assert shim.wait() == 3
