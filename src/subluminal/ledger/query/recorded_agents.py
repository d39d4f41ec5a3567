"""Reads who acted in a run, as run_start and agent_resolved tell it."""

import zlib
from collections.abc import Iterator
from typing import Any

import apsw
import msgspec
from msgspec import MsgspecError, Raw, Struct

from subluminal.contracts.agents import AgentResolved
from subluminal.contracts.vocabulary import EventType
from subluminal.ledger.store.segments import of_shim
from subluminal.policy.replay.recorded import RecordedAgent, recorded_agent

_WORDS = (b'"run_start"', b'"agent_resolved"')


class RunAgent(Struct, frozen=True):
    """`run` of a run_start event."""

    agent: Raw = Raw(b"")


class _Line(Struct, frozen=True):
    type: str = ""
    run: RunAgent = RunAgent()
    agent: Raw = Raw(b"")
    seq: int = 0


_decode = msgspec.json.Decoder(_Line).decode
_decode_agent = msgspec.json.Decoder(AgentResolved).decode


def resolved(type_: str, run_agent: Raw, agent: Raw) -> RecordedAgent | None:
    """Returns the facts of an event; None if it has none, or none that this version can read."""
    raws = {EventType.RUN_START.value: run_agent, EventType.AGENT_RESOLVED.value: agent}
    raw = bytes(raws.get(type_, b""))
    if not raw:
        return None
    try:
        return recorded_agent(_decode_agent(raw))
    except MsgspecError:
        return None


def agent_of(connection: apsw.Connection, run_id: str, seq: int) -> RecordedAgent | None:
    """Returns the facts by which the call of a run with this number was decided."""
    found: dict[int, RecordedAgent] = {}
    for event in _events(connection, run_id):
        facts = resolved(event.type, event.run.agent, event.agent)
        if facts is not None and event.seq < seq:
            found[event.seq] = facts
    return found[max(found)] if found else None


def _events(connection: apsw.Connection, run_id: str) -> Iterator[_Line]:
    rows: Any = connection.execute("SELECT id FROM shims WHERE run_id = ? ORDER BY id", (run_id,))
    for (shim,) in rows.fetchall():
        for segment in of_shim(connection, shim):
            try:
                lines = [line for line in segment.lines() if any(word in line for word in _WORDS)]
                yield from map(_decode, lines)
            except (zlib.error, MsgspecError):
                continue  # `verify` reports damage; these facts are not on record
