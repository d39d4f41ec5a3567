"""Approvals, end to end: a call is refused at once, a person answers, the retry finds the answer."""

import json
import os
import pathlib
import shutil

import pytest
from tests.shim.household import policy, wait_until
from tests.shim.test_shared_runs import SHIMS, leave, start_all

from subluminal.core.controls.approval_files import MAX_WAITING, ApprovalFiles, slot_of

ASK = (
    "  - {{rule_id: ask, kind: deny, enabled: true, severity: warn,"
    " match: {{tool_name: {{glob: [push]}}}},"
    " effect: {{action: BLOCK, reason_code: PUSH, message: pushing is for people,"
    " require: {require}{more}}}}}\n"
)
REJECTED, BLOCKED, ENDED = -32083, -32081, -32084


def asking(require="approval", more="", before="", after=""):
    text = policy().replace("rules: []\n", "rules:\n")
    return text + before + ASK.format(require=require, more=more) + after


def waiting(person, *words):
    return [json.loads(line) for line in person("approvals", "--json", *words).splitlines()]


def reasons(household):
    return [
        event["decision"]["explain"]["reason_code"]
        for event in household.events("tool_call_decision")
    ]


def problems(household):
    return [event["grant"]["problem"] for event in household.events("grant_refused")]


def answers_dir(household, run="run-1"):
    return household.home / "state" / "approvals" / run


def test_the_agent_is_told_which_approval_waits_but_not_how_to_approve(household, person):
    """The agent has a shell (local-is-not-trusted)."""
    household.write_policy(asking())
    shim = household.start().ready()
    message = shim.call("push")["error"]["message"]
    (row,) = waiting(person)
    assert message.endswith(
        "A person has been asked: tell your user, go on with other work, and retry the same call"
        f" with the same arguments once it is approved; this is approval {row['approval_id']}."
    )
    assert "sub approve" not in message


def test_the_hint_names_no_approval_if_the_request_cannot_be_stored(household):
    household.write_policy(asking())
    (household.home / "state").mkdir(exist_ok=True)
    (household.home / "state" / "approvals").write_text("in the way")
    error = household.start().ready().call("push")["error"]
    assert error["code"] == REJECTED
    assert "No approval was requested" in error["message"]
    assert household.events("approval_requested") == []


def test_a_call_waits_for_a_person_and_passes_once(household, person):
    """Refused at once; approved; passes exactly once; then approval must be requested again."""
    household.write_policy(asking())
    shim = household.start(SUB_AGENT_ID="fixer", SUB_ENV="prod", SUB_PRINCIPAL="kim").ready()
    refused = shim.call("push", {"to": "main"})["error"]
    assert refused["code"] == REJECTED
    said = refused["data"]["subluminal"]
    assert (said["reason_code"], said["rule_id"]) == ("APPROVAL_REQUIRED", "ask")

    (row,) = waiting(person)
    assert row["approval_id"] in refused["message"]
    told = {key: row[key] for key in ("run_id", "server_name", "tool_name", "args_preview")}
    assert told == {
        "run_id": "run-1",
        "server_name": "echo",
        "tool_name": "push",
        "args_preview": '{"to":"main"}',
    }
    assert (row["agent_id"], row["env"], row["principal"]) == ("fixer", "prod", "kim")
    assert (row["state"], row["rule_id"], row["layer"]) == ("pending", "ask", "user")
    assert row["args_hash"] == said["args_hash"]

    assert shim.code("push", {"to": "main"}) == REJECTED
    assert [each["approval_id"] for each in waiting(person)] == [row["approval_id"]]
    person("approve", row["approval_id"][:4], "--reason", "release")
    assert waiting(person) == []
    assert shim.code("push", {"to": "other"}) == REJECTED, "other arguments need their own"
    assert shim.code("push", {"to": "main"}) == 0
    assert shim.code("push", {"to": "main"}) == REJECTED
    pending = waiting(person)
    assert len(pending) == 2
    assert row["approval_id"] not in [each["approval_id"] for each in pending]
    leave(shim)

    asked = household.events("approval_requested")
    assert [event["call"]["args_hash"] for event in asked].count(said["args_hash"]) == 2
    (given,) = household.events("approval_decided")
    assert given["approval"]["answer"] == "approved"
    assert (given["approval"]["reason"], given["run_id"]) == ("release", "run-1")
    assert (given["agent_id"], given["env"]) == ("fixer", "prod")
    passed = [
        event["decision"]
        for event in household.events("tool_call_decision")
        if event["decision"]["action"] == "ALLOW"
    ]
    (decision,) = passed
    assert decision["explain"]["reason_code"] == "APPROVAL_GRANTED"
    assert decision["grant"] == {
        "grant_id": given["approval"]["grant_id"],
        "approver": given["approval"]["by"],
    }
    assert problems(household) == ["spent"]
    assert len(household.executed()) == 1


def test_a_no_blocks_with_the_persons_reason_until_they_change_their_mind(household, person):
    household.write_policy(asking())
    shim = household.start().ready()
    shim.call("push")
    (row,) = waiting(person)
    person("deny", row["approval_id"], "--reason", "not on a Friday")
    refused = shim.call("push")["error"]
    assert refused["code"] == BLOCKED
    assert "not on a Friday" in refused["message"]
    assert refused["data"]["subluminal"]["reason_code"] == "APPROVAL_DENIED"
    assert shim.code("push") == BLOCKED
    assert waiting(person) == []
    assert [each["state"] for each in waiting(person, "--all")] == ["denied"]
    person("approve", row["approval_id"])
    assert shim.code("push") == 0
    leave(shim)


def test_a_no_takes_a_grant_back(household, person):
    household.write_policy(asking())
    shim = household.start().ready()
    shim.call("push")
    (row,) = waiting(person)
    person("approve", row["approval_id"])
    person("deny", row["approval_id"])
    assert shim.code("push") == BLOCKED
    leave(shim)


def test_eight_shims_race_for_one_use(household, person):
    """A grant with one use is used once, even in a race; one with three uses, three times."""
    household.write_policy(asking())
    shims = start_all(household)
    for uses in (1, 3):
        shims[0].call("push", {"n": uses})
        (row,) = waiting(person)
        person("approve", row["approval_id"], "--uses", str(uses))
        asked = [(shim, shim.ask("push", {"n": uses})) for _ in range(4) for shim in shims]
        codes = [shim.answer(each).get("error", {}).get("code", 0) for shim, each in asked]
        assert codes.count(0) == uses
        assert codes.count(REJECTED) == 4 * SHIMS - uses
        for left in waiting(person):
            person("deny", left["approval_id"])
    assert len(household.executed()) == 4
    leave(*shims)
    passed = [event for event in reasons(household) if event == "APPROVAL_GRANTED"]
    assert len(passed) == 4
    seqs = [event["call"]["seq"] for event in household.events("tool_call_start")]
    assert sorted(seqs) == list(range(1, len(seqs) + 1))


def test_one_request_however_many_shims_ask(household, person):
    household.write_policy(asking())
    shims = start_all(household)
    for each in [(shim, shim.ask("push")) for _ in range(3) for shim in shims]:
        each[0].answer(each[1])
    assert len(waiting(person)) == 1
    leave(*shims)
    assert len(household.events("approval_requested")) == 1


def test_a_grant_survives_restarts_of_everything(household, person):
    household.write_policy(asking())
    shim = household.start().ready()
    shim.call("push")
    (row,) = waiting(person)
    assert not row["run_is_over"]
    leave(shim)
    (row,) = waiting(person)
    assert row["run_is_over"]
    assert "run ended" in person("approvals")
    person("approve", row["approval_id"])
    again = household.start().ready()
    assert again.code("push") == 0
    assert again.code("push") == REJECTED
    leave(again)


def test_an_expired_grant_is_refused_and_recorded(household, person):
    household.write_policy(asking(more=", expires_ms: 1"))
    shim = household.start().ready()
    shim.call("push")
    (row,) = waiting(person)
    assert "at most" in person("approve", row["approval_id"], "--ttl", "1h", code=2)
    person("approve", row["approval_id"])
    assert shim.code("push") == REJECTED
    assert [each["approval_id"] for each in waiting(person)] != [row["approval_id"]]
    leave(shim)
    assert problems(household) == ["expired"]
    assert len(household.executed()) == 0


def grant(household, person, shim, args=None):
    """Asks, approves, and gives the file of the grant."""
    before = set(answers_dir(household).glob("*.answer"))
    shim.call("push", args)
    (row,) = waiting(person)
    person("approve", row["approval_id"])
    (made,) = set(answers_dir(household).glob("*.answer")) - before
    return made


def test_an_edited_grant_is_refused_and_recorded(household, person):
    household.write_policy(asking())
    shim = household.start().ready()
    file = grant(household, person, shim)
    text = file.read_bytes()
    file.write_bytes(text.replace(b'"uses":1', b'"uses":9'))
    assert shim.code("push") == REJECTED
    file.write_bytes(b"")
    assert shim.code("push") == REJECTED
    file.write_bytes(text)
    assert shim.code("push") == 0, "as it was written it holds"
    leave(shim)
    assert set(problems(household)) == {"seal"}


def test_a_grant_copied_to_another_call_or_run_is_refused_and_recorded(household, person):
    household.write_policy(asking())
    shim, other = household.start().ready(), household.start(run="run-2").ready()
    file = grant(household, person, shim, {"to": "a"})
    shim.call("push", {"to": "b"})
    other.call("push", {"to": "a"})
    wanted = {f.stem for f in answers_dir(household).glob("*.request")} - {file.stem}
    shutil.copy(file, answers_dir(household) / f"{wanted.pop()}.answer")
    shutil.copy(file, answers_dir(household, "run-2") / file.name)
    assert shim.code("push", {"to": "b"}) == REJECTED
    assert other.code("push", {"to": "a"}) == REJECTED
    leave(shim, other)
    assert sorted(problems(household)) == ["call", "run"]
    assert len(household.executed()) == 0


def test_a_grant_of_another_home_is_refused_and_recorded(household, person):
    """Another user has another home, and so another key: the rest is right to the letter."""
    household.write_policy(asking())
    shim = household.start().ready()
    file = grant(household, person, shim)
    key = (household.home / "state" / "seal.key").read_bytes()
    answer = ApprovalFiles(str(file.parent), key).answer_named(file.stem)
    ApprovalFiles(str(file.parent), os.urandom(32)).put_answer(slot_of(answer.given), answer)
    assert shim.code("push") == REJECTED
    ApprovalFiles(str(file.parent), key).put_answer(slot_of(answer.given), answer)
    assert shim.code("push") == 0
    leave(shim)
    assert problems(household) == ["seal"]


def test_a_spent_grant_cannot_be_replayed(household, person):
    """Not by putting the file back, not by an older state, not by deleting the state."""
    household.write_policy(asking())
    shim = household.start().ready()
    file = grant(household, person, shim)
    text = file.read_bytes()
    state = household.home / "state" / "runs" / "run-1"
    older = pathlib.Path(f"{state}.older")
    leave(shim)
    shutil.copy(state, older)
    shim = household.start().ready()
    assert shim.code("push") == 0
    file.write_bytes(text)
    assert shim.code("push") == REJECTED
    leave(shim)
    assert problems(household) == ["spent"]

    file.write_bytes(text)
    shutil.copy(older, state)
    shim = household.start().ready()
    assert shim.code("push") == REJECTED
    leave(shim)
    assert problems(household) == ["spent", "spent"]

    file.write_bytes(text)
    state.unlink()
    shutil.rmtree(answers_dir(household) / "spent")
    shim = household.start().ready()
    assert shim.call("push")["error"]["data"]["subluminal"]["reason_code"] == "STATE_LOST"
    assert problems(household) == ["spent", "spent"], "no grant is looked at in such a run"
    person("revive", "run-1")
    wait_until(lambda: shim.code("push") == REJECTED, "the run to go on")
    leave(shim)
    assert problems(household)[-1] == "state"
    assert len(household.executed()) == 1


def test_a_grant_lifts_nothing_but_its_rule(household, person):
    """Budgets and other rules stand; dedupe and the repeat breaker do not count against it."""
    budget = (
        "  - {rule_id: few, kind: budget, enabled: true, severity: warn, match: {},"
        " effect: {budget: {scope: run, limit_calls: 5, on_exceed: BLOCK}}}\n"
    )
    dedupe = (
        "  - {rule_id: twice, kind: dedupe, enabled: true, severity: warn, match: {},"
        " effect: {dedupe: {scope: run, window_ms: 600000, key: args_hash,"
        " on_duplicate: BLOCK}}}\n"
    )
    household.write_policy(asking(before=dedupe, after=budget))
    shim = household.start().ready()
    shim.call("push")
    (row,) = waiting(person)
    person("approve", row["approval_id"], "--uses", "9")
    codes = [shim.code("push") for _ in range(5)]
    assert codes == [0, 0, 0, 0, BLOCKED], "the first try counted too, and each other once"
    leave(shim)
    assert reasons(household)[-1] == "BUDGET_EXCEEDED"


def test_observe_mode_never_asks_for_approval(household, person):
    household.write_policy(asking().replace("guardrails", "observe"))
    shim = household.start().ready()
    assert shim.code("push") == 0
    assert waiting(person) == []
    leave(shim)


@pytest.mark.parametrize("words", [("approve", "x"), ("deny", "x"), ("revive", "--all")])
@pytest.mark.parametrize("marker", ["SUB_RUN_ID", "CLAUDECODE", "CODEX_SANDBOX"])
def test_what_a_person_decides_is_refused_inside_an_agent(person, words, marker):
    assert "is for a person" in person(*words, code=2, **{marker: "1"})


def test_an_unknown_approval_is_an_error_with_a_hint(person):
    assert "sub approvals --all" in person("approve", "nope", code=2)


def test_the_kill_switch_and_an_ended_run_stand_above_a_grant(household, person):
    household.write_policy(asking())
    shim = household.start().ready()
    shim.call("push")
    (row,) = waiting(person)
    person("approve", row["approval_id"])
    person("kill", "--tool", "echo/push")
    assert shim.code("push") == BLOCKED
    person("revive", "--tool", "echo/push")
    assert shim.code("push") == 0
    leave(shim)


def test_a_person_sees_it_all(household, person):
    household.write_policy(asking(more=", approver_role: release team"))
    shim = household.start(SUB_AGENT_ID="fixer").ready()
    shim.call("push", {"token": "ghp_0123456789abcdefghijABCDEFGHIJ012345", "x": "\x1b[2J"})
    (row,) = waiting(person)
    shown = person("approvals", row["approval_id"])
    assert "release team" in shown
    assert "ghp_" not in shown + json.dumps(row)
    assert "\x1b" not in shown
    assert "fixer" in person("approvals")
    leave(shim)
    wait_until(lambda: household.events("run_end"), "the end")


@pytest.mark.parametrize("word", ["approve", "deny"])
def test_what_cannot_be_told_answers_nothing(household, person, word):
    household.write_policy(asking())
    shim = household.start().ready()
    shim.call("push")
    (row,) = waiting(person)
    assert "not UTF-8" in person(word, row["approval_id"], "--reason", b"\xff", code=2)
    assert "characters" in person(word, row["approval_id"], "--reason", "x" * 5_000, code=2)
    assert [each["state"] for each in waiting(person)] == ["pending"]
    leave(shim)
    assert household.events("approval_decided") == []


def test_a_person_is_told_of_a_flood(household, person):
    household.write_policy(asking())
    shim = household.start().ready()
    for n in range(MAX_WAITING):
        assert shim.code("push", {"n": n}) == REJECTED
    assert "No approval was requested" in shim.call("push", {"n": -1})["error"]["message"]
    leave(shim)
    assert len(waiting(person)) == MAX_WAITING
    told = person("approvals", all_output=True)
    assert "run `run-1` cannot ask for more" in told
    assert "sub kill run-1" in told


def test_a_run_that_is_not_there_is_an_error(household, person):
    household.write_policy(asking())
    shim = household.start().ready()
    shim.call("push")
    assert "there is no run `run-2`" in person("approvals", "--run", "run-2", code=2)
    assert len(waiting(person, "--run", "run-")) == 1
    leave(shim)


def test_approve_warns_if_the_arguments_are_not_shown_whole(household, person):
    household.write_policy(asking())
    shim = household.start().ready()
    shim.call("push", {"script": "echo hi #" + " " * 200_000 + "; rm -rf /"})
    (row,) = waiting(person)
    assert row["args_truncated"]
    told = person("approve", row["approval_id"], all_output=True)
    assert "arguments that are not recorded in full" in told
    assert f"sub deny {row['approval_id']}" in told
    shim.call("push")
    (row,) = waiting(person)
    assert "whole" not in person("approve", row["approval_id"], all_output=True)
    leave(shim)
