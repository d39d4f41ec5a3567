"""Proves that stored runs follow from the events, in whatever order the events arrived."""

from collections.abc import Callable, Iterable
from typing import Any

import apsw

from subluminal.contracts.events import Event, RunEnd, RunStart
from subluminal.ledger.ingest.deriving_runs import ENDED, STARTED, run_ended, run_started
from subluminal.ledger.proof.findings import Report

Row = tuple[object, ...]


class RunProof:
    """Collects what events say of runs, then compares it with the stored rows."""

    def __init__(self) -> None:
        self._starts: dict[str, set[Row]] = {}
        self._ends: dict[str, set[Row]] = {}

    def feed(self, events: list[Event]) -> None:
        """Takes events in any order."""
        for event in events:
            if isinstance(event, RunStart):
                _keep(self._starts, event.run_id, run_started(event), min)
            elif isinstance(event, RunEnd):
                _keep(self._ends, event.run_id, run_ended(event), max)

    def compare(self, connection: apsw.Connection, report: Report) -> None:
        """Reports runs that are missing or changed."""
        for names, told in ((STARTED, self._starts), (ENDED, self._ends)):
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
    """Keeps the rows with the best time. Of several with that time, any may be stored."""
    kept = {*rows.get(run_id, ()), row}
    time = best(each[0] for each in kept)
    rows[run_id] = {each for each in kept if each[0] == time}


def _difference(names: tuple[str, ...], found: Row, rows: set[Row]) -> str:
    told = next(iter(rows))
    for name, stored, said in zip(names, found, told, strict=True):
        if stored != said:
            return f"`{name}` is `{stored}`; the events say `{said}`"
    return "it is not what the events say"
