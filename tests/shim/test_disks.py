"""Full disks and homes that are not writable: bounded loss, and never an unrecorded call."""

import os
import pathlib
import subprocess
import sys

import pytest
from tests.shim.household import deny, policy, wait_until


@pytest.fixture
def small_home(household):
    """A home of two megabytes: tmpfs says ENOSPC as a real disk does."""
    household.home.mkdir(parents=True)
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m,mode=700", "tmpfs", str(household.home)]
    subprocess.run(mount, check=True)
    yield household.home
    household.clean()
    unmount(household.home)


def unmount(home):
    """Unmounts a home as soon as the last process that was killed has let it go."""
    wait_until(lambda: subprocess.run(["umount", home]).returncode == 0, "nothing to use it")


def fill(home):
    """Fills the disk."""
    with open(home / "filler", "wb") as file:
        for size in (65536, 4096):
            try:
                while True:
                    os.write(file.fileno(), b"x" * size)
            except OSError:
                continue


@pytest.mark.parametrize(("on_error", "code"), [("BLOCK", -32081), ("ALLOW", 0)])
def test_a_disk_that_fills_up(household, small_home, on_error, code):
    """Previews go first, decisions come from the reserve, then decision_on_error; then it recovers."""
    household.write_policy(policy(deny("rm"), on_error=on_error))
    shim = household.start().ready()
    text = "y" * 400
    assert shim.code("echo", {"text": text}) == 0
    fill(small_home)
    lean = 0
    while True:
        answer = shim.call("echo", {"text": text})
        reason = answer.get("error", {}).get("data", {}).get("subluminal", {}).get("reason_code")
        if reason or _journal_bytes(household) == lean:
            break
        lean = _journal_bytes(household)
    assert answer.get("error", {}).get("code", 0) == code
    if code:
        assert reason == "JOURNAL_UNAVAILABLE"
    assert shim.code("rm") == -32081, "a refusal needs no record to be one"
    starts = household.events("tool_call_start")
    shown = ["args_preview" in event["call"]["preview"] for event in starts]
    assert shown[0]
    assert not shown[-1], "previews went first"
    assert len(starts) > 100, "the reserve kept decisions flowing"
    (small_home / "filler").unlink()
    assert shim.code("echo", {"text": text}) == 0
    shim.close()
    shim.wait()
    gap = household.wait_event("shim_health", health__state="degraded")
    assert gap["health"]["events_lost"] > 0
    assert household.status() == "SUCCEEDED"
    if code:
        decided = [e["decision"]["action"] for e in household.events("tool_call_decision")]
        assert len(household.executed()) <= decided.count("ALLOW")


def _journal_bytes(household):
    return sum(pathlib.Path(file.path).stat().st_size for file in household.journals())


def test_a_shim_that_starts_on_a_full_disk_and_room_that_comes_later(household, small_home):
    household.write_policy(policy(deny("rm")))
    fill(small_home)
    shim = household.start().ready()
    assert shim.code("echo") == -32081, "nothing can be recorded or counted"
    assert household.executed() == []
    (small_home / "filler").unlink()
    wait_until(lambda: shim.code("echo") == 0, "a call that passes")
    shim.close()
    shim.wait()
    assert household.status() == "SUCCEEDED"


def test_a_read_only_home_keeps_its_policy_and_records_elsewhere(household):
    household.write_policy(policy(deny("rm")))
    options = ["mount", "-t", "tmpfs", "-o", "ro", "tmpfs"]
    for name in ("state", "journal"):
        (household.home / name).mkdir()
        subprocess.run([*options, str(household.home / name)], check=True)
    try:
        spare = household.tmp_path / "tmp"
        spare.mkdir()
        shim = household.start(TMPDIR=str(spare)).ready()
        assert [shim.code("rm"), shim.code("echo")] == [-32081, 0]
        shim.close()
        shim.wait()
    finally:
        for name in ("state", "journal"):
            unmount(household.home / name)
    assert b"is not writable); recording to `" in shim.err or b"read-only" in shim.err
    household.home = spare / f"subluminal-{os.getuid()}"
    assert household.status() == "SUCCEEDED"
    assert household.home.stat().st_mode & 0o77 == 0


def test_a_place_for_temporary_files_that_somebody_prepared(household):
    """A directory that others may enter is not recorded to."""
    household.home.parent.mkdir(exist_ok=True)
    household.home.write_text("not a directory")
    spare = household.tmp_path / "tmp"
    spare.mkdir()
    trap = spare / f"subluminal-{os.getuid()}"
    trap.mkdir(mode=0o777)
    trap.chmod(0o777)
    shim = household.start(TMPDIR=str(spare)).ready()
    assert shim.code("echo") == 0
    shim.close()
    assert shim.wait() == 0
    assert list(trap.iterdir()) == []
    [other] = [path for path in spare.iterdir() if path != trap]
    household.home = other
    assert household.status() == "SUCCEEDED"


@pytest.mark.parametrize(("named", "code"), [(None, 0), ("BLOCK", -32081), ("ALLOW", 0)])
def test_nowhere_to_write_at_all(household, named, code):
    """Observing passes; an enforcing policy decides what happens to calls without a record."""
    words = ()
    if named:
        path = household.write_policy(policy(deny("rm"), on_error=named), household.cwd / "p.yaml")
        words = ("--policy", str(path))
    household.home.write_text("not a directory")
    # Nobody, not even root, can make a directory there.
    script = (
        "import sys,tempfile;tempfile.tempdir='/proc/1';"
        "from subluminal.cli.main import main;sys.exit(main())"
    )
    shim = household.start(sub=[sys.executable, "-c", script], words=words).ready()
    assert [shim.code("echo"), shim.code("echo")] == [code, code]
    assert shim.code("rm") == code, "no counters, so no rules"
    shim.close()
    assert shim.wait() == 0
    assert b"nothing is recorded" in shim.err
    household.wait_empty()
