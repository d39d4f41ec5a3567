"""The events of a run are held back until the run makes a call or fails, and then all are shown."""

from typing import Any

from subluminal.ledger.filter.idle_runs import MAX_HELD, MAX_RUNS, IdleRuns


def event(kind: str, run_id: str = "r", **fields: Any) -> dict[str, Any]:
    return {"type": kind, "run_id": run_id, **fields}


def end(status: str = "SUCCEEDED", calls: int = 0) -> dict[str, Any]:
    return event("run_end", run={"status": status, "summary": {"calls_total": calls}})


START = event("run_start")
CALL = event("tool_call_start", call={})
SPAWNED = event("shim_health", health={"state": "spawned"})


def shown(*events: dict[str, Any]) -> tuple[list[str], int]:
    idle = IdleRuns[str]()
    kinds = [kind for each in events for kind in idle.admit(each, each["type"])]
    return kinds, len(idle.hidden)


def test_a_run_without_a_call_is_hidden() -> None:
    assert shown(START, SPAWNED, end()) == ([], 1)
    exited = event("shim_health", health={"state": "exited", "exit_code": 0})
    assert shown(START, end(), exited) == ([], 1)


def test_a_call_shows_the_run_from_its_start() -> None:
    kinds, hidden = shown(START, SPAWNED, CALL, end(calls=1))
    assert kinds == ["run_start", "shim_health", "tool_call_start", "run_end"]
    assert hidden == 0


def test_what_a_person_must_see_shows_the_run() -> None:
    for telling in (
        end("FAILED"),
        end("TERMINATED"),
        end(calls=3),
        event("shim_health", health={"state": "failed", "detail": "no"}),
        event("shim_health", health={"state": "exited", "detail": "no"}),
        event("policy_loaded", load={"ok": False}),
        event("secret_injection", injection={"success": False}),
        event("kill_switch"),
        event("something_new"),
    ):
        assert shown(START, telling)[0] == ["run_start", telling["type"]]


def test_what_is_held_back_is_bounded() -> None:
    kinds, _ = shown(START, *[SPAWNED] * MAX_HELD)
    assert len(kinds) == MAX_HELD + 1
    kinds, _ = shown(*[event("run_start", f"r{n}") for n in range(MAX_RUNS + 10)])
    assert len(kinds) == 10
