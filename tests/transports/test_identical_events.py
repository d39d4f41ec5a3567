"""One body, every door: identical tool calls leave identical events (Pack 7.4).

What differs by nature is left out: ids, times, sizes of the carrying message, the transport's name,
what is about processes, and what a pack adds in process. The rest is written down in tests/cases/transports/events.json.
"""

import json
from pathlib import Path
from typing import Any

from tests.adapters.policies import budget, bundle, deny, rule
from tests.requirements import requirement
from tests.transports.doors import Step

CASES = Path(__file__).parents[1] / "cases" / "transports" / "events.json"
BREAKER = {
    "breaker": {
        "scope": "tool",
        "error_threshold": 2,
        "window_ms": 3_600_000,
        "on_trip": "REJECT_WITH_HINT",
        "hint_text": "try another tool",
    }
}
POLICY = bundle(
    rule(
        "writes", "tag", {"tag": {"add_risk_class": ["write_like"]}}, tool_name={"glob": ["put*"]}
    ),
    deny("rm*"),
    rule("shaky", "breaker", BREAKER, tool_name={"glob": ["flaky"]}),
    budget(9, "TERMINATE_RUN"),
)
FINE = {"content": [{"type": "text", "text": "done"}]}
STEPS = [
    Step("read", {"path": "/a", "n": 1.50}, FINE),
    Step("put_file", {"text": "naïve \u2028 €", "deep": {"a": [1, None, True]}}, FINE),
    Step("rm_rf", {"path": "/"}),
    Step("flaky", {}, error={"code": -32000, "message": "upstream said no"}),
    Step("flaky", {"again": True}, {"content": [], "isError": True}),
    Step("flaky", {"again": 2}),
    Step(
        "read",
        {"token": "ghp_" + "aB3d" * 9},
        {"content": [{"type": "text", "text": "x" * 20_000}]},
    ),
    Step("read", {}, FINE),
    Step("read", {"b": 1, "a": 2}, FINE),
    Step("read", {"over": 1}),
    Step("read", {"over": 2}),
]
ACTIONS = [
    "ALLOW",
    "ALLOW",
    "BLOCK",
    "ALLOW",
    "ALLOW",
    "REJECT_WITH_HINT",
    *["ALLOW"] * 3,
    *["TERMINATE_RUN"] * 2,
]
_OWN = (
    "ts",
    "source",
    "run_id",
    "agent_id",
    "client",
    "env",
    "principal",
    "workload",
    "latency_ms",
    "bytes_out",
    "hint_id",
    "after_seq",
    "mono_ms",
)
_OWN_OF_CALL = ("call_id", "bytes_in", "transport", "mono_ms")
_OWN_OF_RUN = ("started_at", "ended_at", "duration_ms")


def comparable(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What must be the same through every door: the run's own events, then those of each call.

    The end of a call may be recorded after the start of the next one, so calls do not interleave
    here; within a call the order of the record is kept.
    """
    groups: dict[str, list[dict[str, Any]]] = {"": []}
    for event in events:
        if event["type"] not in ("shim_health", "policy_loaded", "audit_record"):
            call_id = event.get("call", {}).get("call_id", "")
            groups.setdefault(call_id, []).append(_plain(event))
    return [event for group in groups.values() for event in group]


def _plain(event: dict[str, Any]) -> dict[str, Any]:
    plain = {key: value for key, value in event.items() if key not in _OWN}
    if "call" in plain:
        plain["call"] = {k: v for k, v in plain["call"].items() if k not in _OWN_OF_CALL}
    if "decision" in plain:
        own = ("kernel", "policies")
        plain["decision"] = {k: v for k, v in plain["decision"].items() if k not in own}
    if "run" in plain:
        plain["run"] = {k: v for k, v in plain["run"].items() if k not in _OWN_OF_RUN}
        summary = plain["run"].get("summary")
        if summary:
            plain["run"]["summary"] = {k: v for k, v in summary.items() if k not in _OWN_OF_RUN}
    return plain


def _without_answers(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    own = ("preview", "error")
    return [
        {k: v for k, v in event.items() if event["type"] != "tool_call_end" or k not in own}
        for event in events
    ]


@requirement("001-7.7:agnostic")
@requirement("7.4:identical-events", "7.4:shared-hash", "7.4:no-decisions")
def test_identical_calls_leave_identical_events(doorway):
    door = doorway(POLICY)
    assert [door.call(step).action for step in STEPS] == ACTIONS
    expected = json.loads(CASES.read_text())
    found = comparable(doorway.events())
    if doorway.kind in ("in_process", "guard"):
        # A function returns a value or raises; there is no message to preview.
        found, expected = _without_answers(found), _without_answers(expected)
    assert found == expected
