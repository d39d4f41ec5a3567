"""Makes a pack ready for use: checks its shape, watches what it says, gives it sinks.

`install_pack` is for agents that use `subluminal.kernel` by itself; `open_kernel` does the same,
and lets the record tell about drift.
"""

import sys
from typing import Any

import msgspec

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
    return watched_pack(pack, context.metrics or console), context


def watched_pack(pack: Pack, metrics: MetricsSink) -> Pack:
    """Returns the pack with every guard watched for words that the pack did not declare."""
    return with_basis_audit(pack, metrics)


class Console:
    """Sinks that write to stderr: stdout belongs to the agent."""

    def _write(self, what: str, event: Any) -> None:
        line = msgspec.json.encode(event).decode()
        print(f"[subluminal-kernel] {what} {line}", file=sys.stderr)

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
