"""Makes a pack ready for use: checks its shape, watches what it says, gives it sinks.

`install_pack` is for agents that use `subluminal.kernel` by itself; `open_kernel` does the same,
and lets the record tell about drift.
"""

import sys
from collections.abc import Callable
from typing import Any

import msgspec

from subluminal.core.records.redaction.redactor import Redactor
from subluminal.kernel.context import RuntimeContext
from subluminal.kernel.observing import (
    DecisionMetric,
    LearningEvent,
    LedgerOp,
    MetricsSink,
    RefusalMetric,
    ResourceLimit,
    ShadowMetric,
    SinkFailure,
)
from subluminal.kernel.packs import Pack, assert_pack_conformance, with_basis_audit


def install_pack(
    pack: Pack, context: RuntimeContext | None = None, *, allow_default_execute: bool = False
) -> tuple[Pack, RuntimeContext]:
    """Returns the pack with its drift watched, and the context with a sink for everything.

    What the context has no sink for goes to stderr, one line of JSON each. Raises
    PackConformanceError if the pack does not have the shape of one.
    """
    assert_pack_conformance(pack, allow_default_execute=allow_default_execute)
    given = context or RuntimeContext()
    console = Console()
    context = msgspec.structs.replace(
        given,
        metrics=given.metrics or console,
        learning=given.learning or console,
        shadow=given.shadow or given.metrics or console,
    )
    return with_basis_audit(pack, context.metrics or console), context


_MAX_TOLD = 64
"""Most words of a pack that are told: a guard may make up a new one for every intent."""


class Console:
    """Sinks that write to stderr, with secrets masked: stdout belongs to the agent."""

    def __init__(self) -> None:
        self._redactor = Redactor()

    def _write(self, what: str, event: Any) -> None:
        line, _ = self._redactor.redact(msgspec.json.encode(event).decode())
        sys.stderr.write(f"[subluminal-kernel] {what} {line}\n")

    def record_ledger_op(self, event: LedgerOp, /) -> None:
        self._write("ledger_op", event)

    def record_decision(self, event: DecisionMetric, /) -> None:
        self._write("decision", event)

    def record_refusal(self, event: RefusalMetric, /) -> None:
        self._write("refusal", event)

    def record_sink_failure(self, event: SinkFailure, /) -> None:
        self._write("sink_failure", event)

    def record_shadow_divergence(self, event: ShadowMetric, /) -> None:
        self._write("shadow_divergence", event)

    def record_resource_limit(self, event: ResourceLimit, /) -> None:
        self._write("resource_limit", event)

    def record_outcome(self, event: LearningEvent, /) -> None:
        self._write("outcome", event)


class Drift:
    """Passes metrics on, and tells what a pack does that it did not declare, once for each word."""

    def __init__(self, tell: Callable[[str], None], onward: MetricsSink | None) -> None:
        self._tell = tell
        self._onward = onward
        self._told: set[tuple[str, str, str | None]] = set()

    def __getattr__(self, name: str) -> Callable[[Any], None]:
        return _nothing if self._onward is None else getattr(self._onward, name)

    def record_sink_failure(self, event: SinkFailure, /) -> None:
        """Takes a failure, or a word that a pack did not declare."""
        key = (event.sink, event.error_class, event.detail)
        if key not in self._told and len(self._told) < _MAX_TOLD:
            self._told.add(key)
            self._tell(f"{event.sink}: {event.error_class}: {event.detail}")
        if self._onward is not None:
            self._onward.record_sink_failure(event)


def _nothing(_event: Any) -> None:
    """Takes an event that nobody asked for."""
