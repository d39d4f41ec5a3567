"""What every door promises, whatever its protocol: one body of tests, run for each (Pack 7)."""

import time
from collections.abc import Callable

import pytest
from tests.adapters.policies import budget, bundle, deny, rule
from tests.requirements import requirement
from tests.transports.doors import WITHIN_S, Answer, Door, Doorway, Step
from tests.trust.issued import FIXER

from subluminal.config.places import Places, places
from subluminal.core.controls.agents import register, revoke
from subluminal.core.controls.grants import all_waiting, issue_grant
from subluminal.core.controls.stops import lift_stop, set_stop

FINE = {"content": [{"type": "text", "text": "done"}]}
READ = Step("read", {"path": "/a"}, FINE)
REMOVE = Step("rm", {"path": "/a"}, FINE)
SECRET = "ghp_" + "aB3d" * 9


@pytest.fixture
def where(doorway: Doorway) -> Places:
    return places({"SUB_HOME": str(doorway.home)})


def until(door: Door, step: Step, wanted: Callable[[Answer], bool]) -> Answer:
    """Repeats a call until its answer is the wanted one: what changes on disk is seen soon."""
    deadline = time.monotonic() + WITHIN_S
    while not wanted(answer := door.call(step)):
        assert time.monotonic() < deadline, answer
    return answer


def test_without_a_policy_everything_passes_and_is_recorded(doorway: Doorway) -> None:
    door = doorway(None)
    assert door.call(REMOVE).action == "ALLOW"
    events = doorway.events()
    assert [event["type"] for event in events if event["type"].startswith("tool_call")] == [
        "tool_call_start",
        "tool_call_decision",
        "tool_call_end",
    ]
    (ended,) = [event["run"] for event in events if event["type"] == "run_end"]
    assert ended["status"] == "SUCCEEDED"


def test_a_refusal_names_its_call_and_its_reason(doorway: Doorway) -> None:
    door = doorway(bundle(deny("rm")))
    action, refusal = door.call(REMOVE)
    assert (action, refusal["reason_code"]) == ("BLOCK", "DENYLIST_MATCH")
    recorded = [e for e in doorway.events() if e["type"] == "tool_call_decision"]
    assert [event["call"]["call_id"] for event in recorded] == [refusal["call_id"]]


def test_a_hint_and_its_arguments_reach_the_caller(doorway: Doorway) -> None:
    effect = {
        "action": "REJECT_WITH_HINT",
        "reason_code": "TOO_MUCH",
        "message": "too many rows",
        "suggest": {"limit": {"clamp_max": 10}},
    }
    above = {"numeric_range": {"limit": {"min": 11}}}
    policy = bundle(rule("rows", "deny", effect, args=above))
    door = doorway(policy)
    action, refusal = door.call(Step("read", {"limit": 99}, FINE))
    assert action == "REJECT_WITH_HINT"
    assert refusal["hint"]["suggested_args"] == {"limit": 10}
    assert door.call(Step("read", {"limit": 10}, FINE)).action == "ALLOW"


def test_doors_of_one_run_share_its_budget(doorway: Doorway) -> None:
    policy = bundle(budget(5))
    doors = [doorway(policy), doorway(policy)]
    actions = [
        door.call(READ._replace(arguments={"n": n})).action for n in range(4) for door in doors
    ]
    assert actions == ["ALLOW"] * 5 + ["BLOCK"] * 3
    events = doorway.events()
    assert [event["type"] for event in events].count("run_start") == 1
    assert len({event["source"]["shim_id"] for event in events}) == 2


def test_a_run_that_a_rule_ended_is_over_at_every_door(doorway: Doorway) -> None:
    policy = bundle(budget(1, "TERMINATE_RUN"))
    first, second = doorway(policy), doorway(policy)
    assert first.call(READ).action == "ALLOW"
    assert first.call(READ).action == "TERMINATE_RUN"
    assert second.call(REMOVE).action == "TERMINATE_RUN"


def test_runs_do_not_share_a_budget(doorway: Doorway) -> None:
    policy = bundle(budget(1))
    for run_id in ("a", "b"):
        assert doorway(policy, run_id).call(READ).action == "ALLOW"


@requirement("001-9.1:modes")
def test_observe_mode_refuses_nothing_and_says_what_it_would_have_done(doorway: Doorway) -> None:
    door = doorway(bundle(deny("rm"), mode="observe"))
    assert door.call(REMOVE).action == "ALLOW"
    (decided,) = [e for e in doorway.events() if e["type"] == "tool_call_decision"]
    assert decided["decision"]["would_be"]["action"] == "BLOCK"


def test_a_policy_that_does_not_compile_refuses_every_call(doorway: Doorway) -> None:
    door = doorway('{"policy_id": "broken"}')
    action, refusal = door.call(READ)
    assert (action, refusal["reason_code"]) == ("BLOCK", "EVALUATION_ERROR")


def test_a_changed_policy_comes_into_force(doorway: Doorway) -> None:
    door = doorway(bundle(deny("rm")))
    assert door.call(READ).action == "ALLOW"
    doorway.write_policy(bundle(deny("read")))
    until(door, READ, lambda answer: answer.action == "BLOCK")
    assert door.call(REMOVE).action == "ALLOW"


def test_a_stop_holds_from_the_next_call_on_until_it_is_lifted(
    doorway: Doorway, where: Places
) -> None:
    door = doorway(None)
    assert door.call(READ).action == "ALLOW"
    set_stop(where.state, "tool", "probe/read", by="op", reason="no", hard=False)
    action, refusal = door.call(READ)
    assert (action, refusal["reason_code"]) == ("BLOCK", "KILL_SWITCH")
    assert door.call(REMOVE).action == "ALLOW"
    lift_stop(where.state, "tool", "probe/read")
    assert door.call(READ).action == "ALLOW"


@requirement("trust:run-revoked")
@pytest.mark.parametrize("has_policy", [True, False], ids=["policy", "no policy"])
def test_calls_of_a_revoked_agent_are_refused(
    doorway: Doorway, where: Places, monkeypatch: pytest.MonkeyPatch, has_policy: bool
) -> None:
    monkeypatch.setenv("SUB_AGENT_ID", "fixer")
    register(where.state, FIXER)
    door = doorway(bundle(deny("rm")) if has_policy else None)
    assert door.call(READ).action == "ALLOW"
    revoke(where.state, FIXER)
    action, refusal = door.call(READ)
    assert (action, refusal["reason_code"]) == ("BLOCK", "AGENT_REVOKED")
    assert doorway(None, "run-2").call(READ).refusal["reason_code"] == "AGENT_REVOKED"


@requirement("001-10.2:at-once")
def test_a_call_that_waits_for_a_person_passes_once_it_is_approved(
    doorway: Doorway, where: Places
) -> None:
    effect = {"action": "BLOCK", "reason_code": "X", "message": "ask", "require": "approval"}
    door = doorway(bundle(rule("ask", "deny", effect, tool_name={"glob": ["rm"]})))
    assert door.call(REMOVE).refusal["reason_code"] == "APPROVAL_REQUIRED"
    (waiting,) = all_waiting(where)
    issue_grant(where, "run-1", waiting.slot, approval_id=waiting.approval_id)
    assert door.call(REMOVE._replace(arguments={"path": "/b"})).action == "REJECT_WITH_HINT"
    assert door.call(REMOVE).action == "ALLOW"
    assert door.call(REMOVE).action == "REJECT_WITH_HINT", "a grant is used up"
    kinds = [event["type"] for event in doorway.events()]
    assert kinds.count("approval_requested") == 3


@requirement("6.4:no-leak")
def test_no_secret_of_a_call_or_its_result_reaches_the_journal(doorway: Doorway) -> None:
    door = doorway(bundle(deny("rm", message="no")))
    shown = {"content": [{"type": "text", "text": f"token {SECRET}"}]}
    door.call(Step("read", {"token": SECRET}, shown))
    door.call(Step("rm", {"token": SECRET}))
    door.call(Step(SECRET, {}, FINE))
    assert doorway.events()
    for path in (doorway.home / "journal").rglob("*.jsonl"):
        assert SECRET.encode() not in path.read_bytes()


def test_errors_of_the_server_trip_a_breaker_and_refusals_do_not(doorway: Doorway) -> None:
    effect = {
        "breaker": {
            "scope": "tool",
            "error_threshold": 2,
            "window_ms": 3_600_000,
            "on_trip": "BLOCK",
        }
    }
    door = doorway(bundle(deny("rm"), rule("shaky", "breaker", effect)))
    for _ in range(3):
        assert door.call(REMOVE).action == "BLOCK"
    failing = Step("flaky", {}, error={"code": -32000, "message": "no"})
    assert [door.call(failing).action for _ in range(3)] == ["ALLOW", "ALLOW", "BLOCK"]
    assert door.call(READ).action == "ALLOW"
