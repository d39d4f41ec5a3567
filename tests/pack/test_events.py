"""Sections 0.3 and 1 of the Pack, read from the journal of a real run."""

import hashlib
import json
import re
from datetime import datetime

import pytest
from tests.pack.story import IDENTITY, MIB, RUN, SECRET, STEPS, Story
from tests.requirements import requirement

RFC3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
SHA256 = re.compile(r"[0-9a-f]{64}")
POLICY_REF = {"policy_id", "policy_version", "policy_hash"}
CALL_REF = {"call_id", "server_name", "tool_name", "args_hash"}
ACTIONS = {
    "read": "ALLOW",
    "read-again": "ALLOW",
    "write": "ALLOW",
    "blocked": "BLOCK",
    "hinted": "REJECT_WITH_HINT",
    "failed": "ALLOW",
    "cancelled": "ALLOW",
    "often": "ALLOW",
    "throttled": "THROTTLE",
    "loop": "ALLOW",
    "tripped": "REJECT_WITH_HINT",
    "preview": "ALLOW",
    "large": "ALLOW",
    "ended": "TERMINATE_RUN",
    "after": "TERMINATE_RUN",
}
STATUSES = {
    name: "CANCELLED"
    if name == "cancelled"
    else "OK"
    if action == "ALLOW" and name != "failed"
    else "ERROR"
    for name, action in ACTIONS.items()
}
each_step = pytest.mark.parametrize("step", STEPS)


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@requirement("1.1:one-line")
def test_every_line_is_one_json_object_in_utf8(story: Story) -> None:
    for line in story.lines:
        assert isinstance(json.loads(line.decode("utf-8")), dict)
    assert "é".encode() in b"".join(story.lines), "text stays UTF-8"


@requirement("1.2:emitted", "1.2:event-types")
def test_the_five_types_are_emitted_in_the_order_of_the_run(story: Story) -> None:
    run = [event["type"] for event in story.events("run_")]
    assert run == ["run_start", "run_end"]
    for kind in ("tool_call_start", "tool_call_decision", "tool_call_end"):
        assert len(story.events(kind)) == len(STEPS), kind


@requirement("1.2:event-types", "3.3:hint-issued")
def test_the_optional_types_are_emitted_where_there_is_something_to_tell(story: Story) -> None:
    assert len(story.events("hint_issued")) == 2
    assert len(story.events("policy_loaded")) == 1
    assert len(story.events("secret_injection")) == 1
    assert len(story.events("breaker_trip")) == 1
    assert [event["health"]["state"] for event in story.events("shim_health")] == [
        "spawned",
        "exited",
    ]


@requirement("1.3:envelope")
def test_every_event_has_the_envelope(story: Story) -> None:
    for event in story.events(""):
        assert event["v"] == "0.1.0"
        assert RFC3339.fullmatch(event["ts"]), event["ts"]
        assert event["run_id"] == RUN
        source = event["source"]
        assert {"host_id", "proc_id", "shim_id"} <= set(source)
        assert len({source["host_id"], source["proc_id"], source["shim_id"]}) == 3
    for name in ("host_id", "proc_id", "shim_id"):
        assert len({event["source"][name] for event in story.events("")}) == 1, name


@requirement("001-8.1:identity")
@requirement("5:read", "5:variables", "1.3:envelope")
def test_every_event_is_stamped_with_what_the_variables_say(story: Story) -> None:
    for event in story.events(""):
        assert event["run_id"] == IDENTITY["SUB_RUN_ID"]
        assert event["agent_id"] == IDENTITY["SUB_AGENT_ID"]
        assert event["env"] == IDENTITY["SUB_ENV"]
        assert event["client"] == IDENTITY["SUB_CLIENT"]
        assert event["principal"] == IDENTITY["SUB_PRINCIPAL"]


@requirement("001-8.1:identity")
@requirement("1.3.1:context-sent", "1.3.1:context-fields")
def test_every_event_says_where_the_run_takes_place(story: Story) -> None:
    for event in story.events(""):
        workload = event["workload"]
        assert workload["ci_provider"] == "github"
        assert workload["repo"] == "acme/shop"
        assert workload["branch"] == "main"
        assert "42" in workload["job_id"]


@requirement("1.4:run-start")
def test_run_start_declares_mode_and_policy(story: Story) -> None:
    (event,) = story.events("run_start")
    assert RFC3339.fullmatch(event["run"]["started_at"])
    assert event["run"]["started_at"] <= event["ts"]
    assert event["run"]["mode"] == "guardrails"
    policy = event["run"]["policy"]
    assert (policy["policy_id"], policy["policy_version"]) == ("test", "1")
    assert SHA256.fullmatch(policy["policy_hash"])


@each_step
@requirement("1.5:tool-call-start", "7.1:tool-call", "001-3:names")
def test_tool_call_start_has_its_fields(story: Story, step: str) -> None:
    call = story.call(step, "tool_call_start")["call"]
    assert CALL_REF | {"transport", "bytes_in", "preview", "seq"} <= set(call)
    assert (call["server_name"], call["tool_name"]) == ("probe", STEPS[step].tool)
    assert call["transport"] == "mcp_stdio"
    assert call["bytes_in"] in (len(story.sent[step]), len(story.sent[step]) + 1)
    assert isinstance(call["preview"]["truncated"], bool)


@requirement("1.5:tool-call-start")
def test_tags_and_previews_say_what_was_called(story: Story) -> None:
    assert story.call("write", "tool_call_start")["call"]["tags"] == ["write_like"]
    assert "tags" not in story.call("read", "tool_call_start")["call"]
    preview = story.call("read", "tool_call_start")["call"]["preview"]
    assert preview["truncated"] is False
    assert json.loads(preview["args_preview"]) == {"a": "é", "b": 1}


@requirement("1.5:seq")
def test_seq_counts_the_calls_of_the_run_from_one(story: Story) -> None:
    seqs = [event["call"]["seq"] for event in story.events("tool_call_start")]
    assert seqs == list(range(1, len(STEPS) + 1))


@requirement("0.3:call-id-unique", "0.3:call-id-global")
def test_every_call_has_an_id_of_its_own_in_all_its_events(story: Story) -> None:
    ids = [event["call"]["call_id"] for event in story.events("tool_call_start")]
    assert len(set(ids)) == len(STEPS)
    (shim_id,) = {event["source"]["shim_id"] for event in story.events("")}
    assert all(call_id.startswith(f"{shim_id}.") for call_id in ids), "unique in the world"
    for kind in ("tool_call_decision", "tool_call_end"):
        assert sorted(event["call"]["call_id"] for event in story.events(kind)) == sorted(ids)


@each_step
@requirement("1.6:tool-call-decision", "7.4:closed-vocabulary")
def test_tool_call_decision_has_its_fields(story: Story, step: str) -> None:
    event = story.call(step, "tool_call_decision")
    start = story.call(step, "tool_call_start")
    assert {name: event["call"][name] for name in CALL_REF} == {
        name: start["call"][name] for name in CALL_REF
    }
    decision = event["decision"]
    assert decision["action"] == ACTIONS[step]
    assert decision["severity"] in ("info", "warn", "critical")
    assert decision["explain"]["summary"]
    assert decision["explain"]["reason_code"]
    assert set(decision["policy"]) >= POLICY_REF
    (loaded,) = story.events("policy_loaded")
    assert decision["policy"] == loaded["policy"]


@requirement("001-16I:loops")
@requirement("1.6:tool-call-decision")
def test_a_decision_names_its_rule_and_reason(story: Story) -> None:
    def told(step: str) -> tuple[str, str, str, str]:
        decision = story.call(step, "tool_call_decision")["decision"]
        explain = decision["explain"]
        return (
            decision["rule_id"],
            decision["severity"],
            explain["reason_code"],
            explain["summary"],
        )

    assert told("blocked") == ("no-rm", "warn", "DENYLIST_MATCH", "do not remove")
    assert told("hinted") == ("few-rows", "warn", "TOO_MUCH", "too many rows")
    assert told("throttled")[::2] == ("seldom", "RATE_LIMITED")
    assert told("tripped")[::2] == ("no-loops", "BREAKER_TRIPPED")
    assert told("ended")[::2] == ("the-end", "BUDGET_EXCEEDED")
    assert told("after")[::2] == (None, "RUN_TERMINATED")
    assert told("read")[:3] == (None, "info", "DEFAULT_ALLOW")


@requirement("1.6:throttle")
def test_only_a_throttled_call_has_a_backoff(story: Story) -> None:
    assert story.call("throttled", "tool_call_decision")["decision"]["backoff_ms"] == 1234
    assert "backoff_ms" not in story.call("blocked", "tool_call_decision")["decision"]


@requirement("1.6:reject-with-hint")
def test_a_rejected_call_has_its_hint_on_record(story: Story) -> None:
    hint = story.call("hinted", "tool_call_decision")["decision"]["hint"]
    assert hint["hint_text"] == "ask for ten rows"
    assert hint["suggested_args"] == {"limit": 10, "of": "t"}
    assert hint["hint_kind"] == "ARG_FIX"
    assert "hint" not in story.call("blocked", "tool_call_decision")["decision"]


@requirement("1.6:terminate-run")
def test_the_call_that_ended_the_run_says_so(story: Story) -> None:
    terminate = story.call("ended", "tool_call_decision")["decision"]["terminate"]
    assert terminate["terminate_code"] == "BUDGET_EXCEEDED"
    assert "budget" in terminate["terminate_message"]
    assert story.call("after", "tool_call_decision")["decision"]["terminate"] == terminate
    assert "terminate" not in story.call("blocked", "tool_call_decision")["decision"]


@each_step
@requirement("1.7:tool-call-end")
def test_tool_call_end_has_its_fields(story: Story, step: str) -> None:
    event = story.call(step, "tool_call_end")
    start = story.call(step, "tool_call_start")
    assert {name: event["call"][name] for name in CALL_REF} == {
        name: start["call"][name] for name in CALL_REF
    }
    assert event["status"] == STATUSES[step]
    assert isinstance(event["latency_ms"], int)
    assert 0 <= event["latency_ms"] < 60_000
    assert isinstance(event["preview"]["truncated"], bool)
    if step != "cancelled":
        raw = next(
            line
            for line in story.received.splitlines()
            if json.loads(line)["id"] == story.answers[step]["id"]
        )
        assert event["bytes_out"] in (len(raw), len(raw) + 1)


@requirement("1.7:tool-call-end")
def test_the_result_is_previewed(story: Story) -> None:
    preview = story.call("read", "tool_call_end")["preview"]
    assert json.loads(preview["result_preview"]) == story.answers["read"]["result"]


@requirement("1.7:error-detail")
def test_an_end_that_is_not_ok_says_why(story: Story) -> None:
    failed = story.call("failed", "tool_call_end")["error"]
    assert (failed["class"], failed["message"]) == ("upstream_error", "no such")
    assert failed["code"] == -32000
    blocked = story.call("blocked", "tool_call_end")["error"]
    assert (blocked["class"], blocked["code"]) == ("policy_block", -32081)
    assert blocked["message"] == "do not remove"
    assert story.call("cancelled", "tool_call_end")["error"]["class"] == "unknown"
    assert "error" not in story.call("read", "tool_call_end")


@requirement("1.8:run-end")
def test_run_end_counts_the_calls_of_the_run(story: Story) -> None:
    (event,) = story.events("run_end")
    run, actions = event["run"], list(ACTIONS.values())
    assert RFC3339.fullmatch(run["ended_at"])
    assert run["status"] == "TERMINATED"
    summary = run["summary"]
    assert summary["calls_total"] == len(STEPS)
    assert summary["calls_allowed"] == actions.count("ALLOW")
    assert summary["calls_throttled"] == actions.count("THROTTLE")
    assert summary["calls_blocked"] == len(
        [action for action in actions if action not in ("ALLOW", "THROTTLE")]
    )
    assert summary["errors_total"] == len([s for s in STATUSES.values() if s != "OK"])
    (start,) = story.events("run_start")
    began = datetime.fromisoformat(start["run"]["started_at"])
    lasted = datetime.fromisoformat(run["ended_at"]) - began
    assert summary["duration_ms"] == lasted.total_seconds() * 1000


@requirement("1.9.1:args-hash-sha256", "1.9.1:canonical-rules", "7.4:shared-hash")
def test_args_hash_is_the_sha256_of_the_canonical_arguments(story: Story) -> None:
    written = {
        "read": '{"a":"é","b":1}',
        "hinted": '{"limit":99,"of":"t"}',
        "loop": "{}",
        "write": f'{{"token":"{SECRET}"}}',
    }
    for step, text in written.items():
        assert story.call(step, "tool_call_start")["call"]["args_hash"] == sha256(text)


@requirement("6.1:key-order", "1.9.1:numbers")
def test_neither_key_order_nor_the_form_of_a_number_changes_the_hash(story: Story) -> None:
    hashes = {
        story.call(step, "tool_call_start")["call"]["args_hash"] for step in ("read", "read-again")
    }
    assert len(hashes) == 1


@requirement("1.10:limits", "1.10:truncated")
def test_a_preview_is_cut_at_its_limit(story: Story) -> None:
    for kind, member in (("tool_call_start", "args_preview"), ("tool_call_end", "result_preview")):
        event = story.call("preview", kind)
        preview = event.get("preview") or event["call"]["preview"]
        assert preview["truncated"] is True
        assert 16_000 <= len(preview[member].encode()) <= 16_384


@requirement("1.10:limits", "1.10:truncated", "1.10:no-preview", "1.10:metadata")
@requirement("1.9.2:stream-hash")
def test_what_is_too_large_to_inspect_leaves_its_size_and_its_hash(story: Story) -> None:
    call = story.call("large", "tool_call_start")["call"]
    end = story.call("large", "tool_call_end")
    assert call["preview"]["truncated"] is True
    assert end["preview"]["truncated"] is True
    assert call["preview"].get("args_preview", "[TRUNCATED]") == "[TRUNCATED]"
    assert end["preview"].get("result_preview", "[TRUNCATED]") == "[TRUNCATED]"
    assert call["bytes_in"] > MIB
    assert end["bytes_out"] > MIB
    raw_args = json.dumps(STEPS["large"].arguments)
    assert call["args_stream_hash"] == sha256(raw_args)
    assert SHA256.fullmatch(end["result_stream_hash"])


@requirement("1.10:forward-all", "6.2:large-payload")
def test_every_allowed_call_reaches_the_server_byte_for_byte_and_no_other(story: Story) -> None:
    calls = [line for line in story.heard if b'"tools/call"' in line]
    allowed = [line for step, line in story.sent.items() if ACTIONS[step] == "ALLOW"]
    assert calls == allowed
    text = story.answers["large"]["result"]["content"][0]["text"]
    assert text == "x" * (MIB + 1)


@requirement("3.3:hint-issued", "3.3:hint-issued-fields")
def test_hint_issued_repeats_the_hint_of_its_call(story: Story) -> None:
    events = story.events("hint_issued")
    for step, event in zip(("hinted", "tripped"), events, strict=True):
        decision = story.call(step, "tool_call_decision")
        assert event["call"]["call_id"] == decision["call"]["call_id"]
        assert event["hint"] == decision["decision"]["hint"]
        assert {"hint_text", "suggested_args", "retry_advice", "hint_kind"} <= set(event["hint"])
    assert [event["hint"]["hint_text"] for event in events] == [
        "ask for ten rows",
        "do something else",
    ]
    assert [event["hint"]["hint_kind"] for event in events] == ["ARG_FIX", "SAFETY"]


@requirement("4.1:metadata-only", "4.1:binding-fields", "4.1:injected")
def test_an_injection_is_recorded_without_its_value(story: Story) -> None:
    (event,) = story.events("secret_injection")
    injection = event["injection"]
    assert injection["inject_as"] == "PROBE_TOKEN"
    assert injection["secret_ref"] == "REAL_TOKEN"
    assert injection["source"] == "env"
    assert injection["success"] is True
    assert story.answers["write"]["result"]["content"][0]["text"] == SECRET, "the server has it"


@requirement("4.1:not-logged", "4.1:not-previewed", "6.4:no-leak")
def test_no_line_of_the_record_has_the_secret(story: Story) -> None:
    assert SECRET.encode() not in b"".join(story.lines)
    assert SECRET.encode() not in story.stderr
    assert "[REDACTED" in story.call("write", "tool_call_start")["call"]["preview"]["args_preview"]
    assert "[REDACTED" in story.call("write", "tool_call_end")["preview"]["result_preview"]


@requirement("2.6:snapshot")
def test_the_policy_in_force_is_recorded_whole(story: Story) -> None:
    (event,) = story.events("policy_loaded")
    snapshot = event["snapshot"]
    assert (snapshot["policy_id"], snapshot["version"]) == ("test", "1")
    assert snapshot["policy_hash"] == event["policy"]["policy_hash"]
    assert snapshot["defaults"] == {"decision_on_error": "BLOCK", "fail_open_read_tools": False}
    budget = next(rule for rule in snapshot["rules"] if rule["kind"] == "budget")
    assert budget["effect"]["budget"]["cost_units_per_call"] == 1, "defaults are expanded"
    content = {name: value for name, value in snapshot.items() if name != "policy_hash"}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert snapshot["policy_hash"] == sha256(text)
