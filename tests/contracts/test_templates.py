"""The byte templates of the hot path give the structs' JSON, byte for byte, for all values."""

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, Struct, UnsetType
from tests.requirements import requirement

from subluminal.contracts import PACK_VERSION
from subluminal.contracts.codec import decode_event
from subluminal.contracts.decision import Hint, PolicyRef, Terminate
from subluminal.contracts.events import (
    ArgsPreview,
    CallRef,
    CallStarted,
    DecisionMade,
    ErrorDetail,
    Explain,
    ResultPreview,
    ToolCallDecision,
    ToolCallEnd,
    ToolCallStart,
    WouldBe,
)
from subluminal.contracts.identity import Source, Workload
from subluminal.contracts.templates import EventTemplates, encode_json
from subluminal.contracts.vocabulary import (
    Action,
    Client,
    Env,
    ErrorClass,
    HintKind,
    Severity,
    Status,
    Transport,
)

texts = st.text(st.characters(codec="utf-8"), max_size=20)
ids = st.text("0123456789abcdef-", min_size=1, max_size=36)
hashes = st.text("0123456789abcdef", min_size=64, max_size=64)
times = st.just("2025-12-15T12:34:56.789Z") | st.just("1970-01-01T00:00:00.000Z")
counts = st.integers(0, 2**63 - 1)


def maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.just(UNSET) | strategy


workloads = st.builds(
    Workload, user=maybe(texts), repo=maybe(texts), labels=maybe(st.dictionaries(texts, texts))
)
sources = st.builds(
    Source, host_id=texts, proc_id=texts, shim_id=texts, n=counts, prev=hashes | st.just("")
)
calls = st.builds(CallRef, call_id=ids, server_name=texts, tool_name=texts, args_hash=hashes)


@st.composite
def envelopes(draw: st.DrawFn) -> dict[str, Any]:
    return {
        "v": PACK_VERSION,
        "ts": draw(times),
        "run_id": draw(texts),
        "agent_id": draw(texts),
        "client": draw(st.sampled_from(Client)),
        "env": draw(st.sampled_from(Env)),
        "source": draw(sources),
        "principal": draw(maybe(texts)),
        "workload": draw(maybe(workloads)),
    }


def templates_of(envelope: dict[str, Any]) -> EventTemplates:
    given_ = {key: None if value is UNSET else value for key, value in envelope.items()}
    del given_["v"], given_["ts"]
    return EventTemplates(**given_)


def place(envelope: dict[str, Any], call: CallRef) -> tuple[bytes, int, bytes, bytes, bytes]:
    """What the values of every template begin with."""
    source = envelope["source"]
    ids = call.call_id.encode(), call.args_hash.encode()
    return (envelope["ts"].encode(), source.n, source.prev.encode(), *ids)


def members(struct: Struct, *names: str) -> bytes:
    """The optional members of a struct, each with the comma before it, as callers build them."""
    parts = []
    for name in names:
        value: Any | UnsetType = getattr(struct, name)
        if value is not UNSET:
            parts.append(b',"%b":%b' % (name.encode(), encode_json(value)))
    return b"".join(parts)


def preview_json(preview: ArgsPreview | ResultPreview, text: str) -> bytes:
    return encode_json(preview.truncated) + members(preview, "redaction_flags", "hash", text)


EXTRA_OF_START = (
    "tags",
    "timeout_ms",
    "args_stream_hash",
    "client_call_id",
    "traceparent",
)
starts = st.builds(
    CallStarted,
    call_id=ids,
    server_name=texts,
    tool_name=texts,
    args_hash=hashes,
    transport=st.sampled_from(Transport),
    bytes_in=counts,
    seq=counts,
    mono_ms=counts,
    tags=maybe(st.lists(texts, max_size=3)),
    timeout_ms=maybe(counts),
    args_stream_hash=maybe(hashes),
    client_call_id=maybe(texts),
    traceparent=maybe(texts),
    preview=st.builds(
        ArgsPreview,
        truncated=st.booleans(),
        redaction_flags=maybe(st.lists(texts, max_size=2)),
        hash=maybe(hashes),
        args_preview=maybe(texts),
    ),
)


@requirement("house:templates", "1.1:one-line")
@given(envelopes(), starts)
def test_tool_call_start(envelope: dict[str, Any], call: CallStarted) -> None:
    event = ToolCallStart(**envelope, call=call)
    made = templates_of(envelope).of_tool(call.server_name, call.tool_name, call.transport)
    line = made.start % (
        *place(envelope, call),
        call.bytes_in,
        call.seq,
        call.mono_ms,
        members(call, *EXTRA_OF_START),
        preview_json(call.preview, "args_preview"),
    )
    assert line == msgspec.json.encode(event)
    assert decode_event(line) == event
    assert b"\n" not in line


policies = st.builds(PolicyRef, policy_id=texts, policy_version=texts, policy_hash=hashes)
decisions = st.builds(
    DecisionMade,
    action=st.sampled_from(Action),
    rule_id=st.none() | texts,
    severity=st.sampled_from(Severity),
    explain=st.builds(Explain, summary=texts, reason_code=texts),
    policy=policies,
    backoff_ms=maybe(counts),
    hint=maybe(
        st.builds(
            Hint,
            hint_text=texts,
            suggested_args=st.none() | st.dictionaries(texts, texts | counts),
            retry_advice=st.none() | texts,
            hint_kind=st.sampled_from(HintKind),
        )
    ),
    terminate=maybe(st.builds(Terminate, terminate_code=texts, terminate_message=texts)),
    would_be=maybe(
        st.builds(
            WouldBe,
            action=st.sampled_from(Action),
            rule_id=st.none() | texts,
            severity=st.sampled_from(Severity),
            reason_code=texts,
        )
    ),
)


@requirement("house:templates", "1.1:one-line")
@given(envelopes(), calls, decisions)
def test_tool_call_decision(
    envelope: dict[str, Any], call: CallRef, decision: DecisionMade
) -> None:
    event = ToolCallDecision(**envelope, call=call, decision=decision)
    made = templates_of(envelope).of_tool(call.server_name, call.tool_name, "mcp_stdio")
    line = made.decision % (*place(envelope, call), encode_json(decision))
    assert line == msgspec.json.encode(event)
    assert decode_event(line) == event


ends = st.fixed_dictionaries(
    {
        "status": st.sampled_from(Status),
        "latency_ms": counts,
        "bytes_out": counts,
        "error": maybe(
            st.builds(
                ErrorDetail,
                class_=st.sampled_from(ErrorClass),
                message=texts,
                code=maybe(texts | counts),
                retryable=maybe(st.booleans()),
            )
        ),
        "result_stream_hash": maybe(hashes),
        "after_seq": maybe(counts),
        "mono_ms": maybe(counts),
        "begun_by": maybe(ids),
        "preview": st.builds(
            ResultPreview,
            truncated=st.booleans(),
            redaction_flags=maybe(st.lists(texts, max_size=2)),
            hash=maybe(hashes),
            result_preview=maybe(texts),
        ),
    }
)


@requirement("house:templates", "1.1:one-line")
@given(envelopes(), calls, ends)
def test_tool_call_end(envelope: dict[str, Any], call: CallRef, end: dict[str, Any]) -> None:
    event = ToolCallEnd(**envelope, call=call, **end)
    made = templates_of(envelope).of_tool(call.server_name, call.tool_name, "mcp_stdio")
    line = made.end % (
        *place(envelope, call),
        event.status.encode(),
        event.latency_ms,
        event.bytes_out,
        members(event, "error", "result_stream_hash", "after_seq", "mono_ms", "begun_by"),
        preview_json(event.preview, "result_preview"),
    )
    assert line == msgspec.json.encode(event)
    assert decode_event(line) == event
