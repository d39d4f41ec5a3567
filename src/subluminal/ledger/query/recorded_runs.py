"""Reads runs back for replay: calls in the order of `seq`, each end where breakers learnt of it.

Reads one run at a time, and one segment at a time of each of its shims, so memory does not grow
with the ledger.

The order: each event gets a key (seq, 0 for a call or 1 for what follows it, time). A shim's events
are in order already. Those of a door with several threads nearly are, and are sorted. The shims of
a run are then merged by key. An end states the last `seq` of the run that was decided before
breakers learnt of it (`after_seq`), and follows that call. So does the end of a call that another
shim began (`begun_by`). A call without a number follows its `after_seq` as well; such calls and
changes of the level are in the order of the wall clock.
"""

import heapq
import zlib
from collections.abc import Iterator
from itertools import chain
from operator import itemgetter
from typing import Any, NamedTuple

import apsw
import msgspec
from msgspec import UNSET, MsgspecError, Raw, Struct

from subluminal.contracts.control import ApprovalGiven
from subluminal.contracts.decision import PolicyRef
from subluminal.contracts.events import DecisionMade, TaintChange
from subluminal.contracts.identity import Identity, Workload
from subluminal.contracts.targets import Targets
from subluminal.contracts.vocabulary import (
    TAINT_RANK,
    Action,
    Client,
    Env,
    EventType,
    Layer,
    Status,
    Taint,
)
from subluminal.ledger.query.recorded_agents import RunAgent, resolved
from subluminal.ledger.store.segments import StoredSegment, of_shim
from subluminal.policy.replay.hidden_args import known_args
from subluminal.policy.replay.recorded import (
    RecordedAgent,
    RecordedAnswer,
    RecordedCall,
    RecordedDecision,
    RecordedEnd,
    RecordedLevel,
    RecordedLoad,
    recorded_decision,
)
from subluminal.policy.replay.recorded_given import given_on_record, provider_of
from subluminal.timestamps import parse_rfc3339

_CALLED = (
    "EXISTS (SELECT 1 FROM tool_calls c INDEXED BY calls_by_run WHERE c.run_id = runs.run_id "
    "AND c.server_name = ? AND c.tool_name = ?)"
)
_PAGE = 256
_LOADED, _ANSWERED, _STARTED = b'"policy_loaded"', b'"approval_decided"', b'"run_start"'
_READS = ("resources/read", "prompts/get")
"""Names in place of a tool, where text was read that no tool gave."""
_MAX_KEPT = 1_024
_WINDOW = 256
"""Most events between an event and its place in the order, if several threads journal."""
_PREVIEWS = (
    "SELECT c.call_id, p.args_preview FROM tool_calls c JOIN previews p USING (id) "
    "WHERE c.call_id IN (SELECT value FROM json_each(?)) AND c.shim = ?"
)

Key = tuple[int, int, int]
"""seq, 0 for a call or 1 for an end, monotonic time in milliseconds"""
Item = RecordedCall | RecordedEnd | RecordedLevel | RecordedAgent


class _Preview(Struct, frozen=True):
    truncated: bool = False
    redaction_flags: list[str] = []
    args_preview: str | None = None


class _Call(Struct, frozen=True):
    call_id: str = ""
    server_name: str = ""
    tool_name: str = ""
    args_hash: str = ""
    seq: int = 0
    after_seq: int = 0
    mono_ms: int | None = None
    tags: list[str] = []
    args_stream_hash: str | None = None
    targets: Targets | None = None
    transport: str = ""
    provider: str | None = None
    given: Raw = Raw(b"")
    preview: _Preview = _Preview()


class _Load(Struct, frozen=True):
    layer: Layer
    ok: bool = False


class _Run(RunAgent, frozen=True):
    taint: str | None = None


class _Line(Struct, frozen=True):
    """The fields of any event that replay needs."""

    type: str = ""
    ts: str = ""
    agent_id: str = ""
    client: str = ""
    env: str = ""
    principal: str | None = None
    workload: Raw = Raw(b"{}")
    call: _Call = _Call()
    decision: Raw = Raw(b"")
    status: str = ""
    latency_ms: int = 0
    after_seq: int | None = None
    mono_ms: int | None = None
    begun_by: str | None = None
    policy: PolicyRef | None = None
    load: _Load | None = None
    approval: Raw = Raw(b"")
    run: _Run = _Run()
    taint: Raw = Raw(b"")
    agent: Raw = Raw(b"")
    seq: int = 0


_decode = msgspec.json.Decoder(_Line).decode
_decode_decision = msgspec.json.Decoder(DecisionMade).decode
_decode_approval = msgspec.json.Decoder(ApprovalGiven).decode
_decode_change = msgspec.json.Decoder(TaintChange).decode
_decode_workload = msgspec.json.Decoder(Workload).decode


def run_ids(
    connection: apsw.Connection, since_ms: int | None = None, tool: tuple[str, str] | None = None
) -> Iterator[str]:
    """The runs with an event since then, in the order of ingest.

    With a tool (server name, tool name), only the runs that called the tool.
    """
    called = "" if tool is None else f"AND {_CALLED} "
    sql = (
        "SELECT id, run_id FROM runs WHERE id > ? AND last_event_at >= ? "
        f"{called}ORDER BY id LIMIT ?"
    )
    last: Any = 0
    while True:
        page = connection.execute(sql, (last, since_ms or 0, *(tool or ()), _PAGE)).fetchall()
        for number, run_id in page:
            last = number
            yield str(run_id)
        if len(page) < _PAGE:
            return


class RunSetting(NamedTuple):
    """The policies that came into force in a run, the answers to its approvals, its first level."""

    loads: list[RecordedLoad]
    answers: list[RecordedAnswer]
    start: Taint = Taint.SYSTEM
    """level with which the run began"""


class RunReader:
    """Reads runs one after the other. Decodes equal decisions and identities only once."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._decisions: dict[bytes, RecordedDecision | None] = {}
        self._identities: dict[tuple[object, ...], Identity] = {}

    def setting(self, run_id: str) -> RunSetting:
        """What replay must know of a run before its first call."""
        found = RunSetting([], [])
        for shim in self._shims(run_id):
            for segment in of_shim(self._connection, shim):
                for line in _lines_of(segment):
                    if _LOADED in line or _ANSWERED in line:
                        _note(found, _event(line))
                    elif _STARTED in line:
                        found = found._replace(start=_start_of(_event(line), found.start))
        return found

    def items(self, run_id: str) -> Iterator[Item]:
        """The calls and ends of a run, in the order of replay."""
        streams = [_sorted(self._of_shim(run_id, shim)) for shim in self._shims(run_id)]
        ordered = heapq.merge(*streams, key=itemgetter(0)) if len(streams) > 1 else chain(*streams)
        for _, item in ordered:
            yield item

    def _shims(self, run_id: str) -> list[int]:
        sql = "SELECT id FROM shims WHERE run_id = ? ORDER BY id"
        rows: list[Any] = self._connection.execute(sql, (run_id,)).fetchall()
        return [shim for (shim,) in rows]

    def _of_shim(self, run_id: str, shim: int) -> Iterator[tuple[Key, Item]]:
        shim_events = _ShimEvents(self, run_id)
        for segment in of_shim(self._connection, shim):
            events = [event for line in _lines_of(segment) if (event := _event(line))]
            previews = self._previews(shim, events)
            for event in events:
                placed = shim_events.take(event, previews)
                if placed is not None:
                    yield placed

    def _previews(self, shim: int, events: list[_Line]) -> dict[str, str | None]:
        """Previews of arguments by call_id. Chained events leave the text out (provable-ledger)."""
        wanted = [each.call.call_id for each in events if each.type == EventType.TOOL_CALL_START]
        rows = self._connection.execute(_PREVIEWS, (msgspec.json.encode(wanted).decode(), shim))
        return {str(call_id): text for call_id, text in rows}

    def decision(self, raw: bytes) -> RecordedDecision | None:
        """Decodes a decision; None if it has words that this version does not know."""
        if raw not in self._decisions:
            if len(self._decisions) >= _MAX_KEPT:
                self._decisions.clear()
            try:
                self._decisions[raw] = recorded_decision(_decode_decision(raw))
            except MsgspecError:
                self._decisions[raw] = None
        return self._decisions[raw]

    def identity(self, event: _Line) -> Identity:
        """The identity behind a call. Unknown words become UNKNOWN."""
        workload = bytes(event.workload)
        key = (event.agent_id, event.client, event.env, event.principal, workload)
        found = self._identities.get(key)
        if found is None:
            if len(self._identities) >= _MAX_KEPT:
                self._identities.clear()
            found = self._identities[key] = Identity(
                agent_id=event.agent_id,
                client=Client(event.client) if event.client in _CLIENTS else Client.UNKNOWN,
                env=Env(event.env) if event.env in _ENVS else Env.UNKNOWN,
                principal=event.principal,
                workload=_decode_workload(workload),
            )
        return found


def _sorted(placed: Iterator[tuple[Key, Item]]) -> Iterator[tuple[Key, Item]]:
    """Sorts what is nearly in order: a thread may journal its call after a later one of another."""
    held: list[tuple[int, int, int, tuple[Key, Item]]] = []
    for number, each in enumerate(placed):
        seq, follows, _ = each[0]
        heapq.heappush(held, (seq, follows, number, each))
        if len(held) > _WINDOW:
            yield heapq.heappop(held)[-1]
    while held:
        yield heapq.heappop(held)[-1]


class _ShimEvents:
    """Turns the events of one shim into calls and ends, each with its key."""

    def __init__(self, reader: RunReader, run_id: str) -> None:
        self._reader = reader
        self._run_id = run_id
        self._started: dict[str, tuple[_Line, str | None]] = {}
        self._refused: set[str] = set()
        """calls of which a further round was refused: breakers do not count their end"""
        self._seq = 0
        self._tells_learning = False
        """whether this shim states when breakers learnt of an end; earlier versions did not"""

    def take(self, event: _Line, previews: dict[str, str | None]) -> tuple[Key, Item] | None:
        call_id = event.call.call_id
        if event.type == EventType.TOOL_CALL_START:
            text = event.call.preview.args_preview
            self._started[call_id] = event, previews.get(call_id) if text is None else text
        elif event.type == EventType.TOOL_CALL_DECISION:
            return self._decided(event)
        elif event.type == EventType.CALL_ROUND:
            decision = self._reader.decision(bytes(event.decision))
            if decision is not None and decision.said.action is not Action.ALLOW:
                self._refused.add(call_id)
        elif event.type == EventType.TOOL_CALL_END:
            if call_id in self._refused:
                self._refused.remove(call_id)
                return None
            return self._ended(event)
        elif event.type == EventType.TAINT_CHANGED:
            return self._level_changed(event)
        elif event.type in (EventType.RUN_START, EventType.AGENT_RESOLVED):
            facts = resolved(event.type, event.run.agent, event.agent)
            return None if facts is None else ((event.seq, 1, 0), facts)
        return None

    def _level_changed(self, event: _Line) -> tuple[Key, RecordedLevel] | None:
        try:
            change = _decode_change(event.taint)
        except MsgspecError:
            return None
        server_name = None if change.server_name is UNSET else change.server_name
        if server_name is not None and change.tool_name not in _READS:
            return None  # a call lowered the run, and is replayed
        self._seq = max(self._seq, change.seq)
        raises = TAINT_RANK[change.to] < TAINT_RANK[change.from_]
        return (self._seq, 1, parse_rfc3339(event.ts)), RecordedLevel(
            change.to, server_name, raises
        )

    def _decided(self, event: _Line) -> tuple[Key, RecordedCall] | None:
        start, text = self._started.pop(event.call.call_id, (None, None))
        decision = self._reader.decision(bytes(event.decision))
        if start is None or decision is None:
            return None
        call, preview = start.call, start.call.preview
        wall_ms = parse_rfc3339(start.ts)
        mono_ms = wall_ms if call.mono_ms is None else call.mono_ms
        self._tells_learning = call.mono_ms is not None
        self._seq = max(self._seq, call.seq or call.after_seq)
        given, hidden = given_on_record(bytes(call.given))
        found = RecordedCall(
            run_id=self._run_id,
            call_id=call.call_id,
            seq=call.seq,
            server_name=call.server_name,
            tool_name=call.tool_name,
            args_hash=call.args_hash,
            args=None
            if call.args_stream_hash is not None
            else known_args(
                text, truncated=preview.truncated, redacted=bool(preview.redaction_flags)
            ),
            identity=self._reader.identity(start),
            wall_ms=wall_ms,
            mono_ms=mono_ms,
            decision=decision,
            tags=frozenset(call.tags),
            targets=None if call.targets is None or call.targets.masked else call.targets,
            provider=provider_of(call.provider, call.transport, call.server_name),
            given=given,
            hidden=hidden,
        )
        return (call.seq, 0, mono_ms) if call.seq else (self._seq, 1, wall_ms), found

    def _ended(self, event: _Line) -> tuple[Key, RecordedEnd] | None:
        if event.status not in _STATUSES:
            return None
        status = Status(event.status)
        if event.after_seq is not None:
            self._seq = max(self._seq, event.after_seq)
        elif status is not Status.OK and (self._tells_learning or event.begun_by is not None):
            return None  # the run's counters were not available, so no breaker learnt of the end
        ended = RecordedEnd(event.call.call_id, status, event.latency_ms, event.mono_ms)
        return (self._seq, 1, event.mono_ms or 0), ended


_CLIENTS, _ENVS, _STATUSES, _LEVELS = (frozenset(words) for words in (Client, Env, Status, Taint))


def _lines_of(segment: StoredSegment) -> list[bytes]:
    try:
        return segment.lines()
    except zlib.error:
        return []  # `verify` reports damage; for replay these calls are not on record


def _note(found: RunSetting, event: _Line | None) -> None:
    if event is None:
        return
    if event.type == EventType.POLICY_LOADED and event.load and event.load.ok and event.policy:
        policy = event.policy
        found.loads.append(RecordedLoad(event.load.layer, policy.policy_id, policy.policy_hash))
    elif event.type == EventType.APPROVAL_DECIDED:
        try:
            given = _decode_approval(event.approval)
        except MsgspecError:
            return
        expires_ms = None if given.expires_at is UNSET else parse_rfc3339(given.expires_at)
        found.answers.append(RecordedAnswer(parse_rfc3339(event.ts), given, expires_ms))


def _start_of(event: _Line | None, known: Taint) -> Taint:
    if event is None or event.type != EventType.RUN_START or event.run.taint not in _LEVELS:
        return known
    return Taint(event.run.taint)


def _event(line: bytes) -> _Line | None:
    try:
        return _decode(line)
    except MsgspecError:
        return None
