"""What the kernel tells others: sinks, the events that they get, and the clock that it asks.

The kernel has no clock, no metrics and no files. Callers hand in objects that fit these protocols.
A sink for metrics or learning that fails changes nothing; only the audit sink may stop an intent.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, TypeVar

from msgspec import Struct

from subluminal.kernel.basis import flat_basis
from subluminal.kernel.decisions import Decision, DecisionKind, Refusal
from subluminal.kernel.envelope import IntentEnvelope
from subluminal.kernel.refusals import kind_of, stated

if TYPE_CHECKING:
    from subluminal.kernel.audit import AuditRecord

_Sink = TypeVar("_Sink")


class Clock(Protocol):
    """The time, for those siblings of `adjudicate` that record it."""

    def now_iso(self) -> str:
        """Returns the time of day as RFC 3339 writes it."""

    def mono_ms(self) -> float:
        """Returns milliseconds of a clock that never goes back."""


class AuditSink(Protocol):
    """Where audit records go. It raises if it cannot keep one."""

    def emit(self, record: "AuditRecord", /) -> None:
        """Keeps a record."""


class LearningEvent(Struct, frozen=True, rename="camel", omit_defaults=True):
    """One decision, for analysis."""

    intent_kind: str
    decision_kind: DecisionKind
    basis_codes: tuple[str, ...]
    taint: str
    duration_ms: float
    intent_hash: str
    at: str
    guard_id: str | None = None
    """the name of the guard that decided"""
    plan_fingerprint: str | None = None


class LearningSink(Protocol):
    """Where decisions go for analysis."""

    def record_outcome(self, event: LearningEvent, /) -> None:
        """Takes one decision."""


class LedgerOp(Struct, frozen=True, rename="camel"):
    """A question to the execution ledger."""

    op: str
    """check or claim"""
    outcome: str
    """hit or miss; ok or duplicate"""
    intent_kind: str
    latency_ms: float


class DecisionMetric(Struct, frozen=True, rename="camel"):
    """A decision, counted."""

    intent_kind: str
    decision: DecisionKind
    latency_ms: float
    basis_count: int
    intent_hash: str


class RefusalMetric(Struct, frozen=True, rename="camel"):
    """A refusal, counted."""

    intent_kind: str
    refusal: Refusal
    intent_hash: str


class SinkFailure(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A sink failed, or a pack does what it did not declare."""

    sink: str
    error_class: str
    detail: str | None = None


class ShadowMetric(Struct, frozen=True, rename="camel"):
    """The kernel and the old code differ about an intent."""

    intent_kind: str
    divergence: str
    intent_hash: str


class ResourceLimit(Struct, frozen=True, rename="camel"):
    """A limit that was reached."""

    resource: str
    limit: float
    observed: float


class MetricsSink(Protocol):
    """Where counts go."""

    def record_ledger_op(self, event: LedgerOp, /) -> None:
        """Takes a question to the ledger."""

    def record_decision(self, event: DecisionMetric, /) -> None:
        """Takes a decision."""

    def record_refusal(self, event: RefusalMetric, /) -> None:
        """Takes a refusal."""

    def record_sink_failure(self, event: SinkFailure, /) -> None:
        """Takes a failure."""

    def record_shadow_divergence(self, event: ShadowMetric, /) -> None:
        """Takes a difference between the kernel and the old code."""

    def record_resource_limit(self, event: ResourceLimit, /) -> None:
        """Takes a limit that was reached."""


def observed(sink: _Sink | None, tell: Callable[[_Sink], object]) -> None:
    """Tells a sink of metrics or learning, if there is one. What it raises is dropped."""
    if sink is None:
        return
    try:
        tell(sink)
    except Exception:  # noqa: BLE001 - whoever watches must not decide
        return


def learning_event(
    envelope: IntentEnvelope,
    decision: Decision,
    *,
    at: str,
    duration_ms: float,
    guard_id: str | None,
    plan_fingerprint: str | None,
) -> LearningEvent:
    """Makes the event of one decision, also for an envelope that is forged."""
    return LearningEvent(
        intent_kind=kind_of(envelope),
        decision_kind=decision.kind,
        basis_codes=flat_basis(decision.basis),
        taint=stated(envelope, "taint"),
        duration_ms=duration_ms,
        intent_hash=stated(envelope, "intent_hash"),
        at=at,
        guard_id=guard_id,
        plan_fingerprint=plan_fingerprint,
    )
