"""Suggested arguments are an object that the same policy's access rules let pass (cli.md)."""

from hypothesis import given, settings
from tests.differential import generated
from tests.differential.driving import START_MS, Naively, Product
from tests.differential.generated import Chooser, drawn

from subluminal.canonical import encode, parse

ACCESS = ("allow", "deny", "tag")


def fussy_rule(choose: Chooser, rule_id: str) -> dict:
    """Sometimes any access rule; otherwise a deny with a suggestion for one argument."""
    rule = generated.rule(choose, rule_id)
    if choose.rarely(4) and rule["kind"] in ACCESS:
        return rule
    key = choose.one(generated.KEYS)
    better = {key: generated.suggestion(choose)}
    if choose.rarely():
        better |= choose.by_key(lambda: generated.suggestion(choose))
    effect = {"action": "BLOCK", "reason_code": "NO", "message": "m", "suggest": better}
    predicate = choose.one(
        [
            {"has_keys": [key]},
            {"key_in": {key: choose.some(generated.VALUES, 2, 6)}},
            {"numeric_range": {key: generated.bounds(choose)}},
        ]
    )
    return rule | {"kind": "deny", "enabled": True, "effect": effect, "match": {"args": predicate}}


def fussy_bundle(choose: Chooser) -> dict:
    rules = [fussy_rule(choose, f"r{number}") for number in range(1 + choose.below(4))]
    return generated.bundle(choose, ["guardrails", "control"]) | {"selectors": {}, "rules": rules}


@settings(max_examples=300)
@given(drawn(fussy_bundle), drawn(generated.calls))
def test_suggested_arguments_pass_the_access_rules(bundle, calls):
    access_only = bundle | {"rules": [r for r in bundle["rules"] if r["kind"] in ACCESS]}
    product = Product([("user", bundle)], {})
    for step in calls:
        _, evaluation = product.call(step, START_MS, 0)
        hint = evaluation.decision.hint
        if hint is None or hint.suggested_args is None:
            continue
        suggested = hint.suggested_args

        assert suggested != step["args"] or encode(suggested) != encode(step["args"])
        assert parse(encode(suggested)).value == suggested
        retry = step | {"args": suggested, "granted": frozenset()}
        answer, _ = Naively([("user", access_only)], {}).call(retry, START_MS, 0)
        assert answer["action"] == "ALLOW"


def test_the_generator_does_make_suggestions():
    """Otherwise the property above would prove nothing."""
    made = 0
    for seed in range(200):
        choose = generated.seeded(seed)
        product = Product([("user", fussy_bundle(choose))], {})
        for step in generated.calls(choose):
            _, evaluation = product.call(step, START_MS, 0)
            hint = evaluation.decision.hint
            made += hint is not None and hint.suggested_args is not None
    assert made > 50
