"""Compares two artifacts, ignoring ids and times. Two runs that made the same calls do not differ.

Calls are compared by their number within the run. Other events, such as the start of a server, have
no fixed order; they are compared by server, and by how often each occurred.
"""

import os
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from subluminal.config.plain_files import plain_file
from subluminal.contracts.codec import NO_EVENT, decode_event
from subluminal.contracts.vocabulary import EventType
from subluminal.errors import SubluminalError
from subluminal.export.artifact import EVENTS, FILES, POLICIES
from subluminal.export.chain import decode_line
from subluminal.journal.reading import MAX_LINE_BYTES

Event = dict[str, Any]

_IDS_AND_TIMES = frozenset(
    [
        *("ts", "started_at", "ended_at", "requested_at", "expires_at", "decided_at"),
        *("latency_ms", "duration_ms", "backoff_ms"),
        *("run_id", "call_id", "client_call_id", "hint_id", "approval_id", "grant_id", "switch_id"),
        *("retry_of", "traceparent", "host_id", "proc_id", "shim_id", "pid", "job_id", "pod"),
        *("n", "prev", "seal", "seq", "after_seq", "mono_ms", "snapshot"),
    ]
)
_IN_TEXT = (
    (re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "<id>"),
    (re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[.\d]*Z?"), "<time>"),
    (re.compile(r"\b(process|pid) \d+"), r"\1 <pid>"),
    (re.compile(r"\b(approval|grant) [0-9a-f]{12}\b"), r"\1 <id>"),
)
_NO_CALL = 0
_KNOWN = frozenset(EventType)


class Difference(NamedTuple):
    """One difference."""

    where: str
    """`run`, `files`, `call 3 git/push decision`, `server git shim_health`"""
    field: str
    """path inside the event; empty if the whole event is in one artifact only"""
    a: Any
    b: Any


def diff_artifacts(a: str, b: str) -> list[Difference]:
    """Compares two directories. Raises SubluminalError if one is not an artifact."""
    return [
        *_diff_files(_names(a), _names(b)),
        *_diff_records(_Record(a), _Record(b)),
    ]


def _names(directory: str) -> set[str]:
    names = {name for name in FILES if os.path.exists(os.path.join(directory, name))}
    try:
        return names | {f"{POLICIES}/{name}" for name in os.listdir(f"{directory}/{POLICIES}")}
    except OSError:
        return names


def _diff_files(a: set[str], b: set[str]) -> Iterator[Difference]:
    for name in sorted(a ^ b):
        yield Difference("files", name, name in a or None, name in b or None)


class _Record:
    """The events of one artifact: those of each call, and how often each other event occurred."""

    def __init__(self, directory: str) -> None:
        self.calls: dict[tuple[int, str], Any] = {}
        self.others: Counter[tuple[str, str]] = Counter()
        self._seqs: dict[str, int] = {}
        self._servers: dict[str, str] = {}
        read = list(_read(os.path.join(directory, EVENTS)))
        for event, _ in read:
            self._learn(event)
        for event, content in read:
            self._add(event, content)

    def _learn(self, event: Event) -> None:
        """Notes which server a shim serves and which number a call has."""
        call = _part(event, "call")
        named = call.get("server_name") or _part(event, "health").get("server_name")
        if named:
            self._servers.setdefault(event["source"]["shim_id"], named)
        if event["type"] == EventType.TOOL_CALL_START:
            self._seqs[call["call_id"]] = call["seq"]

    def _add(self, event: Event, content: Any) -> None:
        kind = event["type"]
        call = _part(event, "call")
        seq = self._seqs.get(call.get("call_id", ""), _NO_CALL)
        if seq == _NO_CALL:
            server = self._servers.get(event["source"]["shim_id"], "")
            where = f"server {server} {kind}" if server else f"run {kind}"
            self.others[where, msgspec.json.encode(content, order="deterministic").decode()] += 1
            return
        tool = f"{call.get('server_name', '')}/{call.get('tool_name', '')}"
        name, again = f"{tool} {kind.removeprefix('tool_call_')}", 1
        while (seq, name) in self.calls:
            again += 1
            name = f"{tool} {kind.removeprefix('tool_call_')} {again}"
        self.calls[seq, name] = content


def _diff_records(a: _Record, b: _Record) -> Iterator[Difference]:
    for seq, name in sorted({*a.calls, *b.calls}):
        where = f"call {seq} {name}"
        was, now = a.calls.get((seq, name)), b.calls.get((seq, name))
        if was is None or now is None:
            yield Difference(where, "", was, now)
        else:
            yield from _diff_values(where, "", was, now)
    only_a, only_b = _by_place(a.others - b.others), _by_place(b.others - a.others)
    for where in sorted({*only_a, *only_b}):
        gone, come = only_a.get(where, []), only_b.get(where, [])
        if len(gone) == len(come) == 1:
            yield from _diff_values(where, "", gone[0], come[0])
            continue
        for content in gone:
            yield Difference(where, "", content, None)
        for content in come:
            yield Difference(where, "", None, content)


def _by_place(others: Counter[tuple[str, str]]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for where, text in sorted(others.elements()):
        found.setdefault(where, []).append(msgspec.json.decode(text))
    return found


def _diff_values(where: str, path: str, a: Any, b: Any) -> Iterator[Difference]:
    if isinstance(a, dict) and isinstance(b, dict):
        for name in sorted({*a, *b}):
            inside = f"{path}.{name}" if path else name
            yield from _diff_values(where, inside, a.get(name), b.get(name))
    elif a != b:
        yield Difference(where, path, a, b)


def comparable(value: Any) -> Any:
    """Returns a value without ids and times, which always differ between runs."""
    if isinstance(value, dict):
        return {
            name: comparable(item) for name, item in value.items() if name not in _IDS_AND_TIMES
        }
    if isinstance(value, list):
        return [comparable(item) for item in value]
    if isinstance(value, str):
        for pattern, word in _IN_TEXT:
            value = pattern.sub(word, value)
    return value


def _part(event: Event, name: str) -> dict[str, Any]:
    """Returns an object in an event; empty for event types that this version does not know."""
    found = event.get(name) if event["type"] in _KNOWN else None
    return found or {}


def _read(path: str) -> Iterator[tuple[Event, Any]]:
    """Yields each event, and the part of it that can be compared."""
    try:
        with open(path, "rb", opener=plain_file) as file:
            number = 0
            while line := file.readline(MAX_LINE_BYTES + 1):
                number += 1
                yield _event(line, path, number)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise SubluminalError(
            f"cannot read `{path}`: {reason}",
            hint="give two directories that `sub run --artifact` wrote",
        ) from None


def _event(line: bytes, path: str, number: int) -> tuple[Event, Any]:
    try:
        decode_line(line)
        decode_event(line)
        event: Event = msgspec.json.decode(line)
        return event, comparable(event)
    except NO_EVENT:
        raise SubluminalError(
            f"`{path}` line {number} is not an event",
            hint="check the artifact with `sub ledger verify --artifact`",
        ) from None
