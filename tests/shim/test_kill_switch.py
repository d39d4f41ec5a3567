"""The kill switch, end to end: every shim refuses from its next call on."""

import json
import os
import subprocess
import threading
import time

import pytest
from tests.requirements import requirement
from tests.shim.household import SUB, budget, policy, wait_until
from tests.shim.test_shared_runs import leave, start_all

BLOCKED, ENDED = -32081, -32084


def said(answer):
    data = answer["error"]["data"]["subluminal"]
    return data["action"], data["reason_code"]


def switches(household):
    return [
        (event["run_id"], event["switch"]["state"], event["switch"]["scope"])
        for event in household.events("kill_switch")
    ]


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (["run-1"], ("TERMINATE_RUN", "RUN_TERMINATED")),
        (["--agent", "fixer"], ("TERMINATE_RUN", "KILL_SWITCH")),
        (["--tool", "echo/echo"], ("BLOCK", "KILL_SWITCH")),
        (["--tool", "echo/*"], ("BLOCK", "KILL_SWITCH")),
        (["--tool", "*/echo"], ("BLOCK", "KILL_SWITCH")),
        (["--all"], ("TERMINATE_RUN", "KILL_SWITCH")),
    ],
    ids=" ".join,
)
def test_a_stop_holds_from_the_next_call_until_it_is_lifted(household, person, words, answer):
    """Without a policy or a daemon, the answer and the record say who stopped it and why."""
    shims = [household.start(SUB_AGENT_ID="fixer").ready() for _ in range(2)]
    assert [shim.code() for shim in shims] == [0, 0]
    person("kill", *words, "--reason", "it deletes things")
    for shim in shims:
        refused = shim.call()
        assert said(refused) == answer
        assert "it deletes things" in refused["error"]["message"]
    person("revive", *words, "--reason", "mended")
    assert [shim.code() for shim in shims] == [0, 0]
    leave(*shims)
    told = household.events("kill_switch")
    assert [event["switch"]["state"] for event in told] == ["killed", "revived"]
    assert [event["switch"]["reason"] for event in told] == ["it deletes things", "mended"]
    assert all(event["run_id"] == "run-1" and event["switch"]["by"] for event in told)
    assert household.status() == "SUCCEEDED"


@requirement("kernel:env-switch")
def test_the_environment_of_a_shim_can_pull_the_switch(household):
    """Its own environment, and nobody else's: another shim of the run goes on."""
    stopped = household.start(SUB_KILL_SWITCH="yes").ready()
    other = household.start(SUB_KILL_SWITCH="no").ready()
    assert said(stopped.call()) == ("TERMINATE_RUN", "KILL_SWITCH")
    assert other.code() == 0
    leave(stopped, other)


@pytest.mark.parametrize(
    "words", [["run-2"], ["--agent", "other"], ["--tool", "echo/other"], ["--tool", "other/echo"]]
)
def test_a_stop_of_something_else_does_not_hold(household, person, words):
    other = household.start(run="run-2").ready()
    shim = household.start(SUB_AGENT_ID="fixer").ready()
    assert other.code() == 0
    person("kill", *words)
    assert shim.code() == 0
    leave(shim, other)


def test_a_stop_survives_restarts_and_names_the_runs_end(household, person):
    shim = household.start().ready()
    assert shim.code() == 0
    person("kill", "run-1")
    assert shim.code() == ENDED
    leave(shim)
    assert household.status() == "TERMINATED"
    again = household.start().ready()
    assert again.code() == ENDED
    leave(again)
    assert len(household.executed()) == 1
    listed = json.loads(person("kill", "--list", "--json"))
    assert (listed["scope"], listed["target"]) == ("run", "run-1")


def test_what_cannot_be_read_with_certainty_does_not_pass_a_stop(household, person):
    """Without a policy an ambiguous message is forwarded, but not in a stopped run."""
    shim = household.start().ready()
    line = b'{"jsonrpc":"2.0","id":90,"method":"tools/call","method":"tools/call","params":{}}\n'
    person("kill", "--all")
    shim.write(line)
    assert shim.answer(90)["error"]["code"] == ENDED
    leave(shim)
    assert household.executed() == []


def test_a_stopped_run_whose_shim_dies_is_terminated(household, person):
    """Its warden writes the end, and knows of the stop."""
    shim = household.start().ready()
    assert shim.code() == 0
    person("kill", "--agent", "unknown")
    shim.kill()
    shim.wait()
    household.wait_empty()
    assert household.status() == "TERMINATED"


def test_everything_can_be_stopped_while_nothing_runs(household, person):
    person("kill", "--all", "--reason", "holiday")
    shim = household.start().ready()
    assert shim.code() == ENDED
    person("revive", "--all")
    assert shim.code() == 0
    leave(shim)
    assert switches(household) == [
        ("operator", "killed", "all"),
        ("run-1", "revived", "all"),
    ]
    assert household.status("operator") == "SUCCEEDED", "nothing goes on there"


def test_a_stop_holds_while_the_run_cannot_be_locked_or_a_rule_would_fail_open(household, person):
    household.write_policy(policy(on_error="ALLOW"))
    shim = household.start().ready()
    shim.kill(19)  # SIGSTOP: a stopped shim hears of it when it goes on
    person("kill", "--all")
    asked = shim.ask("echo")
    shim.kill(18)
    assert shim.answer(asked)["error"]["code"] == ENDED
    leave(shim)


def test_no_call_passes_after_the_acknowledged_time(household, person):
    """Killed in the middle of a burst from several shims."""
    shims = start_all(household, 4)
    acknowledged = threading.Event()

    def burst(shim):
        rounds_left = 5
        while rounds_left:
            rounds_left -= acknowledged.is_set()
            for each in [shim.ask("echo") for _ in range(10)]:
                shim.answer(each)

    threads = [threading.Thread(target=burst, args=(shim,)) for shim in shims]
    for thread in threads:
        thread.start()
    wait_until(lambda: len(household.executed()) > 200, "a burst")
    person("kill", "run-1")
    acknowledged_ms = time.time_ns() // 1_000_000
    acknowledged.set()
    for thread in threads:
        thread.join()
    leave(*shims)
    late = decided_after(household, acknowledged_ms)
    assert late
    assert {event["decision"]["action"] for event in late} == {"TERMINATE_RUN"}
    allowed = [
        event
        for event in household.events("tool_call_decision")
        if event["decision"]["action"] == "ALLOW"
    ]
    assert len(household.executed()) <= len(allowed)
    assert household.status() == "TERMINATED"


def decided_after(household, wall_ms):
    def at_ms(event):
        seconds, _, millis = event["ts"].rstrip("Z").partition(".")
        parsed = time.strptime(seconds + "UTC", "%Y-%m-%dT%H:%M:%S%Z")
        return (int(time.mktime(parsed)) - time.timezone) * 1000 + int(millis)

    return [event for event in household.events("tool_call_decision") if at_ms(event) > wall_ms]


def test_a_rule_that_ends_a_run_ends_it_for_all_its_shims(household):
    """TERMINATE_RUN of one shim is every other shim's answer too, also after a restart."""
    household.write_policy(policy(budget(3, "TERMINATE_RUN")))
    first, second, third = start_all(household, 3)
    assert [first.code() for _ in range(4)] == [0, 0, 0, ENDED]
    refused = second.call()
    assert said(refused) == ("TERMINATE_RUN", "RUN_TERMINATED")
    assert third.code("anything else") == ENDED
    leave(first, second, third)
    late = household.start().ready()
    assert late.code() == ENDED
    leave(late)
    assert household.status() == "TERMINATED"
    assert len(household.executed()) == 3


def test_a_run_that_a_rule_ended_is_not_revived(household, person):
    household.write_policy(policy(budget(0, "TERMINATE_RUN")))
    shim = household.start().ready()
    assert shim.code() == ENDED
    assert "is not stopped" in person("revive", "run-1", code=2)
    assert shim.code() == ENDED
    leave(shim)


@pytest.mark.parametrize("damage", [b"", b"{}", b"0" * 64 + b"\n{}"])
def test_a_stop_that_cannot_be_believed_stops_what_it_is_called_after(household, person, damage):
    shim, other = household.start().ready(), household.start(run="run-2").ready()
    shim.call()
    person("kill", "run-1")
    (household.home / "state" / "kill" / "run-run-1").write_bytes(damage)
    person("kill", "--agent", "nobody")  # moves the number, so that all look again
    refused = shim.call()["error"]
    assert refused["code"] == ENDED
    assert "cannot be trusted" in refused["message"]
    assert other.code() == 0
    person("revive", "run-1")
    assert shim.code() == 0
    leave(shim, other)


def test_stops_that_cannot_be_read_stop_everything(household, person):
    shim = household.start().ready()
    assert shim.code() == 0
    directory = household.home / "state" / "kill"
    (directory / "generation").unlink()
    directory.rmdir()
    directory.write_text("in the way")
    wait_until(lambda: shim.code() == ENDED, "the shim to notice")
    directory.unlink()
    wait_until(lambda: shim.code() == 0, "the shim to notice")
    leave(shim)


def test_a_removed_generation_is_noticed(household, person):
    """Removing the file that all processes watch hides a stop only for a moment."""
    shim = household.start().ready()
    assert shim.code() == 0
    (household.home / "state" / "kill" / "generation").unlink()
    person("kill", "--all")
    wait_until(lambda: shim.code() == ENDED, "the shim to see the stop")
    leave(shim)


def test_an_unknown_run_is_an_error_with_a_suggestion(household, person):
    shim = household.start(run="0198c0de-fixer").ready()
    shim.call()
    assert "did you mean `0198c0de-fixer`" in person("kill", "0198c0de-fixxer", code=2)
    assert "give exactly one of" in person("kill", code=2)
    assert "is not a tool" in person("kill", "--tool", "echo", code=2)
    person("kill", "0198c0de")
    assert shim.code() == ENDED
    leave(shim)


def test_an_agent_may_stop_itself_and_not_start_again(household, person):
    shim = household.start().ready()
    shim.call()
    person("kill", "run-1", SUB_RUN_ID="run-1", CLAUDECODE="1")
    assert shim.code() == ENDED
    assert "is for a person" in person("revive", "run-1", code=2, CLAUDECODE="1")
    leave(shim)


def test_sub_run_says_that_the_run_was_stopped(household, person):
    """The agent's exit code does not make a stopped run a success."""
    ready = household.tmp_path / "ready"
    agent = ["sh", "-c", f"touch {ready}; read line; exit 0"]
    process = subprocess.Popen(
        [*SUB, "run", "--agent-id", "fixer", "--", *agent],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=household.env(),
        cwd=household.cwd,
    )
    wait_until(ready.exists, "the agent")
    person("kill", "--agent", "fixer")
    process.communicate(b"\n", timeout=20)
    (end,) = household.events("run_end")
    assert end["run"]["status"] == "TERMINATED"
    assert os.path.exists(household.home / "state" / "kill" / "agent-fixer")


def test_a_hard_stop_ends_servers_and_shims_stay_to_refuse(household, person):
    """Their trees are gone, no orphan is left, and every pending call is answered."""
    shim = household.start("daemon").ready()
    hanging = shim.ask("hang")
    shim.swallowed()
    wait_until(lambda: household.executed(), "the call to hang")
    person("kill", "run-1", "--hard", "--reason", "runaway")
    # The servers are gone now; their wardens may need a moment more.
    wait_until(lambda: household.alive() == [shim.pid], "the shim alone")
    assert "runaway" in shim.answer(hanging)["error"]["message"]
    assert said(shim.call()) == ("TERMINATE_RUN", "RUN_TERMINATED")
    refused = shim.answer(shim.send("tools/list"))["error"]
    assert "was stopped" in refused["message"]
    person("revive", "run-1")
    assert said(shim.call()) == ("BLOCK", "KILL_SWITCH"), "there is no server to ask"
    shim.close()
    shim.wait()
    household.wait_empty()
    again = household.start().ready()
    assert again.code() == 0
    leave(again)


def test_a_server_that_is_stopped_hard_is_not_started_again(household, person):
    person("kill", "--all", "--hard")
    shim = household.start()
    assert shim.wait() == 1
    assert b"sub kill" in shim.err
    assert household.executed() == []
    household.wait_empty()
    assert household.status() == "TERMINATED"
    person("revive", "--all")
    again = household.start().ready()
    assert again.code() == 0
    leave(again)


def test_a_hard_stop_of_a_tool_ends_its_server_only(household, person):
    shim = household.start().ready()
    person("kill", "--tool", "other/x", "--hard")
    assert shim.code() == 0
    person("kill", "--tool", "echo/rm", "--hard")
    assert said(shim.call("rm")) == ("BLOCK", "KILL_SWITCH")
    wait_until(lambda: set(household.alive()) == {shim.pid}, "the server's end")
    leave(shim)


def test_a_server_that_other_runs_need_is_left_to_them(household, person):
    """One server process, two sessions of a client: stopping one run must not end the other's."""
    shim = household.start(run=None).ready("codex-mcp-client")

    def session(name):
        return {"x-codex-turn-metadata": {"session_id": name}}

    assert [shim.code(meta=session(name)) for name in ("one", "two")] == [0, 0]
    warned = person("kill", "one", "--hard", code=1)
    assert "still run" in warned
    assert [shim.code(meta=session(name)) for name in ("one", "two")] == [ENDED, 0]
    leave(shim)


def test_a_stop_whose_run_was_tidied_away_can_be_lifted(household, person):
    """Tidying never removes a stop, because that would lift it."""
    shim = household.start().ready()
    assert shim.code() == 0
    person("kill", "run-1")
    leave(shim)
    (household.home / "state" / "runs" / "run-1").unlink()
    assert "revived run `run-1`" in person("revive", "run-")
    assert person("kill", "--list") == ""


@pytest.mark.parametrize("option", ["--agent", "--tool", "--reason"])
@pytest.mark.parametrize(
    ("word", "message"),
    [(b"a/\xff", "not UTF-8"), ("a/" + "b" * 5_000, "at most 4096 characters")],
    ids=["not text", "endless"],
)
def test_a_word_that_cannot_be_recorded_stops_nothing(household, person, option, word, message):
    """Every refusal and every record repeats these words."""
    words = [option, word] if option != "--reason" else ["--all", option, word]
    assert message in person("kill", *words, code=2)
    assert person("kill", "--list") == ""


def test_a_key_that_cannot_be_used_is_told(household, person):
    (household.home / "state" / "seal.key").mkdir(parents=True)
    for words in (["kill", "--all"], ["revive", "--all"], ["approvals"], ["approve", "x"]):
        (household.home / "state" / "approvals").mkdir(exist_ok=True)
        told = person(*words, code=2)
        assert "the key of this home" in told
        assert "hint: check who owns it" in told
