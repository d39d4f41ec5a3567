"""A run shared by shims has one budget, one sequence and one end, even if some are killed."""

import os
import signal
import sys

import pytest
from tests.processes import deputy_of, descendants
from tests.requirements import requirement
from tests.shim.household import budget, deny, policy, wait_until

from subluminal.state.run_state import RunState

SHIMS = 8


def start_all(household, count=SHIMS, **options):
    """Starts several shims and waits until each has entered its run."""
    shims = [shim.ready() for shim in [household.start(**options) for _ in range(count)]]
    wait_until(lambda: len(household.journals()) == len(household.clients), "every shim's journal")
    wait_until(
        lambda: len(household.events("shim_health")) >= len(household.clients), "every shim's word"
    )
    return shims


def leave(*shims):
    for shim in shims:
        shim.close()
    for shim in shims:
        shim.wait()


@requirement("001-7.3:whole-run")
@requirement("1.5:seq", "0.3:call-id-unique", "0.3:call-id-global")
def test_eight_shims_race_one_budget(household):
    """Exactly as many calls pass as the budget has, and the run's sequence has no gap."""
    household.write_policy(policy(budget(1000)))
    shims = start_all(household)
    asked = {shim: [shim.ask("echo", {"n": n}) for n in range(150)] for shim in shims}
    codes = [
        shim.answer(each).get("error", {}).get("code", 0) for shim in shims for each in asked[shim]
    ]
    assert codes.count(0) == 1000
    assert codes.count(-32081) == SHIMS * 150 - 1000
    assert len(household.executed()) == 1000
    leave(*shims)
    starts = household.events("tool_call_start")
    seqs = [event["call"]["seq"] for event in starts]
    # On a busy machine a shim may wait 50 ms for the lock in vain: refused, and without a number.
    counted = SHIMS * 150 - seqs.count(0)
    assert sorted(seq for seq in seqs if seq) == list(range(1, counted + 1))
    assert len({event["call"]["call_id"] for event in starts}) == len(starts) == SHIMS * 150
    assert len(household.events("run_start")) == 1
    assert len(household.events("run_end")) == 1
    summary = household.run_end()["summary"]
    assert (summary["calls_total"], summary["calls_allowed"]) == (counted, 1000)
    assert summary["calls_blocked"] == counted - 1000


@requirement("001-16I:crash")
def test_killed_shims_do_not_stop_the_others(household):
    """The lock of a killed shim is free; what it had counted stays counted."""
    household.write_policy(policy(budget(1000)))
    shims = start_all(household, 4)
    for shim in shims[:2]:
        shim.ask("hang")
    wait_until(lambda: len(household.executed()) == 2, "both calls to be in flight")
    asked = [[shim.ask("echo", {"n": n}) for n in range(300)] for shim in shims]
    for victim in shims[:2]:
        victim.kill()
    for shim, ids in zip(shims[2:], asked[2:], strict=True):
        for message_id in ids:
            shim.answer(message_id)
    leave(*shims[2:])
    for victim in shims[:2]:
        victim.wait()
    household.wait_empty()
    seqs = [event["call"]["seq"] for event in household.events("tool_call_start")]
    assert len(seqs) == len(set(seqs))
    assert len(household.executed()) <= 1000
    assert household.status() == "FAILED"
    assert household.run_end()["summary"]["calls_lost"] >= 2


@pytest.mark.parametrize(("on_error", "code"), [("BLOCK", -32081), ("ALLOW", 0)])
def test_a_stopped_process_with_the_lock_does_not_freeze_the_others(household, on_error, code):
    """The wait is bounded: 50 ms, then decision_on_error. A new shim can start meanwhile."""
    household.write_policy(policy(deny("rm"), on_error=on_error))
    shim = household.start().ready()
    assert shim.code("echo") == 0
    state = RunState.open(str(household.home / "state"), "run-1")
    with state.locked():
        answer = shim.call("echo")
        assert answer.get("error", {}).get("code", 0) == code
        late = household.start().ready()
        assert late.code("echo") == code
    assert shim.code("echo") == 0
    assert wait_until(lambda: late.code("echo") == 0, "the lock to be free")
    assert shim.code("rm") == late.code("rm") == -32081
    leave(shim, late)
    state.close()
    assert household.status() == "SUCCEEDED"
    assert len(household.events("run_end")) == 1
    reasons = [
        event["decision"]["explain"]["reason_code"]
        for event in household.events("tool_call_decision")
    ]
    assert reasons.count("EVALUATION_ERROR") >= 2
    # What was refused or passed without the lock is counted once it is free again.
    summary = household.run_end()["summary"]
    assert summary["calls_total"] == len(reasons)
    assert summary["errors_total"] == sum(status != "OK" for status, _ in household.ends())


def test_leaving_while_the_lock_is_held_leaves_the_end_to_the_holder(household):
    shim = household.start().ready()
    state = RunState.open(str(household.home / "state"), "run-1")
    with state.locked():
        leave(shim)
    assert household.events("run_end") == []
    other = household.start().ready()
    leave(other)
    assert household.status() == "SUCCEEDED"
    state.close()


def test_a_stopped_shim_is_not_in_the_way(household):
    """SIGSTOP at any moment: the others go on, and the run ends when it is killed."""
    household.write_policy(policy(budget(1000)))
    stopped, other = start_all(household, 2)
    stopped.ask("hang")
    wait_until(household.executed, "the call to arrive")
    stopped.kill(signal.SIGSTOP)
    for n in range(100):
        assert other.code("echo", {"n": n}) == 0
    leave(other)
    assert household.events("run_end") == [], "one shim is still there"
    stopped.kill(signal.SIGKILL)
    household.wait_event("run_end")
    assert household.status() == "FAILED"
    household.wait_empty()


def test_the_last_shim_out_ends_the_run_and_a_later_one_reopens_it(household):
    first, second = start_all(household, 2)
    leave(first)
    assert household.events("run_end") == []
    leave(second)
    assert len(household.events("run_end")) == 1
    again = household.start().ready()
    assert again.code("echo") == 0
    leave(again)
    assert len(household.events("run_start")) == 1
    assert len(household.events("run_end")) == 2
    assert household.run_end()["summary"]["calls_total"] == 1


def test_a_killed_shim_makes_a_run_failed_even_if_another_ended_it(household):
    killed, other = start_all(household, 2)
    killed.ask("hang")
    wait_until(household.executed, "the call to arrive")
    warden, deputy = household.warden_of(killed), deputy_of(killed.pid)
    killed.kill(signal.SIGSTOP)
    os.kill(warden, signal.SIGSTOP)
    os.kill(deputy, signal.SIGKILL)  # it would let the warden go on
    killed.kill(signal.SIGKILL)
    killed.process.wait(10)
    leave(other)
    assert household.status() == "SUCCEEDED", "nobody has noticed yet"
    os.kill(warden, signal.SIGCONT)
    wait_until(lambda: household.status() == "FAILED", "the warden's last words")
    household.wait_empty()


@requirement("001-7.3:whole-run")
def test_termination_reaches_every_shim_and_their_restarts(household):
    """The shim that refuses stays alive: clients respawn servers that die (shared-runs)."""
    household.write_policy(policy(budget(3, "TERMINATE_RUN")))
    one, two = start_all(household, 2)
    assert [one.code("echo", {"n": n}) for n in range(3)] == [0, 0, 0]
    assert two.code("echo") == -32084
    assert one.code("echo") == -32084
    assert one.code("echo") == -32084, "still there, still refusing"
    leave(one, two)
    again = household.start().ready()
    assert again.code("echo") == -32084
    data = again.call("echo")["error"]["data"]["subluminal"]
    assert (data["action"], data["reason_code"]) == ("TERMINATE_RUN", "RUN_TERMINATED")
    leave(again)
    assert household.status() == "TERMINATED"
    assert len(household.executed()) == 3


def test_termination_wins_over_a_killed_shim(household):
    household.write_policy(policy(budget(0, "TERMINATE_RUN")))
    shim = household.start().ready()
    assert shim.code("echo") == -32084
    shim.kill()
    household.wait_event("run_end")
    assert household.status() == "TERMINATED"
    household.wait_empty()


# Which run it is


@requirement("0.3:run-id-unique", "0.3:run-id-sortable")
def test_shims_of_one_client_are_one_run(household):
    """No SUB_RUN_ID: the client's process names the run; another client's is another."""
    one, two = start_all(household, 2, run=None)
    via = (sys.executable, "-I", "-S", "-c", "import subprocess,sys;subprocess.call(sys.argv[1:])")
    other = household.start(run=None, via=via).ready()
    leave(one, two, other)
    runs = {event["run_id"] for event in household.events("run_start")}
    assert len(runs) == 2
    assert all(run[14] == "7" and len(run) == 36 for run in runs), "UUIDv7, so they sort"
    per_run = sorted(
        len({e["source"]["shim_id"] for e in household.events(run=run)}) for run in runs
    )
    assert per_run == [1, 2]


def test_claude_s_session_names_the_run(household):
    shims = start_all(household, 2, run=None, CLAUDE_CODE_SESSION_ID="session-1", CLAUDECODE="1")
    leave(*shims)
    assert {event["run_id"] for event in household.events()} == {"session-1"}
    assert {event["client"] for event in household.events()} == {"claude"}


def test_sub_run_id_wins_over_every_session(household):
    shim = household.start(CLAUDE_CODE_SESSION_ID="session-1").ready()
    assert shim.code("echo", meta={"x-codex-turn-metadata": {"session_id": "s"}}) == 0
    leave(shim)
    assert {event["run_id"] for event in household.events()} == {"run-1"}


CODEX = "codex-mcp-client"


def session_of(name):
    return {"x-codex-turn-metadata": {"session_id": name}}


def test_codex_sessions_through_one_shim_are_runs_of_their_own(household):
    household.write_policy(policy(budget(2)))
    shim = household.start(run=None).ready(CODEX)
    assert household.events() == [], "no call, no session, no run"

    def code(session):
        return shim.code("echo", meta=session_of(session))

    assert [code("one"), code("one"), code("one"), code("two")] == [0, 0, -32081, 0]
    leave(shim)
    household.wait_empty()
    runs = {event["run_id"] for event in household.events("run_start")}
    assert runs == {"one", "two"}
    assert [household.run_end(run)["summary"]["calls_total"] for run in ("one", "two")] == [3, 1]
    for run in runs:
        states = [e["health"]["state"] for e in household.events("shim_health", run)]
        assert states == ["spawned", "exited"], "each run knows of its server"
    assert {event["client"] for event in household.events()} == {"codex"}


@pytest.mark.parametrize("client", [None, "claude-code", "codex", "Codex MCP Client", "mine"])
def test_a_session_id_of_a_client_that_is_not_codex_names_no_run(household, client):
    """Else any client could leave its run, and with it the run's budgets."""
    household.write_policy(policy(budget(2)))
    shim = household.start(run=None).ready(client)
    codes = [shim.code("echo", meta=session_of(f"s{n}")) for n in range(3)]
    assert codes == [0, 0, -32081]
    leave(shim)
    assert len({event["run_id"] for event in household.events()}) == 1
    assert {event["run_id"] for event in household.events()}.isdisjoint({"s0", "s1", "s2"})


def test_a_start_that_fails_before_the_client_speaks_is_recorded_too(household):
    shim = household.start(run=None, upstream=["no-such-server"])
    assert shim.wait() == 127
    assert [e["run"]["status"] for e in household.events("run_end")] == ["FAILED"]


INTRODUCED = {
    "claude-code": "claude",
    CODEX: "codex",
    "gemini-cli-mcp-client": "gemini",
    "gemini-cli-mcp-client-files": "gemini",
    "opencode": "opencode",
    "copilot-cli": "copilot",
    "github-copilot-developer": "copilot",
    "cursor-vscode": "cursor",
    "Visual Studio Code": "vscode",
    "Visual Studio Code - Insiders": "vscode",
    "my-agent": "custom",
}


@pytest.mark.parametrize(("name", "client"), INTRODUCED.items())
def test_a_client_is_known_by_its_introduction(household, name, client):
    """In every event, and in what a policy selects."""
    text = policy(deny("rm")).replace("selectors: {}", f"selectors: {{client: [{client}]}}")
    household.write_policy(text)
    shim = household.start(run=None).ready(name)
    assert shim.code("rm") == -32081
    leave(shim)
    assert {event["client"] for event in household.events()} == {client}


def test_a_stateless_client_is_known_by_its_first_request(household):
    """MCP 2026-07-28: no initialize, and the client's name in every `_meta`."""
    shim = household.start(run=None)
    info = {"name": "copilot-cli", "version": "1"}
    assert shim.code("echo", meta={"io.modelcontextprotocol/clientInfo": info}) == 0
    leave(shim)
    assert {event["client"] for event in household.events()} == {"copilot"}


@pytest.mark.parametrize(
    ("env", "name", "client"),
    [
        ({"SUB_CLIENT": "headless"}, "cursor-vscode", "headless"),
        ({"SUB_CLIENT": "gemini"}, None, "gemini"),
        ({"SUB_CLIENT": "zed"}, "cursor-vscode", "custom"),
        ({"GEMINI_CLI": "1"}, None, "gemini"),
        ({"GEMINI_CLI": "1"}, "qwen", "gemini"),
        ({"GEMINI_CLI": "1"}, "opencode", "opencode"),
        ({}, None, "unknown"),
    ],
    ids=str,
)
def test_what_a_person_says_wins_over_the_introduction_and_that_over_marks(
    household, env, name, client
):
    shim = household.start(run=None, **env).ready(name)
    assert shim.code("echo") == 0
    leave(shim)
    assert {event["client"] for event in household.events()} == {client}


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":[{"clientInfo":1}]}',
        b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"clientInfo":{"name":7}}}',
        b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"clientInfo":"codex-mcp-client"}}',
        b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"_meta":3,"clientInfo":null}}',
        b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"clientInfo":{"name":"\\ud800"}}}',
    ],
    ids=str,
)
def test_an_introduction_that_cannot_be_read_names_nobody(household, line):
    shim = household.start(run=None)
    shim.write(line + b"\n")
    assert shim.code("echo", meta=session_of("s")) == 0
    leave(shim)
    assert {event["client"] for event in household.events()} <= {"unknown", "custom"}
    assert household.events(run="s") == []


def test_more_sessions_than_are_kept_open(household):
    """The oldest idle run is left; a call that comes to it later reopens it."""
    shim = household.start(run=None).ready(CODEX)
    for n in range(70):
        assert shim.code("echo", meta=session_of(f"s{n}")) == 0
    open_files = len(os.listdir(f"/proc/{shim.pid}/fd"))
    assert open_files < 64 * 4 + 40
    assert shim.code("echo", meta=session_of("s0")) == 0
    leave(shim)
    assert household.run_end("s0")["summary"]["calls_total"] == 2
    household.wait_empty()


def _shim_pid(household, client):
    """The client is a process between us and the shim."""
    return next(p.pid for p in descendants(client.pid) if p.parent == client.pid)


@requirement("5:read", "1.3.1:context-sent")
def test_identity_of_the_environment_is_stamped_on_every_event(household):
    shim = household.start(
        SUB_AGENT_ID="fixer",
        SUB_ENV="ci",
        SUB_CLIENT="headless",
        SUB_PRINCIPAL="ann",
        SUB_WORKLOAD='{"repo":"acme/x","branch":"main"}',
    ).ready()
    assert shim.code("echo") == 0
    shim.kill()
    household.wait_event("run_end")
    household.wait_empty()
    assert len(household.events()) >= 6
    for event in household.events():
        assert (event["agent_id"], event["env"], event["client"]) == ("fixer", "ci", "headless")
        assert event["principal"] == "ann"
        assert event["workload"] == {"repo": "acme/x", "branch": "main"}
        assert event["run_id"] == "run-1"
