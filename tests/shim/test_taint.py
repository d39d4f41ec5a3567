"""The level of a run over real shims: what one server brings, every other one meets."""

import json
import os
import subprocess

from tests.processes import wait_until
from tests.requirements import requirement
from tests.shim.household import SUB, WITHIN_S

from subluminal.contracts.vocabulary import Taint
from subluminal.state.run_state import RunState

POLICY = """\
policy_id: after-the-web
mode: guardrails
rules:
  - {rule_id: web, kind: taint, match: {server_name: {glob: [web]}}, effect: {taint: {lower_to: UNTRUSTED}}}
  - rule_id: ask
    kind: deny
    match: {server_name: {glob: [mail]}, taint: {below: TRUSTED}}
    effect: {reason_code: AFTER_WEB, message: this run has read the web, require: human}
"""


ALLOWS_ON_ERROR = "mode: guardrails\ndefaults: {decision_on_error: ALLOW}"


def sub(household, *words, code=0, **env):
    ran = subprocess.run(
        [*SUB, *words],
        env=household.env(**env),
        cwd=household.cwd,
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
        check=False,
    )
    assert ran.returncode == code, ran.stderr
    return ran.stdout + ran.stderr


def start(household, server, **env):
    return household.start(words=("--server", server), **env)


@requirement("taint:summary")
def test_what_one_shim_forwards_every_shim_meets(household):
    household.write_policy(POLICY)
    web, mail = (start(household, name).ready() for name in ("web", "mail"))
    assert mail.code() == 0
    assert web.code() == 0
    refused = mail.call("echo", {"to": "a"})["error"]
    assert refused["data"]["subluminal"]["reason_code"] == "HUMAN_REQUIRED"
    assert "UNTRUSTED since call 2 (web/echo)" in refused["message"]
    web.kill()
    mail.kill()
    again = start(household, "mail").ready()
    assert again.code("echo", {"to": "b"}) != 0
    shown = json.loads(sub(household, "taint", "show", "run-1", "--json"))
    assert shown == {"run_id": "run-1", "taint": "UNTRUSTED", "since_seq": 2, "source": "web/echo"}
    (asked, _) = household.events("approval_requested")
    assert asked["approval"]["message"].endswith("; UNTRUSTED since call 2 (web/echo)")


@requirement("taint:person")
def test_a_person_raises_the_level_for_the_shims_that_run(household):
    household.write_policy(POLICY)
    web, mail = (start(household, name).ready() for name in ("web", "mail"))
    assert web.code() == 0
    assert mail.code() != 0
    told = sub(household, "taint", "set", "run-1", "TRUSTED", code=2, SUB_RUN_ID="run-1")
    assert "person" in told
    told = sub(household, "taint", "set", "run-1", "TRUSTED", "--reason", "read it", SUB_RUN_ID="")
    assert (
        told == "run `run-1` is TRUSTED since call 2 (sub taint set: read it); it was UNTRUSTED\n"
    )
    assert mail.code() == 0
    assert web.code() == 0
    assert mail.code() != 0
    sub(household, "taint", "set", "run-1", "TRUSTED", SUB_RUN_ID="")
    sub(household, "taint", "set", "run-1", "UNTRUSTED", SUB_RUN_ID="run-1")  # anyone may lower
    changes = [each["taint"] for each in household.events("taint_changed")]
    assert sorted((each["by"], each["to"]) for each in changes) == [
        ("command", "TRUSTED"),
        ("command", "TRUSTED"),
        ("command", "UNTRUSTED"),
        ("rule", "UNTRUSTED"),
        ("rule", "UNTRUSTED"),
    ]


@requirement("taint:this-very-call")
def test_a_person_s_answer_is_for_this_very_call(household, person_at_terminal):
    """The level stays as it is: the next call needs an answer of its own."""
    household.write_policy(POLICY)
    web, mail = (start(household, name).ready() for name in ("web", "mail"))
    assert web.code() == 0
    assert mail.code("echo", {"to": "a"}) != 0
    (waiting,) = household.events("approval_requested")
    approval_id = waiting["approval"]["approval_id"]
    person_at_terminal("[y/N]", "y", "approve", approval_id, SUB_RUN_ID="")
    assert mail.code("echo", {"to": "b"}) != 0
    assert mail.code("echo", {"to": "a"}) == 0
    assert mail.code("echo", {"to": "a"}) != 0
    assert sub(household, "taint", "show", "run-1").startswith("run `run-1` is UNTRUSTED")


@requirement("taint:resources")
def test_a_resource_counts_before_it_is_asked_for(household):
    household.write_policy(POLICY)
    web, mail = (start(household, name).ready() for name in ("web", "mail"))
    web.answer(web.send("resources/list"))
    assert mail.code() == 0
    web.answer(web.send("resources/read", uri="a://b"))
    assert mail.code() != 0
    (changed,) = household.events("taint_changed")
    assert changed["taint"]["tool_name"] == "resources/read"


def test_a_prompt_before_the_policy_is_compiled_counts(household):
    household.write_policy(POLICY)
    web = start(household, "web")
    web.answer(web.send("prompts/get", name="p"))
    assert household.events("taint_changed"), "the prompt waited for the policy"
    mail = start(household, "mail").ready()
    assert web.code() == 0
    assert mail.code() != 0
    tools = {each["taint"]["tool_name"] for each in household.events("taint_changed")}
    assert tools == {"prompts/get"}


def test_a_resource_counts_as_soon_as_a_broken_policy_is_mended(household):
    """Until then every call is refused."""
    household.write_policy(POLICY.replace("kind: taint", "kind: tain"))
    web, mail = (start(household, name).ready() for name in ("web", "mail"))
    assert "result" in web.answer(web.send("resources/read", uri="a://b"))
    assert mail.code() != 0
    assert not household.events("taint_changed")
    household.write_policy(POLICY)
    household.wait_event("taint_changed")
    wait_until(lambda: web.code() == 0, "the policy")
    assert mail.code() != 0
    (changed,) = household.events("taint_changed")
    assert changed["taint"]["tool_name"] == "resources/read"


def cut_state(household):
    (path,) = (household.home / "state" / "runs").iterdir()
    os.truncate(path, 4_096)


@requirement("taint:no-state")
def test_a_resource_that_cannot_lower_the_run_is_refused(household):
    """The run's state was cut: whether the run is lowered or not, nobody could tell any more."""
    household.write_policy(POLICY.replace("mode: guardrails", ALLOWS_ON_ERROR))
    web = start(household, "web").ready()
    household.wait_event("run_start")
    cut_state(household)
    refused = web.answer(web.send("resources/read", uri="a://b"))
    assert "the level of the run cannot be lowered" in refused["error"]["message"]
    read = {"jsonrpc": "2.0", "id": 77, "method": "prompts/get", "params": {"name": "p"}}
    web.write(json.dumps([read]).encode() + b"\n")
    assert "the level of the run cannot be lowered" in web.answer(77)["error"]["message"]
    large = web.answer(web.send("resources/read", uri="a://b", more="x" * 2_000_000))
    assert "the level of the run cannot be lowered" in large["error"]["message"]
    assert "result" in web.answer(web.send("resources/list"))
    details = [each["health"].get("detail", "") for each in household.events("shim_health")]
    assert any(each.startswith("`resources/read` was refused: ") for each in details)
    decisions = household.events("tool_call_decision")
    assert [each["decision"]["action"] for each in decisions] == ["BLOCK", "BLOCK"]


def test_a_batch_with_a_resource_counts(household):
    household.write_policy(POLICY)
    web, mail = (start(household, name).ready() for name in ("web", "mail"))
    read = {"jsonrpc": "2.0", "id": 77, "method": "resources/read", "params": {"uri": "a://b"}}
    web.write(json.dumps([read]).encode() + b"\n")
    household.wait_event("taint_changed")
    assert mail.code() != 0


@requirement("taint:start")
def test_sub_taint_starts_the_run_low_and_a_bad_value_is_the_lowest(household):
    household.write_policy(POLICY)
    mail = start(household, "mail", SUB_TAINT="nonsense").ready()
    assert mail.code() != 0
    (started,) = household.events("run_start")
    assert started["run"]["taint"] == "UNTRUSTED"


@requirement("taint:shared")
def test_eight_shims_race_one_lowering(household):
    """One of them lowers the run; what is decided after it meets the level, in every shim."""
    household.write_policy(POLICY)
    shims = [start(household, "web" if number % 2 else "mail") for number in range(8)]
    for shim in shims:
        shim.ready()
    asked = [(shim, [shim.ask("echo", {"n": n}) for n in range(3)]) for shim in shims]
    for shim, ids in asked:
        for each in ids:
            shim.answer(each)
    (changed,) = household.events("taint_changed")
    starts = {each["call"]["call_id"]: each["call"] for each in household.events("tool_call_start")}
    decided = {
        starts[each["call"]["call_id"]]["seq"]: (
            starts[each["call"]["call_id"]]["server_name"],
            each["decision"]["taint"],
            each["decision"]["action"],
        )
        for each in household.events("tool_call_decision")
    }
    assert sorted(decided) == list(range(1, 25))
    lowered_at = changed["taint"]["seq"]
    assert decided[lowered_at] == ("web", "SYSTEM", "ALLOW")
    for seq, (server, taint, action) in decided.items():
        assert taint == ("UNTRUSTED" if seq > lowered_at else "SYSTEM")
        assert server == "mail" or seq >= lowered_at
        is_refused = server == "mail" and seq > lowered_at
        assert action == ("REJECT_WITH_HINT" if is_refused else "ALLOW")


@requirement("taint:never-rises", "taint:before-it-leaves")
def test_whenever_a_shim_is_killed_what_it_forwarded_has_lowered_the_run(household):
    """The server tells what it was sent."""
    household.hurry()
    household.write_policy(POLICY)
    forwarded = []
    for moment in range(12):
        run_id, log = f"run-{moment}", household.tmp_path / f"executed-{moment}"
        web = household.start(words=("--server", "web"), run=run_id, log=log).ready()
        household.wait_event("run_start", run_id=run_id)
        web.ask("echo")
        if moment < 11:
            for _ in range(moment * moment * 20):
                os.getppid()
        else:
            wait_until(lambda log=log: log.exists() and log.read_text(), "the call")
        web.kill()
        web.wait()
        household.wait_event("run_end", run_id=run_id)
        with RunState.open(str(household.home / "state"), run_id, create=False) as state:
            level = state.taint_state().level
        forwarded.append(bool(log.read_text()))
        assert level is Taint.UNTRUSTED or not forwarded[-1]
    assert forwarded[-1]
