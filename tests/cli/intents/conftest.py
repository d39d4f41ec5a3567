"""A home with an in-process door and a ledger that follows its journals."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.intents.refunds import KIND, refunds
from tests.ledger.home import Home

from subluminal.sdk import Done, KernelDoor, open_kernel


class Agent:
    """An agent that proposes refunds, and what `sub` tells of them."""

    def __init__(self, home: Home, sub: Callable[..., Any]) -> None:
        self.home = home
        self.sub = sub
        self._door: KernelDoor | None = None

    def open(self, run_id: str = "run-1", **options: Any) -> KernelDoor:
        self.close()
        self._door = open_kernel(refunds(), run_id=run_id, **options)
        return self._door

    def pay(self, amount: int, nonce: str, **options: Any) -> Done:
        door = self._door or self.open()
        payload = {"amount": amount, **options.pop("payload", {})}
        given = {"state": {"open": True}, "handler": _paid, **options}
        return door.execute(KIND, payload, nonce=nonce, **given)

    def fail(self, amount: int, nonce: str) -> None:
        """Proposes a refund whose handler fails half way."""
        with pytest.raises(OSError, match="half way"):
            self.pay(amount, nonce, handler=_half_way)

    def rows(self, *words: str) -> list[dict[str, Any]]:
        """`sub query intents`, as JSON."""
        self.ingest()
        ran = self.sub("query", "intents", "--json", *words)
        assert (ran.code, ran.err) == (0, "")
        return [json.loads(line) for line in ran.out.splitlines()]

    def statuses(self, *words: str) -> list[tuple[str | None, str | None, str | None]]:
        rows = self.rows(*words)
        return [(row["nonce"], row["decision_kind"], row["status"]) for row in rows]

    def release(self, intent_hash: str) -> None:
        """Lets an intent execute again, as a person."""
        ran = self.sub("intent", "release", intent_hash, "--reason", "nothing was paid")
        assert ran.code == 0, ran.err

    def ingest(self) -> None:
        self.home.ingest()
        self.home.restart()

    def close(self) -> None:
        if self._door is not None:
            self._door.close()
            self._door = None


def _paid(envelope: Any) -> dict[str, Any]:
    return {"paid": envelope.payload["amount"]}


def _half_way(_envelope: Any) -> None:
    raise OSError("the line broke half way")


@pytest.fixture
def agent(own_home: Path, sub: Callable[..., Any]) -> Iterator[Agent]:
    home = Home(str(own_home))
    agent = Agent(home, sub)
    yield agent
    agent.close()
    home.close()
