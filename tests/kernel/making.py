"""Envelopes, policies, clocks and sinks for the tests of the kernel."""

from collections.abc import Sequence
from typing import Any

from subluminal.kernel import (
    AuditRecord,
    Guard,
    IntentActor,
    IntentEnvelope,
    PolicyBundle,
    Taint,
    build_envelope,
)

AT = "2026-01-01T00:00:00.000Z"
LLM = IntentActor("llm", "s-1")


def envelope(payload: Any = None, **changed: Any) -> IntentEnvelope:
    """An envelope with its hash; `changed` are arguments of `build_envelope`."""
    members = {"actor": LLM, "taint": "UNTRUSTED", "nonce": "n-1", "created_at": AT} | changed
    kind = members.pop("kind", "order.submit")
    return build_envelope(kind, {"qty": 1} if payload is None else payload, **members)


class Minimum:
    """A taint policy that demands one level of every kind."""

    def __init__(self, level: Taint | str = Taint.UNTRUSTED) -> None:
        self.level = level

    def minimum_for(self, kind: str, /) -> Taint | str:
        return self.level


class Uncontaminated(Minimum):
    """A taint policy that refuses what others' text proposes."""

    def requires_uncontaminated(self, kind: str) -> bool:
        return kind.startswith("order.")


def policy(
    *,
    state: Sequence[Guard] = (),
    auth: Sequence[Guard] = (),
    business: Sequence[Guard] = (),
    taint: Any = None,
    default: str = "REFUSE",
) -> PolicyBundle:
    return PolicyBundle(state, auth, taint or Minimum(), business, default)


class FakeClock:
    """A clock that moves only when it is told to."""

    def __init__(self) -> None:
        self.ms = 0.0

    def now_iso(self) -> str:
        return AT

    def mono_ms(self) -> float:
        return self.ms


class Records:
    """An audit sink in memory; `broken` makes it fail."""

    def __init__(self, broken: BaseException | None = None) -> None:
        self.all: list[AuditRecord] = []
        self.broken = broken

    def emit(self, record: AuditRecord, /) -> None:
        if self.broken is not None:
            raise self.broken
        self.all.append(record)


class Watching:
    """A sink for metrics and learning that keeps (method, event)."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, Any]] = []

    def __getattr__(self, method: str) -> Any:
        return lambda event: self.seen.append((method, event))

    def of(self, method: str) -> list[Any]:
        return [event for name, event in self.seen if name == method]


class Broken:
    """A sink of which every method fails."""

    def __getattr__(self, method: str) -> Any:
        raise OSError(method)
