"""Caching the rules of a tool changes no decision: warm, cold, and with a cache that overflows."""

from hypothesis import given
from tests.differential import generated
from tests.differential.driving import Product, answers, compiled, identity_of
from tests.differential.generated import drawn

from subluminal.policy.evaluation import Engine


class Forgetful(Product):
    """Makes its engine anew for every call."""

    def __init__(self, layers, identity):
        super().__init__(layers, identity)
        self.layers, self.identity = layers, identity

    def call(self, step, wall_ms, mono_ms):
        self.engine = Engine(compiled(self.layers), identity_of(self.identity))
        return super().call(step, wall_ms, mono_ms)


@given(drawn(generated.layers), drawn(generated.identity), drawn(generated.calls))
def test_a_cold_engine_decides_as_a_warm_one(layers, identity, calls):
    warm = list(answers(Product(layers, identity), calls + calls))

    assert list(answers(Forgetful(layers, identity), calls + calls)) == warm


def test_more_tools_than_the_cache_holds_are_still_decided():
    """Tool names come from outside: 3,000 of them, twice."""
    rule = {
        "rule_id": "odd",
        "kind": "deny",
        "enabled": True,
        "match": {"tool_name": {"regex": ["[13579]$"]}},
        "effect": {"action": "BLOCK", "reason_code": "ODD", "message": "m"},
        "severity": "info",
    }
    bundle = {
        "policy_id": "p",
        "version": "1",
        "mode": "guardrails",
        "defaults": {"decision_on_error": "BLOCK"},
        "selectors": {},
        "rules": [rule],
    }
    product = Product([("user", bundle)], {})
    for number in [*range(3_000), *range(3_000)]:
        step = {"server": "s", "tool": f"t{number}", "args": {}, "granted": frozenset()}
        answer, _ = product.call(step, 0, 0)
        assert answer["action"] == ("BLOCK" if number % 2 else "ALLOW")
