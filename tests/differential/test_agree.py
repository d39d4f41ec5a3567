"""Two evaluators, one specification: compile+evaluate and the naive one decide alike."""

import os
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from tests.differential import generated
from tests.differential.driving import Naively, Product, answers
from tests.differential.generated import drawn, seeded

EXAMPLES = int(os.environ.get("DIFFERENTIAL_EXAMPLES", "600"))
"""Sequences in each of the four batches below; `make torture` has more."""


def plainly(answer: dict[str, Any]) -> dict[str, Any]:
    """The answer without what only the naive evaluator keeps inside `would_be`."""
    would_be = answer["would_be"]
    kept = would_be and {key: would_be[key] for key in ("action", "rule_id", "reason_code")}
    return answer | {"would_be": kept}


def assert_agreement(layers, identity, calls):
    expected = [plainly(each) for each in answers(Naively(layers, identity), calls)]

    actual = list(answers(Product(layers, identity), calls))

    assert actual == expected


@settings(
    max_examples=EXAMPLES // 20,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(drawn(generated.layers), drawn(generated.identity), drawn(generated.calls))
def test_evaluators_agree_on_what_hypothesis_finds(layers, identity, calls):
    """rule-evaluation, policy-layers. What fails here comes shrunk."""
    assert_agreement(layers, identity, calls)


@pytest.mark.parametrize("batch", range(4))
def test_evaluators_agree_on_thousands_of_sequences(batch):
    """rule-evaluation, policy-layers. A failure names its seed; `seeded(seed)` makes the same sequence again."""
    for seed in range(batch * EXAMPLES, (batch + 1) * EXAMPLES):
        choose = seeded(seed)
        case = generated.layers(choose), generated.identity(choose), generated.calls(choose)
        try:
            assert_agreement(*case)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {case}") from error
