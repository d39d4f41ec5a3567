"""Guards that wait, in a home of their own; answers come from real `sub` processes."""

import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.adapters.policies import bundle, rule
from tests.adapters.records import calls_of, events_of
from tests.processes import WITHIN_S, wait_until
from tests.shim.household import SUB

from subluminal import Guard
from subluminal.config.places import places
from subluminal.operator.approving import list_approvals


def asks(tool: str = "refund", require: str = "approval", **more: Any) -> dict[str, Any]:
    """A rule that lets calls of a tool pass only if a person agrees."""
    effect = {
        "action": "BLOCK",
        "reason_code": "ASK_FIRST",
        "message": "ask first",
        "require": require,
        **more,
    }
    return rule(f"ask-{tool}", "deny", effect, tool_name={"glob": [tool]})


def run_sub(*words: str, code: int = 0) -> str:
    """Runs `sub` in a process of its own, as a person would."""
    ran = subprocess.run(
        [*SUB, *words], capture_output=True, text=True, timeout=WITHIN_S, check=False
    )
    assert ran.returncode == code, ran.stderr
    return ran.stdout + ran.stderr


class Background:
    """A call in a thread of its own."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self.result: Any = None
        self.error: BaseException | None = None
        self._call = call
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.result = self._call()
        except BaseException as error:  # noqa: BLE001 - looked at by the test
            self.error = error

    @property
    def is_over(self) -> bool:
        return not self._thread.is_alive()

    def done(self) -> Any:
        """Waits for the end; returns the result, or the error."""
        self._thread.join(WITHIN_S)
        assert self.is_over, "it still waits"
        return self.result if self.error is None else self.error


class Desk:
    """Makes guards of one run, answers for them, and reads what they have recorded."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._guards: list[Guard] = []

    def guard(self, *rules: dict[str, Any], **options: Any) -> Guard:
        options = {"policy": bundle(*rules), "run_id": "run-1", **options}
        guard = Guard(agent_id="billing", **options)
        self._guards.append(guard)
        return guard

    def pending(self, besides: str = "") -> str:
        """Waits for an approval that is open; returns its id."""

        def find() -> str:
            found = list_approvals(places(os.environ)).approvals
            ids = [each.approval_id for each in found if each.approval_id != besides]
            return ids[0] if ids else ""

        return str(wait_until(find, "an open approval"))

    def events(self, *, threads: bool = True) -> list[dict[str, Any]]:
        """Closes all guards and returns the record, proven sound."""
        self.close()
        return events_of(self.home, threads=threads)

    def tries(self, tool: str = "refund") -> list[tuple[str, str, str | None]]:
        """Action, reason and `retry_of` of each call of a tool; the latter as the number of it."""
        calls = [each for each in calls_of(self.events()) if each[0]["call"]["tool_name"] == tool]
        ids = [call[0]["call"]["call_id"] for call in calls]
        return [
            (
                call[1]["decision"]["action"],
                call[1]["decision"]["explain"]["reason_code"],
                _number(ids, call[0]["call"].get("retry_of")),
            )
            for call in calls
        ]

    def close(self) -> None:
        while self._guards:
            self._guards.pop().close()


def _number(ids: list[str], call_id: str | None) -> Any:
    return None if call_id is None else ids.index(call_id)


@pytest.fixture
def desk(own_home: Path) -> Iterator[Desk]:
    desk = Desk(own_home)
    yield desk
    desk.close()
