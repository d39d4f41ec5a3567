"""Same inputs, same decision: nothing but snapshot, call, counters and time goes into one (rule-evaluation)."""

from typing import Any

from hypothesis import given
from tests.differential import generated
from tests.differential.driving import START_MS, Product, hash_of
from tests.differential.generated import drawn

from subluminal.policy.evaluation import Call, Evaluation


def outcome_of(product: Product, step: dict[str, Any], now: int, **more: Any) -> Any:
    args = step["args"]
    call = Call(step["server"], step["tool"], args, hash_of(args), step["granted"])
    found: Evaluation = product.engine.evaluate(
        call, product.counters, wall_ms=START_MS + now, mono_ms=now, **more
    )
    return found.decision, found.would_be, found.updates, found.risk_classes, found.trips


@given(drawn(generated.layers), drawn(generated.identity), drawn(generated.calls))
def test_asking_twice_asking_another_engine_or_asking_why_changes_nothing(layers, identity, calls):
    """A second look, a cold engine and an explained decision all say the same."""
    product, now = Product(layers, identity), 0
    for step in calls:
        now += step["after_ms"]
        first = outcome_of(product, step, now)
        cold = Product(layers, identity)
        cold.counters = product.counters

        assert outcome_of(product, step, now) == first
        assert outcome_of(cold, step, now) == first
        assert outcome_of(product, step, now, steps=[]) == first

        _, evaluation = product.call(step, START_MS + now, now)
        if evaluation.forwarded:
            product.end(evaluation, step["status"], step["latency_ms"], now)
