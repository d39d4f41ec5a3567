"""The order of a run's events in an artifact: by call, and the same whenever the calls are.

Ordering by time would not be repeatable, because shims that start at once write in any order. Each
shim's events stay in its own order, so that its hash chain holds. Events before a shim's first call
come at the beginning, sorted by server name.
"""

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from subluminal.contracts.codec import NO_EVENT
from subluminal.contracts.vocabulary import EventType
from subluminal.export.chain import ChainedSource

ShimLines = Callable[[], Iterable[bytes]]
"""Returns the lines of one shim from the first on. It is called twice."""

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
    """Sort key of a shim among those of its run. `sub run` itself comes first."""

    is_shim: bool
    server_name: str
    first_seq: int
    shim_id: str


def ordered(shims: Sequence[ShimLines]) -> Iterator[bytes]:
    """Yields every event of a run. Lines that are not events have no chain and are left out."""
    ranked = [(_rank(lines), lines) for lines in shims]
    keyed = [_keyed(lines, rank) for rank, lines in sorted(ranked, key=lambda pair: pair[0])]
    for _, _, line in heapq.merge(*keyed, key=lambda place: place[:2]):
        yield line


def _rank(lines: ShimLines) -> _Rank:
    server_name = shim_id = ""
    for line in lines():
        event = _event(line)
        if event is None:
            continue
        shim_id = event.source.shim_id
        server_name = server_name or event.call.server_name or event.health.server_name
        if event.type == EventType.TOOL_CALL_START:
            return _Rank(True, server_name, event.call.seq, shim_id)
    return _Rank(bool(server_name), server_name, 0, shim_id)


def _keyed(lines: ShimLines, rank: _Rank) -> Iterator[tuple[int, _Rank, bytes]]:
    """Yields each line with the number of the last call that its shim had started."""
    place = 0
    for line in lines():
        event = _event(line)
        if event is None:
            continue
        if event.type == EventType.TOOL_CALL_START:
            place = max(place, event.call.seq)
        elif event.type == EventType.RUN_END or _is_sweeping(event, rank):
            place = _LAST
        yield place, rank, line


def _is_sweeping(event: _Peek, rank: _Rank) -> bool:
    """`sub run` reports processes only when it cleans up after the agent."""
    return not rank.is_shim and event.type == EventType.SHIM_HEALTH


def _event(line: bytes) -> _Peek | None:
    try:
        event = _peek(line)
    except NO_EVENT:
        return None
    return event if event.type and event.source.shim_id else None
