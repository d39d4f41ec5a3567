"""Guards in a home of their own, closed with the test."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.adapters.policies import bundle
from tests.adapters.records import calls_of, events_of

from subluminal import Guard


class Office:
    """Makes guards of one run, and reads what they have recorded."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._guards: list[Guard] = []

    def guard(self, *rules: dict[str, Any], **options: Any) -> Guard:
        """Returns a guard under these rules; without rules, without a policy."""
        if rules:
            options = {"policy": bundle(*rules), **options}
        guard = Guard(**{"run_id": "run-1", "agent_id": "billing", **options})
        self._guards.append(guard)
        return guard

    def events(self, *, threads: bool = False) -> list[dict[str, Any]]:
        """Closes all guards and returns the record, proven sound."""
        self.close()
        return events_of(self.home, threads=threads)

    def calls(self) -> list[list[dict[str, Any]]]:
        """The same by calls: start, decision and end of each."""
        return calls_of(self.events())

    def ends(self) -> list[tuple[str, Any]]:
        """Status and result of each call; of one that failed, its error message."""
        ends = [call[-1] for call in self.calls()]
        return [
            (end["status"], end["error"]["message"] if "error" in end else _result(end))
            for end in ends
        ]

    def close(self) -> None:
        while self._guards:
            self._guards.pop().close()


def _result(end: dict[str, Any]) -> Any:
    return end["preview"].get("result_preview")


@pytest.fixture
def office(own_home: Path) -> Iterator[Office]:
    office = Office(own_home)
    yield office
    office.close()
