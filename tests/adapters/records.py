"""Checks that hold for every run's journal: Contract A, the chain, the order, the totals.

Used by every test that makes a shim or an enforcer write events, so each path proves all of it.
"""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import jsonschema_rs
from tests.journal.lines import verify_lines

from subluminal.contracts.codec import decode_event
from subluminal.journal.reading import journal_files

SCHEMA = Path(__file__).parents[2] / "schema" / "event.schema.json"
_validator: Any = None


def lines_of(home: Path) -> list[tuple[str, bytes]]:
    """Every journalled line below a home, with its shim, in the order in which each was written."""
    found = []
    for file in journal_files(str(home / "journal")):
        data = Path(file.path).read_bytes()
        assert data.endswith(b"\n") or not data, "a torn line"
        found += [(file.shim, line) for line in data.splitlines()]
    return found


def events_of(home: Path, *, threads: bool = False) -> list[dict[str, Any]]:
    """Returns every event below a home, after checking that the journals are sound.

    Threads take their `seq` in one order and may journal their calls in another.
    """
    lines = lines_of(home)
    events = [json.loads(line) for _, line in lines]
    for (_, line), event in zip(lines, events, strict=True):
        require_valid(event)
        assert decode_event(line) is not None
    for shim in {shim for shim, _ in lines}:
        own = [line for each, line in lines if each == shim]
        assert verify_lines(own, shim) is None
        assert [json.loads(line)["source"]["n"] for line in own] == list(range(1, len(own) + 1))
    for run_id in {event["run_id"] for event in events}:
        _require_order([event for event in events if event["run_id"] == run_id], threads)
    return events


def calls_of(events: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """The events of each call, in the order in which calls started."""
    calls: dict[str, list[dict[str, Any]]] = {}
    for event in events:
        if event["type"].startswith("tool_call"):
            calls.setdefault(event["call"]["call_id"], []).append(event)
    return list(calls.values())


def ends_of(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The ends of calls, in the order in which the calls started."""
    return [call[-1] for call in calls_of(events) if call[-1]["type"] == "tool_call_end"]


def require_valid(event: dict[str, Any]) -> None:
    """Checks an event by the published schema."""
    global _validator
    if _validator is None:
        _validator = jsonschema_rs.validator_for(json.loads(SCHEMA.read_text()))
    _validator.validate(event)


def _require_order(events: list[dict[str, Any]], threads: bool) -> None:
    calls = calls_of(events)
    whole = ["tool_call_start", "tool_call_decision", "tool_call_end"]
    for call in calls:
        types = [event["type"] for event in call]
        assert types == whole[: len(types)], f"out of order: {types}"
        for member in ("server_name", "tool_name", "args_hash"):
            assert len({event["call"][member] for event in call}) == 1
    seqs = [call[0]["call"]["seq"] for call in calls]
    assert sorted(seqs) == list(range(1, len(seqs) + 1)), "a seq is missing or stands twice"
    for shim in {event["source"]["shim_id"] for event in events}:
        own = [call[0]["call"]["seq"] for call in calls if call[0]["source"]["shim_id"] == shim]
        assert threads or own == sorted(own), "seq goes backwards"
    _require_rounds(events)
    assert [event["type"] for event in events].count("run_start") <= 1
    ended = [event for event in events if event["type"] == "run_end"]
    if ended:
        _require_totals(events, ended[-1]["run"]["summary"])


def _require_rounds(events: list[dict[str, Any]]) -> None:
    """Further rounds are numbered from 2, follow the decision and precede the end of their call."""
    seen: dict[str, int] = {}
    for event in events:
        call_id = event.get("call", {}).get("call_id")
        if event["type"] == "tool_call_decision":
            seen[call_id] = 1
        elif event["type"] == "call_round":
            seen[call_id] += 1
            assert event["call"]["round"] == seen[call_id]
        elif event["type"] == "tool_call_end":
            seen.pop(call_id, None)


def _require_totals(events: list[dict[str, Any]], summary: dict[str, Any]) -> None:
    calls = calls_of(events)
    refused = {
        event["call"]["call_id"]: event["decision"]["action"]
        for event in events
        if event["type"] == "call_round" and event["decision"]["action"] != "ALLOW"
    }
    actions = Counter(
        refused.get(call[1]["call"]["call_id"], call[1]["decision"]["action"]) for call in calls
    )
    assert summary["calls_total"] == len(calls)
    assert summary["calls_allowed"] == actions["ALLOW"]
    assert summary["calls_throttled"] == actions["THROTTLE"]
    refusals = ("BLOCK", "REJECT_WITH_HINT", "TERMINATE_RUN")
    assert summary["calls_blocked"] == sum(actions[each] for each in refusals)
    # As the earlier implementation's EVT-009 has it: every end that is not OK, refusals included.
    failed = [call for call in calls if call[-1].get("status", "OK") != "OK"]
    assert summary["errors_total"] == len(failed)
