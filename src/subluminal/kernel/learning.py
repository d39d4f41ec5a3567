"""`adjudicate_and_learn`: the decision, and an event for analysis."""

from collections.abc import Sequence
from typing import Any

from subluminal.kernel.adjudication import TraceStep, adjudicate_with_trace
from subluminal.kernel.decisions import Decision
from subluminal.kernel.envelope import IntentEnvelope
from subluminal.kernel.observing import Clock, LearningSink, learning_event, observed
from subluminal.kernel.policies import PolicyBundle
from subluminal.kernel.refusals import Kill


def adjudicate_and_learn(
    envelope: IntentEnvelope,
    state: Any,
    policy: PolicyBundle,
    *,
    sink: LearningSink,
    clock: Clock,
    plan_fingerprint: str | None = None,
    kill: Kill | None = None,
) -> Decision:
    """Decides, and tells the sink. A sink that fails changes nothing."""
    started = clock.mono_ms()
    decision, steps = adjudicate_with_trace(envelope, state, policy, kill=kill)
    event = learning_event(
        envelope,
        decision,
        at=clock.now_iso(),
        duration_ms=clock.mono_ms() - started,
        guard_id=deciding_guard(steps),
        plan_fingerprint=plan_fingerprint,
    )
    observed(sink, lambda sink: sink.record_outcome(event))
    return decision


def deciding_guard(steps: Sequence[TraceStep]) -> str | None:
    """Returns the name of the guard that decided, if a guard did and has one."""
    return steps[-1].guard_name if steps else None
