"""Contract A: the events, their fields, and how tolerantly they are read (Pack 1)."""

import json
from typing import Any

import msgspec
import pytest
from tests.contracts import samples
from tests.requirements import requirement

from subluminal.contracts import PACK_VERSION
from subluminal.contracts.codec import decode_event
from subluminal.contracts.events import EVENTS, OPTIONAL_EVENTS, REQUIRED_EVENTS
from subluminal.contracts.identity import Workload
from subluminal.contracts.limits import MAX_INSPECT_BYTES, MAX_PREVIEW_BYTES, TRUNCATED
from subluminal.contracts.vocabulary import EventType

ENVELOPE_FIELDS = ("v", "ts", "run_id", "agent_id", "client", "env", "source")


def read(event: dict[str, Any]) -> Any:
    return decode_event(json.dumps(event).encode())


def written(event: dict[str, Any]) -> Any:
    return json.loads(msgspec.json.encode(read(event)))


def without(value: dict[str, Any], *path: str) -> dict[str, Any]:
    """A copy that lacks the field at `path`."""
    name, *rest = path
    copy = dict(value)
    if rest:
        copy[name] = without(copy[name], *rest)
    else:
        del copy[name]
    return copy


@requirement("1.2:event-types")
def test_the_event_types_are_the_packs() -> None:
    required = ["run_start", "tool_call_start", "tool_call_decision", "tool_call_end", "run_end"]
    optional = ["hint_issued", "policy_loaded", "secret_injection", "shim_health", "breaker_trip"]
    assert [event.__struct_config__.tag for event in REQUIRED_EVENTS] == required
    additive = [
        "tools_listed",
        "approval_requested",
        "approval_decided",
        "grant_refused",
        "kill_switch",
        "call_round",
        "prompt_submitted",
        "taint_changed",
        "audit_record",
        "intent_released",
        "agent_changed",
        "agent_resolved",
    ]
    assert [event.__struct_config__.tag for event in OPTIONAL_EVENTS] == optional + additive
    assert [kind.value for kind in EventType] == required + optional + additive


@requirement("1.3:envelope", "1.1:one-line")
@pytest.mark.parametrize("kind", samples.EVENTS)
def test_an_event_is_written_as_it_was_read_on_one_line(kind: str) -> None:
    line = msgspec.json.encode(read(samples.EVENTS[kind]))
    assert json.loads(line) == samples.EVENTS[kind]
    assert b"\n" not in line
    assert line.startswith(b'{"type":"%b"' % kind.encode())


@requirement("1.1:one-line")
def test_line_breaks_in_values_do_not_break_the_line() -> None:
    event = {**samples.EVENTS["shim_health"], "agent_id": "a\nb\r\u2028\x00ü"}
    line = msgspec.json.encode(read(event))
    assert line.count(b"\n") == 0
    assert json.loads(line.decode("utf-8"))["agent_id"] == "a\nb\r\u2028\x00ü"


@requirement("1.3:envelope")
@pytest.mark.parametrize("kind", samples.EVENTS)
@pytest.mark.parametrize("field", ENVELOPE_FIELDS)
def test_an_event_without_its_envelope_is_refused(kind: str, field: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=field):
        read(without(samples.EVENTS[kind], field))


@requirement("1.3:envelope")
@pytest.mark.parametrize("field", ["host_id", "proc_id", "shim_id"])
def test_a_source_without_its_ids_is_refused(field: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=field):
        read(without(samples.EVENTS["run_start"], "source", field))


@requirement("1.3:envelope")
def test_closed_words_of_the_envelope() -> None:
    for client in ("claude", "codex", "headless", "custom", "unknown"):
        assert read({**samples.EVENTS["run_start"], "client": client}).client == client
    for env in ("dev", "ci", "prod", "unknown"):
        assert read({**samples.EVENTS["run_start"], "env": env}).env == env


@requirement("0.2:unknown-types")
@pytest.mark.parametrize("kind", samples.EVENTS)
def test_a_word_of_a_newer_version_stays_as_it_is(kind: str) -> None:
    """Pack 0.1: a MINOR version adds only what is additive, and a new word is."""
    event = {**samples.EVENTS[kind], "v": "0.9.0", "client": "newcomer", "env": "staging"}
    found = read(event)
    assert (found.client, found.env, found.v) == ("newcomer", "staging", "0.9.0")
    assert isinstance(found, type(read(samples.EVENTS[kind])))


@requirement("0.2:unknown-types")
def test_a_word_of_a_newer_version_stays_as_it_is_at_any_depth() -> None:
    start = samples.EVENTS["run_start"]
    assert read({**start, "run": {**start["run"], "mode": "paranoid"}}).run.mode == "paranoid"
    decided = samples.EVENTS["tool_call_decision"]
    changed = {**decided, "decision": {**decided["decision"], "action": "PONDER"}}
    assert read(changed).decision.action == "PONDER"


@requirement("0.2:unknown-types")
@pytest.mark.parametrize("version", ["1.0.0", "12.3"])
def test_an_event_of_a_newer_major_version_is_not_read(version: str) -> None:
    """Pack 0.1: its fields may mean something else."""
    start = samples.EVENTS["run_start"]
    assert read({**start, "v": version}) is None
    assert read({**start, "v": version, "run": "of another shape"}) is None
    assert read({**start, "v": "0.99.0"}) is not None
    assert read({**start, "v": "odd"}) is not None


@requirement("1.3:envelope")
def test_the_version_is_the_packs() -> None:
    assert PACK_VERSION == "0.1.0"


REQUIRED_PATHS = [
    *[("run_start", "run", field) for field in ("started_at", "mode", "policy")],
    *[("run_start", "run", "policy", f"policy_{field}") for field in ("id", "version", "hash")],
    *[
        ("tool_call_start", "call", field)
        for field in (*samples.CALL, "transport", "bytes_in", "preview", "seq")
    ],
    ("tool_call_start", "call", "preview", "truncated"),
    *[("tool_call_decision", "call", field) for field in samples.CALL],
    *[("tool_call_decision", "decision", field) for field in samples.DECISION],
    *[("tool_call_decision", "decision", "explain", field) for field in ("summary", "reason_code")],
    *[("tool_call_end", "call", field) for field in samples.CALL],
    *[("tool_call_end", field) for field in ("status", "latency_ms", "bytes_out", "preview")],
    *[("run_end", "run", field) for field in ("ended_at", "status", "summary")],
    *[("run_end", "run", "summary", field) for field in samples.RUN_END["summary"]],
    ("hint_issued", "call", "call_id"),
    ("hint_issued", "hint"),
]


@requirement(
    "1.4:run-start",
    "1.5:tool-call-start",
    "1.6:tool-call-decision",
    "1.7:tool-call-end",
    "1.8:run-end",
    "3.3:hint-issued-fields",
)
@pytest.mark.parametrize("path", REQUIRED_PATHS, ids=".".join)
def test_a_required_field_is_required(path: tuple[str, ...]) -> None:
    kind, *inside = path
    with pytest.raises(msgspec.ValidationError, match=inside[-1]):
        read(without(samples.EVENTS[kind], *inside))


@requirement("1.5:tool-call-start")
def test_optional_fields_of_a_start_are_kept() -> None:
    event = samples.EVENTS["tool_call_start"]
    call = {**event["call"], "tags": ["write_like"], "timeout_ms": 5}
    assert written({**event, "call": call})["call"] == call


@requirement("1.7:error-detail")
@pytest.mark.parametrize("code", ["E_BUSY", -32000])
def test_an_error_detail_is_kept(code: str | int) -> None:
    error = {"class": "upstream_error", "message": "busy", "code": code, "retryable": True}
    event = {**samples.EVENTS["tool_call_end"], "status": "ERROR", "error": error}
    assert written(event)["error"] == error


@requirement("1.8:run-end", "1.7:tool-call-end")
def test_closed_words_of_the_ends() -> None:
    for status in ("OK", "ERROR", "TIMEOUT", "CANCELLED"):
        assert read({**samples.EVENTS["tool_call_end"], "status": status}).status == status
    for status in ("SUCCEEDED", "FAILED", "TERMINATED", "CANCELLED"):
        run = {**samples.RUN_END, "status": status}
        assert read({**samples.EVENTS["run_end"], "run": run}).run.status == status


SENDERS = (samples.HINT["suggested_args"], samples.BODIES["audit_record"]["audit"])
"""Objects that are all the sender's."""


@requirement("0.2:unknown-fields")
@pytest.mark.parametrize("kind", samples.EVENTS)
def test_unknown_fields_are_ignored_everywhere(kind: str) -> None:
    def grown(value: Any) -> Any:
        if isinstance(value, dict):
            free = any(value is each for each in SENDERS)
            more = {} if free else {"new_in_v9": {"x": [1]}}
            return {**{key: grown(member) for key, member in value.items()}, **more}
        return value

    assert written(grown(samples.EVENTS[kind])) == samples.EVENTS[kind]


@requirement("0.2:unknown-types")
def test_an_event_type_from_the_future_is_ignored() -> None:
    assert read({**samples.ENVELOPE, "type": "agent_dreamt", "dream": {}}) is None


@requirement("1.3:envelope", "1.1:one-line")
@pytest.mark.parametrize("line", [b"", b"[]", b"{}", b'{"type":1}', b"{", b'{"type":"run_start"}'])
def test_a_line_that_is_not_an_event_is_refused(line: bytes) -> None:
    with pytest.raises(msgspec.MsgspecError):
        decode_event(line)


@requirement("1.3.1:missing-workload")
@pytest.mark.parametrize("kind", samples.EVENTS)
def test_a_missing_workload_is_tolerated(kind: str) -> None:
    event = read(samples.EVENTS[kind])
    assert event.workload is msgspec.UNSET
    assert event.principal is msgspec.UNSET


@requirement("1.3.1:context-fields")
def test_the_workload_has_the_packs_fields() -> None:
    desktop = ["user", "repo_path"]
    ci = ["ci_provider", "job_id", "repo", "branch"]
    kubernetes = ["namespace", "service_account", "pod", "labels"]
    assert list(Workload.__struct_fields__) == desktop + ci + kubernetes
    workload = {"user": "kim", "labels": {"team": "a"}}
    event = {**samples.EVENTS["run_start"], "principal": "kim", "workload": workload}
    assert written(event) == event


@requirement("house:additive")
def test_every_additive_field_may_be_missing() -> None:
    """The samples hold none of our own fields, and all of them are read."""
    assert len(samples.EVENTS) == len(EVENTS)
    for event in samples.EVENTS.values():
        assert "n" not in written(event)["source"]


@requirement("4.1:metadata-only")
def test_a_secret_injection_has_no_place_for_a_value() -> None:
    event = samples.EVENTS["secret_injection"]
    leaky = {**event, "injection": {**event["injection"], "value": "hunter2"}}
    assert written(leaky) == event


@requirement("1.10:limits")
def test_the_default_limits_are_the_packs() -> None:
    assert (MAX_INSPECT_BYTES, MAX_PREVIEW_BYTES) == (1_048_576, 16_384)
    assert TRUNCATED == "[TRUNCATED]"
