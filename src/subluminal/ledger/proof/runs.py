"""Proves that stored runs follow from the events, whatever order those came in."""

from collections.abc import Callable, Iterable
from typing import Any

import apsw

from subluminal.contracts.events import Event, RunEnd, RunStart
from subluminal.ledger.proof.findings import Report
from subluminal.ledger.store import run_rows

_STARTED = (
    "started_at",
    "agent_id",
    "client",
    "env",
    "principal",
    "mode",
    "policy_id",
    "policy_version",
    "policy_hash",
    "metadata_json",
    "workload_json",
)
_ENDED = ("ended_at", "status", "summary_json")

Row = tuple[object, ...]


class RunProof:
    """Collects what events say of runs; every event of another kind was proven elsewhere."""

    def __init__(self) -> None:
        self._starts: dict[str, set[Row]] = {}
        self._ends: dict[str, set[Row]] = {}

    def feed(self, events: list[Event]) -> None:
        """Takes events in any order."""
        for event in events:
            if isinstance(event, RunStart):
                row = run_rows.started_row(event)[:-1]
                _keep(self._starts, event.run_id, row, min)
            elif isinstance(event, RunEnd):
                row = run_rows.ended_row(event)[:-1]
                _keep(self._ends, event.run_id, row, max)

    def compare(self, connection: apsw.Connection, report: Report) -> None:
        """Finds runs that are stored otherwise."""
        for names, told in ((_STARTED, self._starts), (_ENDED, self._ends)):
            sql = f"SELECT {', '.join(names)} FROM runs WHERE run_id = ?"
            for run_id, rows in told.items():
                found = connection.execute(sql, (run_id,)).fetchone()
                if found is None:
                    report.add("runs", f"run `{run_id}`", "the row is missing")
                elif found not in rows:
                    report.add("runs", f"run `{run_id}`", _difference(names, found, rows))


def _keep(
    rows: dict[str, set[Row]], run_id: str, row: Row, best: Callable[[Iterable[Any]], Any]
) -> None:
    """Keeps the rows with the best time: of equal ones, either may have been stored."""
    kept = {*rows.get(run_id, ()), row}
    time = best(each[0] for each in kept)
    rows[run_id] = {each for each in kept if each[0] == time}


def _difference(names: tuple[str, ...], found: Row, rows: set[Row]) -> str:
    told = next(iter(rows))
    for name, stored, said in zip(names, found, told, strict=True):
        if stored != said:
            return f"`{name}` is `{stored}`; the events say `{said}`"
    return "it is not what the events tell"
