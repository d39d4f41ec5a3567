"""Doors into a home of its own, closed with the test."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.adapters.in_process.paying import AMOUNTS, KIND, paying
from tests.adapters.records import events_of

from subluminal.kernel import IntentEnvelope
from subluminal.sdk import Done, KernelDoor, open_kernel


class Till:
    """A door for the pack `pay`, and a handler that notes what it paid."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.paid: list[Any] = []
        self.on_pay: Callable[[IntentEnvelope], Any] = lambda envelope: {"ok": True}
        self.pack: Any = paying()
        self._door: KernelDoor | None = None

    def open(self, **options: Any) -> KernelDoor:
        self.close()
        self._door = open_kernel(self.pack, **{"run_id": "run-1", **options})
        return self._door

    @property
    def door(self) -> KernelDoor:
        return self._door or self.open()

    def execute(self, amount: Any, nonce: str | None = None, **options: Any) -> Done:
        if isinstance(amount, str):
            amount = AMOUNTS[amount]
        return self.door.execute(
            options.pop("kind", KIND),
            options.pop("payload", {"amount": amount}),
            **{"state": {"open": True}, "handler": self._pay, **options},
            nonce=nonce or f"n-{amount}",
        )

    def _pay(self, envelope: IntentEnvelope) -> Any:
        self.paid.append(envelope.payload["amount"])
        return self.on_pay(envelope)

    def write_policy(self, bundle: dict[str, Any]) -> None:
        self.home.mkdir(mode=0o700, exist_ok=True)
        (self.home / "policy.yaml").write_text(json.dumps(bundle))

    def events(self, *, threads: bool = False) -> list[dict[str, Any]]:
        """Ends the door and returns the record, proven sound."""
        self.close()
        return events_of(self.home, threads=threads)

    def close(self) -> None:
        if self._door is not None:
            self._door.close()
            self._door = None


@pytest.fixture
def till(own_home: Path) -> Iterator[Till]:
    till = Till(own_home)
    yield till
    till.close()
