"""Drives one sequence of calls through the product, or through the naive evaluator."""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from tests.differential import naive
from tests.policy.desk import judgement

from subluminal.canonical import args_hash
from subluminal.contracts.bundle import Bundle
from subluminal.contracts.identity import Identity
from subluminal.contracts.intents import Judgement
from subluminal.contracts.vocabulary import Layer, Status, Taint
from subluminal.policy.compiling import compile_bundle
from subluminal.policy.counters import MemoryCounters
from subluminal.policy.evaluation import Call, Engine, Evaluation
from subluminal.policy.snapshot import Snapshot
from subluminal.policy.taint import level_in, lowering_to
from subluminal.policy.visit import NotJudged

START_MS = 1_794_520_740_000
"""2026-11-12T21:59Z, a Thursday: near an hour and a day that generated rules ask for."""

Layers = list[tuple[str, dict[str, Any]]]
Answer = dict[str, Any]


def hash_of(args: dict[str, Any] | None) -> str:
    return "0" * 64 if args is None else args_hash(args)


def compiled(layers: Layers) -> list[tuple[Layer, Snapshot]]:
    return [
        (Layer(name), compile_bundle(msgspec.convert(bundle, Bundle))) for name, bundle in layers
    ]


def identity_of(data: dict[str, Any]) -> Identity:
    return msgspec.convert(data, Identity)


def as_told(_layer: str, rule: Mapping[str, Any], args: dict[str, Any], level: Taint) -> Judgement:
    """A judge that says what the naive evaluator says, in the terms of the product."""
    said = naive.pack_says(rule["effect"]["kernel"]["state"], args, level)
    if said == "BROKEN":
        raise NotJudged("broken")
    return judgement(said)


class Product:
    """Compile and evaluate, with counters in memory."""

    def __init__(self, layers: Layers, identity: dict[str, Any]) -> None:
        self.counters = MemoryCounters()
        self.engine = Engine(compiled(layers), identity_of(identity))
        self.counters.write(lowering_to(self.engine.start))

    def call(
        self, step: dict[str, Any], wall_ms: int, mono_ms: int, args_hash: str | None = None
    ) -> tuple[Answer, Evaluation]:
        args = step["args"]
        given = args_hash or hash_of(args)
        call = Call(
            step["server"],
            step["tool"],
            args,
            given,
            step["granted"],
            excused=step.get("excused", frozenset()),
            judge=as_told,
        )
        found = self.engine.evaluate(call, self.counters, wall_ms=wall_ms, mono_ms=mono_ms)
        self.counters.write(found.updates)
        return summary_of(found) | {"level": level_in(self.counters.read).value}, found

    def end(self, found: Evaluation, status: str, latency_ms: int, mono_ms: int) -> None:
        ended = Status(status)
        updates = self.engine.outcome(found, ended, latency_ms, self.counters, mono_ms=mono_ms)
        self.counters.write(updates)


class Naively:
    """The naive evaluator behind the same two methods."""

    def __init__(self, layers: Layers, identity: dict[str, Any]) -> None:
        self.evaluator = naive.Naive(layers, identity)

    def call(self, step: dict[str, Any], wall_ms: int, mono_ms: int) -> tuple[Answer, Any]:
        args = step["args"]
        call = naive.Call(
            step["server"],
            step["tool"],
            args,
            hash_of(args),
            step["granted"],
            wall_ms,
            mono_ms,
            step.get("excused", frozenset()),
        )
        answer = self.evaluator.evaluate(call)
        return answer | {"level": naive.LEVELS[self.evaluator.level]}, call

    def end(self, call: Any, status: str, latency_ms: int, mono_ms: int) -> None:
        self.evaluator.end(call, status, latency_ms, mono_ms)


def summary_of(found: Evaluation) -> Answer:
    """What both evaluators are compared by."""
    decision, would_be = found.decision, found.would_be
    return {
        "action": str(decision.action),
        "rule_id": decision.rule_id,
        "reason_code": str(decision.reason_code),
        "backoff_ms": decision.backoff_ms,
        "would_be": would_be
        and {
            "action": str(would_be.action),
            "rule_id": would_be.rule_id,
            "reason_code": str(would_be.reason_code),
        },
    }


def answers(driver: Product | Naively, sequence: list[dict[str, Any]]) -> Iterator[Answer]:
    """The answer to each call in turn; a forwarded call ends at once, or after the next one."""
    now, late = 0, []
    for step in sequence:
        now += step["after_ms"]
        answer, handle = driver.call(step, START_MS + now, now)
        yield answer
        ending = (handle, step["status"], step["latency_ms"])
        if answer["action"] == "ALLOW" and step["ends_late"]:
            late.append(ending)
            continue
        now += step["latency_ms"]
        for each in [*late, ending] if answer["action"] == "ALLOW" else late:
            driver.end(*each, now)
        late = []
