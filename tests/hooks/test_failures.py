"""What a client is told when something is broken: never a crash that it takes for yes, never a hang.

The deadlines are the settings' smallest, so that the tests do not wait for long.
"""

import json
import os
import pathlib
import signal
import subprocess
import sys

import pytest
from tests.processes import wait_until
from tests.shim.household import deny, policy
from tests.shim.test_disks import fill, unmount

SOON = "[hooks]\ntimeout_ms = 1000\n"


def settings(household, text=SOON):
    household.home.mkdir(parents=True, exist_ok=True, mode=0o700)
    (household.home / "config.toml").write_text(text)


def is_refused(said):
    return said.json["hookSpecificOutput"]["permissionDecision"] == "deny"


def stopped_shim(agent):
    agent.before(call="first")
    (shim,) = agent.hook_shims()
    os.kill(shim, signal.SIGSTOP)
    return shim


@pytest.fixture
def go_on():
    stopped = []
    yield stopped.append
    for pid in stopped:
        os.kill(pid, signal.SIGCONT)


def test_a_stopped_hook_shim_blocks_where_there_is_a_policy(agent, household, go_on):
    settings(household)
    household.write_policy(policy(deny("rm")))
    go_on(stopped_shim(agent))
    said = agent.before(call="t2")
    assert is_refused(said)
    assert "did not answer within 1000 ms" in said.out
    assert agent.after(call="t2").is_nothing, "only what decides a call is refused"


def test_a_stopped_hook_shim_allows_where_there_is_no_policy(agent, household, go_on):
    settings(household)
    go_on(stopped_shim(agent))
    said = agent.before(call="t2")
    assert said.is_nothing
    assert "not recorded" in said.err


@pytest.mark.parametrize(("on_error", "has_policy"), [("block", False), ("allow", True)])
def test_on_error_decides(start, household, go_on, on_error, has_policy):
    settings(household)
    if has_policy:
        household.write_policy(policy(deny("rm")))
    agent = start(words=("--on-error", on_error))
    go_on(stopped_shim(agent))
    said = agent.before(call="t2")
    assert said.is_nothing == (on_error == "allow")


def test_what_a_stopped_hook_shim_was_asked_it_decides_when_it_goes_on(agent, household):
    settings(household)
    shim = stopped_shim(agent)
    assert agent.before(call="t2").is_nothing
    os.kill(shim, signal.SIGCONT)
    agent.stop()
    wait_until(
        lambda: len(household.events("tool_call_start")) == len(household.events("tool_call_end")),
        "every call to have its end",
    )


def test_a_killed_hook_shim_is_replaced(agent, household):
    agent.before(call="t1")
    (shim,) = agent.hook_shims()
    os.kill(shim, signal.SIGKILL)
    wait_until(lambda: shim not in household.alive(), "it to be dead")
    assert agent.before(call="t2").is_nothing
    assert len(agent.hook_shims()) == 1


@pytest.mark.parametrize(
    "text",
    [
        "",
        "garbage",
        "[]",
        "{",
        '{"session_id":"s1","hook_event_name":"PreToolUse","tool_name":"Bash","tool_name":"Read"}',
        '{"session_id":"s1","hook_event_name":"PreToolUse","tool_input":{"a":1,"a":2}}',
        '{"session_id":1,"hook_event_name":"PreToolUse","tool_name":7,"tool_input":[]}',
        "\udcff",
        '{"session_id":"s1","hook_event_name":"PreToolUse","tool_input":' + "[" * 2000 + "]" * 2000,
    ],
    ids=range(9),
)
def test_rubbish_is_refused_where_a_policy_enforces(agent, household, text):
    household.write_policy(policy(deny("rm")))
    said = agent.send(text)()
    assert is_refused(said), said
    assert "Traceback" not in said.err
    assert agent.before(call="t9").is_nothing


def test_rubbish_passes_where_nothing_enforces(agent):
    assert agent.send("garbage")().is_nothing
    assert agent.send("")().is_nothing


def test_an_event_of_a_future_version_is_nothing_to_us(agent, household):
    household.write_policy(policy(deny("rm")))
    assert agent.event("SomethingNew", anything=[1])().is_nothing
    assert not household.events("tool_call_start")


def test_a_response_of_20_megabytes(agent, household):
    agent.before(call="t1")
    assert agent.after(call="t1", response={"stdout": "x" * 20_000_000}).is_nothing
    agent.stop()
    (end,) = household.events("tool_call_end")
    assert end["status"] == "OK"
    assert end["bytes_out"] > 20_000_000


def test_arguments_too_large_to_inspect(agent, household):
    household.write_policy(policy(deny("rm")))
    args = {"content": "x" * 3_000_000}
    assert agent.before("Write", args).is_nothing
    assert agent.after("Write", args).is_nothing
    agent.stop()
    (event,) = household.events("tool_call_start")
    assert event["call"]["args_stream_hash"] == event["call"]["args_hash"]
    assert household.ends() == [("OK", None)]


def test_a_policy_that_does_not_compile_refuses(agent, household):
    household.write_policy("rules: 7\n")
    assert is_refused(agent.before())


FAULTY = str(pathlib.Path(__file__).with_name("faulty_sub.py"))


@pytest.mark.parametrize("where", ["front", "start", "session"])
@pytest.mark.parametrize("has_policy", [True, False])
def test_a_bug_of_ours_is_no_yes(start, household, where, has_policy):
    if has_policy:
        household.write_policy(policy(deny("rm")))
    agent = start(sub=[sys.executable, "-P", FAULTY, where])
    said = agent.before()
    assert said.is_nothing != has_policy
    assert "Traceback" not in said.err
    if where != "front":
        assert list((household.home / "reports").iterdir())
    wait_until(lambda: where == "session" or not agent.hook_shims(), "nothing to be left")


def test_an_alarm_at_the_last_moment_is_no_yes(start, household):
    settings(household)
    household.write_policy(policy(deny("rm")))
    said = start(sub=[sys.executable, "-P", FAULTY, "late"]).before("rm")
    assert is_refused(said)
    assert "Traceback" not in said.err


def test_a_compiler_that_is_missing_refuses(start, household):
    household.write_policy(policy(deny("rm")))
    broken = household.tmp_path / "broken"
    broken.mkdir()
    (broken / "sitecustomize.py").write_text(
        "import sys\nif 'compile_helper' in ' '.join(sys.orig_argv):\n    raise SystemExit(9)\n"
    )
    agent = start(PYTHONPATH=str(broken))
    assert is_refused(agent.before())


def test_a_compiler_that_hangs_refuses_in_time(start, household):
    settings(household)
    household.write_policy(policy(deny("rm")))
    broken = household.tmp_path / "broken"
    broken.mkdir()
    (broken / "sitecustomize.py").write_text(
        "import sys, time\nif 'compile_helper' in ' '.join(sys.orig_argv):\n    time.sleep(60)\n"
    )
    agent = start(PYTHONPATH=str(broken))
    assert is_refused(agent.before())
    agent.end()
    wait_until(lambda: not agent.hook_shims(), "nothing to be left")


@pytest.mark.skipif(sys.platform != "linux", reason="needs a small file system")
@pytest.mark.parametrize("is_full_before", [True, False])
def test_a_full_disk(agent, household, is_full_before):
    household.home.mkdir(parents=True)
    home = str(household.home)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m,mode=700", "tmpfs", home], check=True)
    try:
        household.write_policy(policy(deny("rm")))
        if not is_full_before:
            assert agent.before(call="t0").is_nothing
        fill(household.home)
        said = agent.before(call="t1")
        assert said.code == 0
        assert "Traceback" not in said.err
        assert is_refused(agent.before("rm", call="t2"))
        agent.end()
        wait_until(lambda: not agent.hook_shims(), "nothing to be left")
    finally:
        household.clean()
        unmount(home)


def test_a_home_that_is_read_only(start, household):
    """What is recorded goes to a temporary home; the policy stays in force."""
    household.write_policy(policy(deny("rm")))
    subprocess.run(["mount", "--bind", household.home, household.home], check=True)
    subprocess.run(["mount", "-o", "remount,bind,ro", household.home], check=True)
    try:
        agent = start(TMPDIR=str(household.tmp_path))
        assert agent.before(call="t1").is_nothing
        assert is_refused(agent.before("rm", call="t2"))
        assert len(agent.hook_shims()) == 1
        agent.end()
        wait_until(lambda: not agent.hook_shims(), "nothing to be left")
    finally:
        household.clean()
        unmount(household.home)


def test_broken_settings(agent, household):
    settings(household, "[hooks]\ntimeout_ms = 'soon'\n")
    household.write_policy(policy(deny("rm")))
    said = agent.before()
    assert is_refused(said)
    assert "timeout_ms" in said.out
    assert "Traceback" not in said.err
    assert not (household.home / "reports").exists(), "a person's mistake is not our bug"


def test_a_home_that_others_can_write_is_not_used(agent, household):
    household.home.mkdir(parents=True, mode=0o700)
    household.write_policy(policy(deny("rm")))
    household.home.chmod(0o777)
    said = agent.before()
    assert is_refused(said)
    assert "other users can write" in said.out
    assert not (household.home / "state").exists()


def test_a_wrong_command_line_refuses(agent):
    said = agent.send("{}", words=("--colour", "red"))()
    assert said.code == 2
    assert said.err.startswith("error: cannot read `--colour`")


def test_a_socket_of_nobody_is_replaced(agent, household):
    agent.before(call="t1")
    (shim,) = agent.hook_shims()
    os.kill(shim, signal.SIGKILL)
    wait_until(lambda: shim not in household.alive(), "it to be dead")
    (path,) = (household.home / "state" / "hooks").glob("*.sock")
    path.unlink()
    path.write_text("not a socket")
    assert agent.before(call="t2").is_nothing


def test_doctor_s_event_opens_no_run(agent, household):
    told = json.loads(agent.event("SubDoctor")().out)["subluminal"]
    assert told["home"] == str(household.home)
    assert not household.events()
