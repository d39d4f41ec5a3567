"""The order of a run's events in an artifact: by call, and the same whenever the calls are.

Ordering by time would not be repeatable, because shims that start at once write in any order. Each
shim's events stay in its own order, so that its hash chain holds. Events before a shim's first call
come at the beginning, sorted by server name. The end of a call that another shim began (`begun_by`)
comes after the start of that call.
"""

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from subluminal.contracts.codec import NO_EVENT
from subluminal.contracts.vocabulary import EventType
from subluminal.export.chain import ChainedSource

ShimLines = Callable[[], Iterable[bytes]]
"""Returns the lines of one shim from the first on. It is called several times."""

_LAST = 1 << 62
_HANDED = b'"begun_by":'


class _Subject(msgspec.Struct, frozen=True):
    call_id: str = ""
    server_name: str = ""
    seq: int = 0


class _Peek(msgspec.Struct, frozen=True):
    source: ChainedSource
    type: str = ""
    run_id: str = ""
    begun_by: str = ""
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
    ranked.sort(key=lambda pair: pair[0])
    seqs = _handed_over(shims)
    keyed = [_keyed(lines, rank, seqs) for rank, lines in ranked]
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


def _handed_over(shims: Sequence[ShimLines]) -> dict[str, int]:
    """Returns the numbers of the calls that one shim began and another one ended, by call_id."""
    ends = (_event(line) for lines in shims for line in lines() if _HANDED in line)
    wanted = {each.call.call_id for each in ends if each is not None and each.begun_by}
    if not wanted:
        return {}
    events = (_event(line) for lines in shims for line in lines())
    return {
        each.call.call_id: each.call.seq
        for each in events
        if each is not None
        and each.type == EventType.TOOL_CALL_START
        and each.call.call_id in wanted
    }


def _keyed(
    lines: ShimLines, rank: _Rank, seqs: dict[str, int]
) -> Iterator[tuple[int, _Rank, bytes]]:
    """Yields each line with its place: even for the last call that its shim had started.

    The place after it, which is odd, is for the end of that call by another shim.
    """
    place = 0
    for line in lines():
        event = _event(line)
        if event is None:
            continue
        if event.type == EventType.TOOL_CALL_START:
            place = max(place, 2 * event.call.seq)
        elif event.begun_by:
            place = max(place, 2 * seqs.get(event.call.call_id, 0) + 1)
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
