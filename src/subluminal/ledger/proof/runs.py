"""Proves that stored runs follow from the events, in whatever order the events arrived."""

from collections.abc import Callable, Iterable
from typing import Any

import apsw

from subluminal.contracts.events import Event, RunEnd, RunStart
from subluminal.ledger.ingest.deriving_runs import ENDED, STARTED, run_ended, run_started
from subluminal.ledger.proof.findings import Report
from subluminal.ledger.store.segments import runs_with_drops

Row = tuple[object, ...]

_CALLS = (
    "SELECT r.run_id, r.calls, ifnull(c.calls, 0) FROM runs r LEFT JOIN "
    "(SELECT run_id, count(*) AS calls FROM tool_calls GROUP BY run_id) c USING (run_id)"
)


class RunProof:
    """Collects what events say of runs, then compares it with the stored rows."""

    def __init__(self) -> None:
        self._starts: dict[str, set[Row]] = {}
        self._ends: dict[str, set[Row]] = {}
        self.runs: set[str] = set()
        """every run that an event names"""

    def feed(self, events: list[Event]) -> None:
        """Takes events in any order."""
        for event in events:
            if isinstance(event, RunStart):
                _keep(self._starts, event.run_id, run_started(event), min)
            elif isinstance(event, RunEnd):
                _keep(self._ends, event.run_id, run_ended(event), max)

    def compare(self, connection: apsw.Connection, report: Report) -> None:
        """Reports runs that are missing or changed.

        A run whose events were dropped in part may have begun before the events that are left.
        """
        dropped = runs_with_drops(connection)
        for names, told, best in ((STARTED, self._starts, min), (ENDED, self._ends, max)):
            sql = f"SELECT {', '.join(names)} FROM runs WHERE run_id = ?"
            for run_id, rows in told.items():
                found = connection.execute(sql, (run_id,)).fetchone()
                if found is None:
                    report.add("runs", f"run `{run_id}`", "the row is missing")
                elif found not in rows and not (
                    run_id in dropped and _is_better(found, rows, best)
                ):
                    report.add("runs", f"run `{run_id}`", _difference(names, found, rows))

    def compare_calls(self, connection: apsw.Connection, report: Report) -> None:
        """Reports runs without an event, or with a wrong number of calls.

        Retention leaves both as they are, when it drops events of a run.
        """
        dropped = runs_with_drops(connection)
        for run_id, stored, counted in connection.execute(_CALLS):
            if run_id in dropped:
                continue
            if run_id not in self.runs:
                report.add("runs", f"run `{run_id}`", "there is no event for it")
            elif stored != counted:
                message = f"`calls` is {stored}; there are {counted} calls"
                report.add("runs", f"run `{run_id}`", message)


def _keep(
    rows: dict[str, set[Row]], run_id: str, row: Row, best: Callable[[Iterable[Any]], Any]
) -> None:
    """Keeps the rows with the best time. Of several with that time, any may be stored."""
    kept = {*rows.get(run_id, ()), row}
    time = best(each[0] for each in kept)
    rows[run_id] = {each for each in kept if each[0] == time}


def _is_better(found: Row, rows: set[Row], best: Callable[[Iterable[Any]], Any]) -> bool:
    """Whether a stored row has a time that would be kept before those that events tell."""
    told = next(iter(rows))[0]
    return found[0] not in (None, told) and best([found[0], told]) == found[0]


def _difference(names: tuple[str, ...], found: Row, rows: set[Row]) -> str:
    told = next(iter(rows))
    for name, stored, said in zip(names, found, told, strict=True):
        if stored != said:
            return f"`{name}` is `{stored}`; the events say `{said}`"
    return "it is not what the events say"
