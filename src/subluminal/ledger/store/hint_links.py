"""Links each hint to the call that followed it, as calls arrive in any order.

The next call of the same tool in the same run decides what came of a hint (`ingest.hint_outcomes`).
For each tool of a run that was ever hinted, this keeps the last decided call in memory (`_Track`).
As long as calls arrive in order, only that last call can be hinted and still without a next call,
so a batch needs no look into the ledger. Calls that arrive late are looked up there, hint by hint.
"""

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator
from operator import attrgetter
from typing import Any

import apsw
from msgspec import Struct

from subluminal.ledger.ingest.batch import Batch
from subluminal.ledger.ingest.hint_outcomes import OrderKey, order_key, tool_of
from subluminal.ledger.ingest.rows import Call

MAX_RUNS = 4_096
"""The most runs whose tools are kept in memory."""

_PLACE = "c.created_at, ifnull(c.seq, 0), c.id"
_BACKWARDS = "ifnull(c.seq, 0) DESC, c.id DESC LIMIT 1"
_OF_TOOL = "c.run_id = ?1 AND c.server_name = ?2 AND c.tool_name = ?3 AND c.decision IS NOT NULL"
_TOOLS = (
    "SELECT DISTINCT c.server_name, c.tool_name FROM hints h JOIN tool_calls c USING (id) "
    "WHERE h.run_id = ?"
)
_NEXT = (
    f"SELECT {_PLACE} FROM tool_calls c INDEXED BY calls_by_run "
    f"WHERE {_OF_TOOL} AND c.created_at >= ?4 AND ({_PLACE}) > (?4, ?5, ?6) "
    f"ORDER BY {_PLACE} LIMIT 1"
)
_LAST = (
    f"SELECT {_PLACE} FROM tool_calls c INDEXED BY calls_by_run WHERE {_OF_TOOL} "
    f"ORDER BY c.created_at DESC, {_BACKWARDS}"
)
_IS_HINTED = "SELECT 1 FROM hints WHERE id = ?"
# A hint has the time of its call, and its time is indexed.
_HINTED = (
    f"SELECT {_PLACE}, h.next_id, n.created_at, ifnull(n.seq, 0), n.id "
    "FROM hints h INDEXED BY hints_by_run CROSS JOIN tool_calls c ON c.id = h.id "
    f"LEFT JOIN tool_calls n ON n.id = h.next_id WHERE h.run_id = ?1 AND {_OF_TOOL} "
)
_HINTED_BEFORE = (
    f"{_HINTED} AND h.created_at <= ?4 AND ({_PLACE}) < (?4, ?5, ?6) "
    f"ORDER BY h.created_at DESC, {_BACKWARDS}"
)
_HINTED_SINCE = f"{_HINTED} AND h.created_at BETWEEN ?4 AND ?7 AND ({_PLACE}) >= (?4, ?5, ?6)"
_LINK = (
    "UPDATE hints SET next_id = ?1, outcome = (SELECT hint_outcome(c.args_hash, c.rule_id, "
    "n.args_hash, n.decision, n.rule_id, hints.suggested_args_json) "
    "FROM tool_calls c, tool_calls n WHERE c.id = hints.id AND n.id = ?1) WHERE id = ?2"
)
_GAVE_UP = (
    "UPDATE hints SET outcome = 'gave_up' WHERE run_id = ?1 AND outcome = 'pending' "
    "AND created_at <= (SELECT ended_at FROM runs WHERE run_id = ?1)"
)

Tool = tuple[str, str]
ToolOfRun = tuple[str, str, str]
Link = tuple[int, int]
"""row id of a call, and row id of the hinted call that it follows"""


class _Track(Struct):
    """A tool of a run that was hinted at least once."""

    last: OrderKey | None = None
    """sort key of its last decided call; None until it is looked up"""
    is_hinted: bool = False
    """whether the last decided call was hinted"""


class HintLinks:
    """Keeps `next_id` and `outcome` of hints up to date."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._runs: OrderedDict[str, dict[Tool, _Track]] = OrderedDict()

    def write(self, batch: Batch) -> None:
        """Links the hints that a batch concerns. The batch's rows must be written already."""
        hinted = [_call(batch, row_id) for row_id in batch.hints]
        # An event may name another run than the one in which its call began.
        earlier = (call.run_id for call in batch.changed_calls.values())
        tracked = {run_id: self._tracks(run_id) for run_id in {*batch.runs, *earlier}}
        for call in hinted:
            tracked[call.run_id].setdefault(tool_of(call), _Track())
        calls = _BatchCalls(batch, hinted, tracked)
        links = [
            link
            for tool, keys in calls.decided.items()
            for link in self._links(calls, tracked[tool[0]][tool[1:]], tool, keys)
        ]
        self._connection.executemany(_LINK, links)
        self._give_up(batch, tracked, {call.run_id for call in hinted})

    def _tracks(self, run_id: str) -> dict[Tool, _Track]:
        """The hinted tools of a run. Their last calls are looked up when they are called again."""
        tracks = self._runs.get(run_id)
        if tracks is None:
            tools = self._connection.execute(_TOOLS, (run_id,))
            tracks = self._runs[run_id] = {(str(one), str(two)): _Track() for one, two in tools}
            if len(self._runs) > MAX_RUNS:
                self._runs.popitem(last=False)
        else:
            self._runs.move_to_end(run_id)
        return tracks

    def _links(
        self, calls: "_BatchCalls", track: _Track, tool: ToolOfRun, keys: list[OrderKey]
    ) -> Iterator[Link]:
        if track.last is None or keys[0] <= track.last or tool in calls.late:
            yield from self._looked_up(tool, keys)
            self._look_up_last(track, tool)
            return
        if track.is_hinted:
            yield keys[0][2], track.last[2]
        hinted = calls.hinted.get(tool, ())
        for each in hinted:
            following = bisect_right(keys, each)
            if following < len(keys):
                yield keys[following][2], each[2]
        track.last = keys[-1]
        track.is_hinted = keys[-1] in hinted

    def _looked_up(self, tool: ToolOfRun, keys: list[OrderKey]) -> Iterator[Link]:
        """Links of calls that arrived late, or whose tool is not in memory."""
        execute = self._connection.execute
        fresh = set(keys)
        first = (*tool, *keys[0])
        stored = [*execute(_HINTED_BEFORE, first), *execute(_HINTED_SINCE, (*first, keys[-1][0]))]
        for row in stored:
            hinted, next_id, known = row[:3], row[3], row[4:]
            if hinted in fresh:
                found = execute(_NEXT, (*tool, *hinted)).fetchone()
                if found is not None:
                    yield found[2], hinted[2]
            else:
                index = bisect_right(keys, hinted)
                if index < len(keys) and _is_nearer(keys[index], next_id, known):
                    yield keys[index][2], hinted[2]

    def _look_up_last(self, track: _Track, tool: ToolOfRun) -> None:
        execute = self._connection.execute
        # There is at least one: a call of this batch.
        track.last = last = next(execute(_LAST, tool))
        track.is_hinted = execute(_IS_HINTED, (last[2],)).fetchone() is not None

    def _give_up(
        self, batch: Batch, tracked: dict[str, dict[Tool, _Track]], hinted: set[str]
    ) -> None:
        ended = {run_id for run_id, run in batch.runs.items() if run.ends}
        for run_id, tracks in tracked.items():
            if tracks and (run_id in ended or run_id in hinted):
                self._connection.execute(_GAVE_UP, (run_id,))


_tool = attrgetter("run_id", "server_name", "tool_name")


class _BatchCalls:
    """The calls of a batch that are for hinted tools."""

    def __init__(
        self, batch: Batch, hinted: list[Call], tracked: dict[str, dict[Tool, _Track]]
    ) -> None:
        self.decided: dict[ToolOfRun, list[OrderKey]] = {
            (run_id, *tool): [] for run_id, tracks in tracked.items() for tool in tracks
        }
        """sort keys of decided calls, in order"""
        self.hinted: dict[ToolOfRun, list[OrderKey]] = {}
        self.late: set[ToolOfRun] = set()
        """tools with an earlier call that this batch decided, decided again, or hinted"""
        for call in hinted:
            self.hinted.setdefault(_tool(call), []).append(order_key(call))
        if self.decided:
            self._add(batch.new_calls)
            changed = [
                call for call in batch.changed_calls.values() if _is_news_for_hints(batch, call)
            ]
            self.late = set(map(_tool, changed)) & self.decided.keys()
            self._add(changed)
        self.decided = {tool: sorted(keys) for tool, keys in self.decided.items() if keys}

    def _add(self, calls: list[Call]) -> None:
        # Runs for every call of a batch, so it does as little as possible.
        find = self.decided.get
        for call, tool in zip(calls, map(_tool, calls), strict=True):
            keys = find(tool)
            if keys is not None and call.decision is not None:
                keys.append((call.created_at, call.seq or 0, call.id))


def _call(batch: Batch, row_id: int) -> Call:
    if row_id < batch.first_new_id:
        return batch.changed_calls[row_id]
    return batch.new_calls[row_id - batch.first_new_id]


def _is_news_for_hints(batch: Batch, call: Call) -> bool:
    """Whether this batch decided, decided again, or hinted a call of an earlier batch."""
    _, _, _, decision, _, rule_id = batch.counted_before[call.id]
    return (decision, rule_id) != (call.decision, call.rule_id or "") or call.id in batch.hints


def _is_nearer(found: OrderKey, next_id: object, known: tuple[Any, ...]) -> bool:
    """Whether a call is the linked one, or before it. `known` is the linked call's sort key."""
    if next_id is None:
        return True
    # Without a key, retention dropped the linked call, which was earlier than any call left.
    return known[-1] is not None and found <= known
