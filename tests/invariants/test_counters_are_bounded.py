"""Counters are never negative nor unbounded: every cell fits its kind, in 64 bits (shared-runs)."""

from hypothesis import given
from tests.differential import generated
from tests.differential.driving import Product, answers
from tests.differential.generated import drawn

from subluminal.contracts.counters import PAIR_INTS, WINDOW_INTS, CellKind

MOST_INTS = {
    CellKind.PAIR: PAIR_INTS,
    CellKind.WINDOW: WINDOW_INTS,
    CellKind.RECENT: WINDOW_INTS,
    CellKind.TAINT: 1,
}
KEY_BYTES = {CellKind.PAIR: 16, CellKind.WINDOW: 16, CellKind.RECENT: 32, CellKind.TAINT: 5}


class Watched:
    """Counters that look at everything written to them."""

    def __init__(self, counters):
        self.counters = counters
        self.read = counters.read

    def write(self, updates):
        updates = list(updates)
        for kind, key, cell in updates:
            assert len(key) == KEY_BYTES[kind]
            assert 0 < len(cell) <= MOST_INTS[kind]
            assert all(type(number) is int and 0 <= number < 2**63 for number in cell)
        self.counters.write(updates)


@given(drawn(generated.layers), drawn(generated.identity), drawn(generated.calls))
def test_every_cell_that_is_written_fits_its_kind(layers, identity, calls):
    product = Product(layers, identity)
    product.counters = Watched(product.counters)

    list(answers(product, calls))


def test_the_largest_amounts_a_bundle_may_name_stay_in_64_bits():
    """10**12 of everything, for a while."""
    most = 10**12
    rules = [
        {"budget": {"limit_cost_units": most, "cost_units_per_call": most, "on_exceed": "BLOCK"}},
        {
            "rate_limit": {
                "capacity": most,
                "refill_tokens": most,
                "refill_period_ms": 1,
                "cost_tokens_per_call": most,
                "on_limit": "BLOCK",
            }
        },
        {
            "breaker": {
                "error_threshold": most,
                "window_ms": most,
                "repeat_threshold": most,
                "repeat_window_ms": most,
                "on_trip": "BLOCK",
            }
        },
        {"dedupe": {"window_ms": most, "on_duplicate": "BLOCK"}},
    ]
    bundle = {
        "policy_id": "p",
        "version": "1",
        "mode": "observe",
        "defaults": {"decision_on_error": "BLOCK"},
        "selectors": {},
        "rules": [
            {
                "rule_id": kind,
                "kind": kind,
                "enabled": True,
                "match": {},
                "effect": {kind: effect | {"scope": "run"}},
                "severity": "info",
            }
            for rule in rules
            for kind, effect in rule.items()
        ],
    }
    product = Product([("user", bundle)], {})
    product.counters = Watched(product.counters)
    call = {"server": "s", "tool": "t", "args": {}, "granted": frozenset()}

    for now in range(0, 70 * most, most):
        _, evaluation = product.call(call, now, now)
        product.end(evaluation, "ERROR", 0, now)
