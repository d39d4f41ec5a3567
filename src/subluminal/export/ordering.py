"""The order of a run's events in an artifact: that of the calls, and the same for the same calls.

Times would not do: shims that start at once write in any order. Each shim's own order is kept, so
its chain holds. What comes before a shim's first call stands at the beginning, shims by name.
"""

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from subluminal.contracts.codec import NO_EVENT
from subluminal.contracts.vocabulary import EventType
from subluminal.export.chain import ChainedSource

Road = Callable[[], Iterable[bytes]]
"""One shim's lines from the first on, as often as it is asked."""

_LAST = 1 << 62


class _Subject(msgspec.Struct, frozen=True):
    server_name: str = ""
    seq: int = 0


class _Peek(msgspec.Struct, frozen=True):
    source: ChainedSource
    type: str = ""
    run_id: str = ""
    call: _Subject = _Subject()
    health: _Subject = _Subject()


_peek = msgspec.json.Decoder(_Peek).decode


class _Rank(NamedTuple):
    is_shim: bool
    """`sub run` itself comes first"""
    server_name: str
    first_seq: int
    shim_id: str


def ordered(roads: Sequence[Road]) -> Iterator[bytes]:
    """Every event of a run. Lines that are no events are left out: no chain holds with them."""
    ranked = [(_rank(road), road) for road in roads]
    keyed = [_keyed(road, rank) for rank, road in sorted(ranked, key=lambda pair: pair[0])]
    for _, _, line in heapq.merge(*keyed, key=lambda place: place[:2]):
        yield line


def _rank(road: Road) -> _Rank:
    server_name = shim_id = ""
    for line in road():
        event = _event(line)
        if event is None:
            continue
        shim_id = event.source.shim_id
        server_name = server_name or event.call.server_name or event.health.server_name
        if event.type == EventType.TOOL_CALL_START:
            return _Rank(True, server_name, event.call.seq, shim_id)
    return _Rank(bool(server_name), server_name, 0, shim_id)


def _keyed(road: Road, rank: _Rank) -> Iterator[tuple[int, _Rank, bytes]]:
    """Each line with the number of the last call that had begun in its shim."""
    place = 0
    for line in road():
        event = _event(line)
        if event is None:
            continue
        if event.type == EventType.TOOL_CALL_START:
            place = max(place, event.call.seq)
        elif event.type == EventType.RUN_END or _is_sweeping(event, rank):
            place = _LAST
        yield place, rank, line


def _is_sweeping(event: _Peek, rank: _Rank) -> bool:
    """`sub run` tells of processes only when it clears up behind the agent."""
    return not rank.is_shim and event.type == EventType.SHIM_HEALTH


def _event(line: bytes) -> _Peek | None:
    try:
        event = _peek(line)
    except NO_EVENT:
        return None
    return event if event.type and event.source.shim_id else None
