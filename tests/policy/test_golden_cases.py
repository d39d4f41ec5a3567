"""The golden cases of tests/cases/policy, through the product and through the naive evaluator.

The product runs them with the runner behind `sub policy test`, so there is one. The naive evaluator
checks the fields that it knows.
"""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.differential.driving import Naively, Product
from tests.requirements import requirement

from subluminal.contracts.vocabulary import Action, HintKind, Layer, Mode, ReasonCode
from subluminal.policy.case_running import run_case
from subluminal.policy.casefile import CaseCall, LoadedCase, parse_cases
from subluminal.policy.compiling import compile_bundle
from subluminal.policy.counters import MemoryCounters
from subluminal.policy.evaluation import Call, Engine

FILES = sorted((Path(__file__).parents[1] / "cases" / "policy").glob("*.yaml"))
NAIVE_FIELDS = ("action", "rule_id", "reason_code", "backoff_ms", "would_be")

CASES = [
    pytest.param(case, id=f"{path.stem}: {case.case.note}")
    for path in FILES
    for case in parse_cases(path.read_bytes(), path.name)
]


@requirement("2.2:selector-semantics", "2.3:order", "2.3:deny-overrides", "2.3:accumulators")
@requirement("2.4:match-semantics", "2.5:effects", "001-9.1:modes", "001-9.2:latency")
@requirement("trust:args-additions", "trust:sliding-window", "trust:budget-reset")
@requirement("trust:sequence-within")
@pytest.mark.parametrize("loaded", CASES)
def test_the_policy_engine_answers_as_the_case_wants(loaded: LoadedCase):
    layers = [(layer, compile_bundle(policy.bundle)) for layer, policy in loaded.policies]

    assert run_case(loaded, layers).failures == []


@requirement("2.2:selector-semantics", "2.3:order", "2.3:deny-overrides", "2.3:accumulators")
@requirement("2.4:match-semantics", "2.5:effects", "001-9.1:modes", "001-9.2:latency")
@pytest.mark.parametrize("loaded", CASES)
def test_the_engine_answers_alike_when_nobody_asks_why(loaded: LoadedCase):
    """The runner explains every call; a shim does not."""
    assert_answers(loaded, Product)


@requirement("3.2.4:hint")
@pytest.mark.parametrize("mode", ["guardrails", "control"])
@pytest.mark.parametrize("loaded", CASES)
def test_every_rejection_says_what_to_do(loaded: LoadedCase, mode: str):
    """A REJECT_WITH_HINT has its text, its kind and retry advice, whoever made it."""
    for _, policy in loaded.policies:
        bundle = msgspec.structs.replace(policy.bundle, mode=Mode(mode))
        engine, counters = Engine([(Layer.USER, compile_bundle(bundle))], loaded.identity), MemoryCounters()  # fmt: skip
        for call in loaded.case.calls:
            asked = Call(call.server, call.tool, call.args, "0" * 64)
            made = engine.evaluate(asked, counters, wall_ms=loaded.start_ms, mono_ms=0)
            counters.write(made.updates)
            for each in (made, engine.failure(asked, ReasonCode.EVALUATION_ERROR, "why")):
                hint = each.decision.hint
                if each.decision.action is Action.REJECT_WITH_HINT:
                    assert hint is not None
                    assert hint.hint_text
                    assert hint.retry_advice
                    assert hint.hint_kind in HintKind


# The naive evaluator has the standard library's regexes, which lack RE2's syntax and its patience.
@pytest.mark.parametrize("loaded", [case for case in CASES if "names_re2" not in case.id])
def test_the_naive_evaluator_answers_as_the_case_wants(loaded: LoadedCase):
    assert_answers(loaded, Naively)


def assert_answers(loaded: LoadedCase, evaluator: type[Product] | type[Naively]) -> None:
    case = loaded.case
    layers = list(case.layers.items()) or [("repository", case.bundle)]
    driver = evaluator(layers, msgspec.to_builtins(loaded.identity))
    for number, call in enumerate(case.calls, start=1):
        step = step_of(call, layers)
        answer, handle = driver.call(step, loaded.start_ms + call.at_ms, call.at_ms)
        assert known(call.want) == asked(call.want, answer), f"call {number}"
        if answer["action"] == "ALLOW":
            driver.end(handle, call.outcome.status.value, call.outcome.latency_ms, call.at_ms)


def step_of(call: CaseCall, layers: list[tuple[str, Any]]) -> dict[str, Any]:
    limits = frozenset(
        (layer, rule["rule_id"])
        for layer, bundle in layers
        for rule in bundle["rules"]
        if rule["kind"] in ("budget", "rate_limit", "breaker", "dedupe", "sequence")
    )
    granted = frozenset((layer, rule) for layer, _ in layers for rule in call.granted)
    step = {"server": call.server, "tool": call.tool, "args": call.args}
    return {**step, "granted": granted - limits, "excused": granted & limits}


def known(want: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in want.items() if name in NAIVE_FIELDS}


def asked(want: dict[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
    """The same fields of an answer; of `would_be` those that are asked for."""
    found = {name: answer[name] for name in known(want)}
    if found.get("would_be"):
        found["would_be"] = {name: found["would_be"][name] for name in want["would_be"]}
    return found


def test_every_case_has_a_note_of_its_own():
    names = [case.id for case in CASES]

    assert len(names) == len(set(names))
    assert all(case.values[0].case.note for case in CASES)
