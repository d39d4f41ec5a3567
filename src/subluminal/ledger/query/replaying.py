"""Replays recorded calls: against a candidate, or against a policy before and after a change."""

from collections.abc import Callable, Iterable, Iterator

import apsw

from subluminal.contracts.vocabulary import Layer
from subluminal.core.contents.source import data_in
from subluminal.core.policies.installed import installed_judge
from subluminal.core.targets.reading import targets_later
from subluminal.errors import SubluminalError
from subluminal.ledger.query.policies import find_policy
from subluminal.ledger.query.recorded_runs import RunReader, run_ids
from subluminal.policy.replay.comparing import Replayed
from subluminal.policy.replay.layering import FindSnapshot, Layering
from subluminal.policy.replay.recorded import (
    RecordedAgent,
    RecordedCall,
    RecordedEnd,
    RecordedLevel,
)
from subluminal.policy.replay.replaying import RunReplay
from subluminal.policy.replay.tallying import Backtest, Tally
from subluminal.policy.snapshot import Snapshot


class LedgerReplay:
    """Replays recorded calls against a candidate. `tally` is complete once `rows` is exhausted."""

    def __init__(
        self,
        connection: apsw.Connection,
        candidate: Snapshot,
        *,
        layer: Layer | None = None,
        since_ms: int | None = None,
    ) -> None:
        self._connection = connection
        self._reader = RunReader(connection)
        self._since_ms = since_ms
        self.layering = Layering(candidate, snapshots_of(connection), layer)
        self.tally = Tally()

    def rows(self, runs: Iterable[str] | None = None) -> Iterator[Replayed]:
        """Every call of these runs, or of all runs with an event since then.

        A run is always replayed from its beginning, because its counters start there.
        """
        if runs is None:
            runs = run_ids(self._connection, self._since_ms)
        for run_id in runs:
            known = self._reader.setting(run_id)
            layering = self.layering.of_run(known.loads)
            replay = RunReplay(
                *(layering, known.answers, targets_later, known.start, installed_judge),
                read_data=data_in,
            )
            calls = 0
            for item in self._reader.items(run_id):
                if not isinstance(item, RecordedCall):
                    _go_on(replay, item)
                    continue
                replayed = replay.decide(item)
                if item.wall_ms >= (self._since_ms or 0):
                    calls += 1
                    self.tally.add(replayed)
                    yield replayed
            if calls:
                self.tally.add_run(replay)


def backtest(
    connection: apsw.Connection,
    before: Snapshot,
    after: Snapshot,
    *,
    layer: Layer | None = None,
    since_ms: int | None = None,
    tool: tuple[str, str] | None = None,
    watch: Callable[[int], None] | None = None,
) -> Backtest:
    """What changing a policy from `before` to `after` would have done to the calls since then.

    Both policies are replayed, so the policy that was in force at the time does not matter; the
    other layers that were in force do. With a tool (server name, tool name), only runs that called
    the tool are replayed, because the change cannot concern any other run. After each run, `watch`
    gets the number of calls so far.
    """
    find = snapshots_of(connection)
    reader = RunReader(connection)
    layerings = [Layering(each, find, layer) for each in (before, after)]
    found = Backtest()
    for run_id in run_ids(connection, since_ms, tool):
        known = reader.setting(run_id)
        replays = [
            RunReplay(
                *(each.of_run(known.loads), known.answers, targets_later, known.start),
                installed_judge,
                data_in,
            )
            for each in layerings
        ]
        for item in reader.items(run_id):
            if not isinstance(item, RecordedCall):
                for replay in replays:
                    _go_on(replay, item)
                continue
            then, now = (replay.decide(item) for replay in replays)
            if item.wall_ms >= (since_ms or 0):
                found.add(then, now)
        if watch is not None:
            watch(found.calls)
    return found


def _go_on(replay: RunReplay, item: RecordedEnd | RecordedLevel | RecordedAgent) -> None:
    if isinstance(item, RecordedEnd):
        replay.end(item)
    elif isinstance(item, RecordedAgent):
        replay.resolve(item)
    else:
        replay.change_level(item)


def snapshots_of(connection: apsw.Connection) -> FindSnapshot:
    """A function that finds recorded policies by their hash. `Layering` caches the results."""

    def find(policy_hash: str) -> Snapshot | None:
        text = find_policy(connection, policy_hash)
        try:
            return None if text is None else Snapshot.from_json(text)
        except SubluminalError:
            return None  # compiled by another version: treated as not on record

    return find
