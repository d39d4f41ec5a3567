"""The published schemas, checked by an independent validator: ours pass, broken ones do not."""

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from tests.contracts import samples
from tests.contracts.test_decision import ERROR
from tests.contracts.test_events import ENVELOPE_FIELDS, REQUIRED_PATHS, without
from tests.requirements import requirement

from subluminal.contracts.schemas import schemas

FOLDER = Path(__file__).parents[2] / "schema"
VALIDATORS = {
    file.name.removesuffix(".schema.json"): jsonschema_rs.validator_for(
        json.loads(file.read_text("utf-8"))
    )
    for file in FOLDER.glob("*.schema.json")
}


def accepts(name: str, value: Any) -> bool:
    return bool(VALIDATORS[name].is_valid(value))


def changed(value: dict[str, Any], path: str, new: Any) -> dict[str, Any]:
    name, _, rest = path.partition(".")
    return {**value, name: changed(value[name], rest, new) if rest else new}


@requirement("house:schemas")
def test_every_contract_is_published() -> None:
    assert set(VALIDATORS) == set(schemas())
    for file in FOLDER.glob("*.json"):
        jsonschema_rs.meta.validate(json.loads(file.read_text("utf-8")))


@requirement("house:schemas")
@pytest.mark.parametrize("kind", samples.EVENTS)
def test_our_events_are_accepted_with_fields_from_the_future(kind: str) -> None:
    assert accepts("event", samples.EVENTS[kind])
    assert accepts("event", {**samples.EVENTS[kind], "new_in_v9": 1})


@requirement("house:schemas", "1.3:envelope")
@pytest.mark.parametrize("kind", samples.EVENTS)
@pytest.mark.parametrize("field", ["type", *ENVELOPE_FIELDS])
def test_an_event_without_its_envelope_is_not_valid(kind: str, field: str) -> None:
    assert not accepts("event", without(samples.EVENTS[kind], field))


@requirement("house:schemas")
@pytest.mark.parametrize("path", REQUIRED_PATHS, ids=".".join)
def test_an_event_without_a_required_field_is_not_valid(path: tuple[str, ...]) -> None:
    assert not accepts("event", without(samples.EVENTS[path[0]], *path[1:]))


@requirement("house:schemas")
@pytest.mark.parametrize(
    ("kind", "path", "value"),
    [
        ("run_start", "type", "run_begin"),
        ("run_start", "client", "netscape"),
        ("run_start", "ts", "15 December 2025"),
        ("run_start", "ts", "2025-12-15T12:34:56+01:00"),
        ("run_start", "run.mode", "strict"),
        ("tool_call_start", "call.seq", 0),
        ("tool_call_start", "call.seq", "1"),
        ("tool_call_start", "call.bytes_in", -1),
        ("tool_call_start", "call.args_hash", "AB" * 32),
        ("tool_call_start", "call.args_hash", "ab"),
        ("tool_call_start", "call.preview.truncated", "no"),
        ("tool_call_decision", "decision.action", "MAYBE"),
        ("tool_call_decision", "decision.rule_id", 7),
        ("tool_call_decision", "decision.policy.policy_hash", "none"),
        ("tool_call_end", "status", "ok"),
        ("tool_call_end", "latency_ms", 1.5),
        ("run_end", "run.status", "DONE"),
        ("hint_issued", "hint.suggested_args", [1]),
    ],
)
def test_an_event_with_a_broken_value_is_not_valid(kind: str, path: str, value: Any) -> None:
    assert not accepts("event", changed(samples.EVENTS[kind], path, value))


NEEDS = [
    pytest.param("THROTTLE", "backoff_ms", 500, id="throttle"),
    pytest.param("REJECT_WITH_HINT", "hint", samples.HINT, id="hint"),
    pytest.param("TERMINATE_RUN", "terminate", samples.TERMINATE, id="terminate"),
]


@requirement("1.6:throttle", "1.6:reject-with-hint", "1.6:terminate-run")
@pytest.mark.parametrize(("action", "field", "value"), NEEDS)
def test_an_event_needs_the_field_that_its_action_requires(
    action: str, field: str, value: Any
) -> None:
    event = samples.EVENTS["tool_call_decision"]
    bare = changed(event, "decision.action", action)
    assert not accepts("event", bare)
    assert accepts("event", changed(bare, f"decision.{field}", value))


@requirement("3.1:decision-fields")
@pytest.mark.parametrize(("action", "field", "value"), NEEDS)
def test_a_decision_needs_the_field_that_its_action_requires(
    action: str, field: str, value: Any
) -> None:
    explain = samples.DECISION["explain"]
    decision = {"action": action, "rule_id": None, "severity": "info", **explain}
    assert not accepts("decision", decision)
    assert not accepts("decision", {**decision, field: None})
    assert accepts("decision", {**decision, field: value})


@requirement("3.2.2:error-data", "3.2.3:throttle", "3.2.4:hint")
@pytest.mark.parametrize(("action", "field", "value"), NEEDS[:2])
def test_error_data_needs_the_field_that_its_action_requires(
    action: str, field: str, value: Any
) -> None:
    error = {**ERROR, "action": action}
    assert not accepts("error_data", {"subluminal": error})
    assert accepts("error_data", {"subluminal": {**error, field: value}})


@requirement("house:schemas", "2.1:bundle-fields")
def test_bundles_are_accepted_strictly() -> None:
    assert accepts("bundle", samples.BUNDLE)
    assert not accepts("bundle", {**samples.BUNDLE, "rule": []})
    for kind in samples.EFFECTS:
        assert not accepts("bundle", {**samples.BUNDLE, "rules": [samples.rule(kind, when=1)]})
    unknown = {**samples.rule("deny"), "kind": "denny"}
    assert not accepts("bundle", {**samples.BUNDLE, "rules": [unknown]})


@requirement("4.1:binding-fields")
def test_secret_bindings_have_no_place_for_a_value() -> None:
    binding = {"inject_as": "TOKEN", "secret_ref": "token", "source": "env"}
    assert accepts("secret_bindings", {"server_name": "git", "secret_bindings": [binding]})
    leaky = {**binding, "value": "hunter2"}
    assert not accepts("secret_bindings", {"server_name": "git", "secret_bindings": [leaky]})


@requirement("1.3.1:context-fields")
def test_workloads() -> None:
    assert accepts("workload", {"labels": {"team": "a"}})
    assert not accepts("workload", {"labels": {"team": 1}})
