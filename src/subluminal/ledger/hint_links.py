"""Links hints to the calls that followed them, as calls come in, whatever order they come in.

Of the calls of one tool in one run only the last can be hinted and unanswered, so calls that come
in order need no look at the ledger. The rest is looked up there, hint by hint.
"""

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import apsw
from msgspec import Struct

from subluminal.ledger.batch import Batch
from subluminal.ledger.hint_outcomes import Place, place, tool_of
from subluminal.ledger.rows import Call, columns

MAX_RUNS = 4_096
"""Runs that are remembered."""

_CALL = ", ".join(f"c.{name}" for name in columns(Call).split(", "))
_WIDTH = len(Call.__struct_fields__)
_OF_TOOL = "c.run_id = ?1 AND c.server_name = ?2 AND c.tool_name = ?3 AND c.decision IS NOT NULL"
_PLACE = "ifnull(c.seq, 0), c.id"
_BACKWARDS = "ifnull(c.seq, 0) DESC, c.id DESC LIMIT 1"
_TOOLS = (
    "SELECT DISTINCT c.server_name, c.tool_name FROM hints h JOIN tool_calls c USING (id) "
    "WHERE h.run_id = ?"
)
_NEXT = (
    f"SELECT {_CALL} FROM tool_calls c INDEXED BY calls_by_run "
    f"WHERE {_OF_TOOL} AND c.created_at >= ?4 AND (c.created_at, {_PLACE}) > (?4, ?5, ?6) "
    f"ORDER BY c.created_at, {_PLACE} LIMIT 1"
)
_LAST = (
    f"SELECT {_CALL}, EXISTS (SELECT 1 FROM hints h WHERE h.id = c.id) "
    f"FROM tool_calls c INDEXED BY calls_by_run WHERE {_OF_TOOL} "
    f"ORDER BY c.created_at DESC, {_BACKWARDS}"
)
# A hint's time is that of its call, and has an index.
_HINTED = (
    f"SELECT {_CALL}, h.next_id, n.created_at, ifnull(n.seq, 0), n.id "
    "FROM hints h INDEXED BY hints_by_run CROSS JOIN tool_calls c ON c.id = h.id "
    f"LEFT JOIN tool_calls n ON n.id = h.next_id WHERE h.run_id = ?1 AND {_OF_TOOL} "
)
_HINTED_BEFORE = (
    f"{_HINTED} AND h.created_at <= ?4 AND (h.created_at, {_PLACE}) < (?4, ?5, ?6) "
    f"ORDER BY h.created_at DESC, {_BACKWARDS}"
)
_HINTED_SINCE = (
    f"{_HINTED} AND h.created_at BETWEEN ?4 AND ?7 AND (h.created_at, {_PLACE}) >= (?4, ?5, ?6)"
)
_LINK = (
    "UPDATE hints SET next_id = ?, outcome = hint_outcome(?, ?, ?, ?, ?, suggested_args_json) "
    "WHERE id = ?"
)
_GAVE_UP = (
    "UPDATE hints SET outcome = 'gave_up' WHERE run_id = ?1 AND next_id IS NULL "
    "AND outcome = 'pending' "
    "AND created_at <= (SELECT ended_at FROM runs WHERE run_id = ?1)"
)

Tool = tuple[str, str]
Link = tuple[Call, Call]


class _Track(Struct):
    """The calls of one tool in one run, in which a hint was given."""

    last: Place | None = None
    """of its last decided call; None until it is looked up"""
    hinted: Call | None = None
    """that call, if it was hinted"""


class HintLinks:
    """Keeps `next_id` and `outcome` of hints true."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._runs: OrderedDict[str, dict[Tool, _Track]] = OrderedDict()

    def write(self, batch: Batch) -> None:
        """Writes what a batch, whose rows are written already, says of hints."""
        hinted = [_call(batch, row_id) for row_id in batch.hints]
        # An event may name another run than the one that its call began in.
        earlier = (call.run_id for call in batch.changed_calls.values())
        tracked = {run_id: self._tracks(run_id) for run_id in {*batch.runs, *earlier}}
        for call in hinted:
            tracked[call.run_id].setdefault(tool_of(call), _Track())
        tracked = {run_id: tracks for run_id, tracks in tracked.items() if tracks}
        if not tracked:
            return
        links = [
            link
            for (run_id, tool), calls in _decided(batch, tracked).items()
            for link in self._links(batch, tracked[run_id][tool], calls)
        ]
        self._connection.executemany(_LINK, map(_link_row, links))
        self._give_up(batch, tracked, {call.run_id for call in hinted})

    def _tracks(self, run_id: str) -> dict[Tool, _Track]:
        """The tools of a run that were hinted at, each to be looked up when it is called."""
        tracks = self._runs.get(run_id)
        if tracks is None:
            tools = self._connection.execute(_TOOLS, (run_id,))
            tracks = self._runs[run_id] = {(str(one), str(two)): _Track() for one, two in tools}
            if len(self._runs) > MAX_RUNS:
                self._runs.popitem(last=False)
        else:
            self._runs.move_to_end(run_id)
        return tracks

    def _links(self, batch: Batch, track: _Track, calls: list[Call]) -> Iterator[Link]:
        calls.sort(key=place)
        are_new = all(call.id >= batch.first_new_id for call in calls)
        if track.last is None or place(calls[0]) <= track.last or not are_new:
            yield from self._looked_up(batch, calls)
            self._look_up_last(track, calls[0])
            return
        known = calls if track.hinted is None else [track.hinted, *calls]
        for call, following in pairwise(known):
            if call is track.hinted or call.id in batch.hints:
                yield call, following
        last = calls[-1]
        track.last = place(last)
        track.hinted = last if last.id in batch.hints else None

    def _looked_up(self, batch: Batch, calls: list[Call]) -> Iterator[Link]:
        """Links of calls that came late, or whose tool nobody remembers."""
        execute = self._connection.execute
        places = [place(call) for call in calls]
        first = (calls[0].run_id, *tool_of(calls[0]), *places[0])
        fresh = {call.id for call in calls}
        stored = [*execute(_HINTED_BEFORE, first), *execute(_HINTED_SINCE, (*first, places[-1][0]))]
        for row in stored:
            call, next_id, known = Call(*row[:_WIDTH]), row[_WIDTH], row[_WIDTH + 1 :]
            if call.id in fresh:
                found = execute(_NEXT, (call.run_id, *tool_of(call), *place(call))).fetchone()
                if found is not None:
                    yield call, Call(*found)
            else:
                index = bisect_right(places, place(call))
                if index < len(calls) and _is_nearer(places[index], next_id, known):
                    yield call, calls[index]

    def _look_up_last(self, track: _Track, call: Call) -> None:
        found = self._connection.execute(_LAST, (call.run_id, *tool_of(call))).fetchone()
        assert found is not None  # the call itself, if nothing came after it
        last = Call(*found[:_WIDTH])
        track.last = place(last)
        track.hinted = last if found[_WIDTH] else None

    def _give_up(
        self, batch: Batch, tracked: dict[str, dict[Tool, _Track]], hinted: set[str]
    ) -> None:
        ended = {run_id for run_id, run in batch.runs.items() if run.ends}
        for run_id in tracked:
            if run_id in ended or run_id in hinted:
                self._connection.execute(_GAVE_UP, (run_id,))


def _call(batch: Batch, row_id: int) -> Call:
    if row_id < batch.first_new_id:
        return batch.changed_calls[row_id]
    return batch.new_calls[row_id - batch.first_new_id]


def _decided(
    batch: Batch, tracked: dict[str, dict[Tool, _Track]]
) -> dict[tuple[str, Tool], list[Call]]:
    """The calls that a batch decided, as far as their tools were hinted at."""
    found: dict[tuple[str, Tool], list[Call]] = {}
    changed = (call for call in batch.changed_calls.values() if _is_news(batch, call))
    for calls in (batch.new_calls, changed):
        for call in calls:
            tracks = tracked.get(call.run_id)
            if tracks is not None and call.decision is not None:
                tool = tool_of(call)
                if tool in tracks:
                    found.setdefault((call.run_id, tool), []).append(call)
    return found


def _is_news(batch: Batch, call: Call) -> bool:
    """Whether an earlier call was decided, decided once more, or hinted only now."""
    _, _, _, decision, _, rule_id = batch.counted_before[call.id]
    return (decision, rule_id) != (call.decision, call.rule_id or "") or call.id in batch.hints


def _is_nearer(found: Place, next_id: object, known: tuple[Any, ...]) -> bool:
    """Whether a call follows a hint before the one that is linked, or is that one, decided anew."""
    if next_id is None:
        return True
    # What retention took was nearer than all that comes later.
    return known[-1] is not None and found <= known


def _link_row(link: Link) -> tuple[object, ...]:
    call, following = link
    judged = (following.args_hash, following.decision, following.rule_id)
    return (following.id, call.args_hash, call.rule_id, *judged, call.id)
