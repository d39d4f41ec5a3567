"""Layers never loosen: one more layer makes no decision milder (policy-layers)."""

from hypothesis import given
from tests.differential import generated
from tests.differential.driving import START_MS, Product
from tests.differential.generated import LAYERS, drawn

from subluminal.contracts.vocabulary import ACTION_STRICTNESS, Action


@given(
    drawn(generated.bundle),
    drawn(generated.bundle),
    drawn(generated.identity),
    drawn(generated.calls),
)
def test_one_more_layer_makes_no_decision_milder(upper, lower, identity, calls):
    """Both see the same counters, so only the layer differs."""
    alone = Product([(LAYERS[1], upper)], identity)
    both = Product([(LAYERS[1], upper), (LAYERS[2], lower)], identity)
    alone.counters = both.counters
    now = 0
    for step in calls:
        now += step["after_ms"]
        before = both.counters
        alone.counters = ReadOnly(before)
        mild, _ = alone.call(step, START_MS + now, now)
        strict, evaluation = both.call(step, START_MS + now, now)

        assert rank(strict) >= rank(mild)

        if evaluation.forwarded:
            both.end(evaluation, step["status"], step["latency_ms"], now)


def rank(answer):
    return ACTION_STRICTNESS[Action(answer["action"])]


class ReadOnly:
    def __init__(self, counters):
        self.read = counters.read

    def write(self, updates):
        """What the layer alone would have counted, both together count."""
