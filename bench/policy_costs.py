"""The most expensive decisions that the compiler's cost bound lets through (linear-patterns).

Each policy is of one kind and as large as the bound allows. Its calls cost most: names
that a pattern cannot remember, and a tool that is new each time. The reference is the first call of
a new tool under fifty ordinary rules. CPU time counts, so other programs on the machine do not.
"""

import random
import time
from collections.abc import Callable, Iterator
from itertools import count
from statistics import median
from typing import Any

import msgspec

from bench.bundles import bundle_of
from bench.harness import Result
from bench.policy import SMALL, _engine
from bench.rivals.rules import refusals
from subluminal.canonical import args_hash
from subluminal.contracts.bundle import Bundle
from subluminal.contracts.identity import Identity
from subluminal.contracts.limits import MAX_NAME_BYTES
from subluminal.contracts.vocabulary import Layer
from subluminal.policy.checking import semantic_misfits
from subluminal.policy.compiling import compile_bundle
from subluminal.policy.counters import MemoryCounters
from subluminal.policy.evaluation import Call, Engine

BAR = 600.0
_ROUNDS = 9
_DEEP = list(range(1_000))

Rules = Callable[[int], list[dict[str, Any]]]


def measure() -> Iterator[Result]:
    """Yields the ratio of each worst policy to the ordinary one."""
    ordinary = _cpu_seconds(_engine(refusals(SMALL - 4)), lambda number: f"tool_{number}")
    for name, rules, tool in _WORST:
        number, engine = _largest(rules)
        worst = _cpu_seconds(engine, tool)
        detail = f"{number} rules, {worst * 1e3:.1f} ms against {ordinary * 1e3:.2f} ms"
        yield Result(f"policy cost, {name}", worst / ordinary, BAR, False, detail)


def _largest(rules: Rules) -> tuple[int, Engine]:
    """Returns the largest policy of its kind that compiles."""
    low, high = 1, 10_001
    while high - low > 1:
        middle = (low + high) // 2
        if semantic_misfits(_bundle(rules(middle))):
            high = middle
        else:
            low = middle
    snapshot = compile_bundle(_bundle(rules(low)))
    return low, Engine([(Layer.USER, snapshot)], Identity())


def _cpu_seconds(engine: Engine, tool: Callable[[int], str]) -> float:
    counters, spent = MemoryCounters(), []
    args = {"k": _DEEP, "n": 1}
    for number in range(_ROUNDS):
        call = Call("s", tool(number), args, args_hash({"number": number}))
        start = time.thread_time()
        found = engine.evaluate(call, counters, wall_ms=number, mono_ms=number)
        counters.write(found.updates)
        spent.append(time.thread_time() - start)
    return median(spent)


def _bundle(rules: list[dict[str, Any]]) -> Bundle:
    return msgspec.convert(bundle_of(rules), Bundle)


def _rule(kind: str, number: int, match: dict[str, Any], effect: dict[str, Any]) -> dict[str, Any]:
    common = {"rule_id": f"{kind}-{number}", "kind": kind, "enabled": True, "severity": "warn"}
    return {**common, "match": match, "effect": effect}


def _denies(match: Callable[[int], dict[str, Any]]) -> Rules:
    effect = {"action": "BLOCK", "reason_code": "NO", "message": "not that"}
    return lambda size: [_rule("deny", number, match(number), effect) for number in range(size)]


def _counters(kind: str, **effect: Any) -> Rules:
    full = {kind: {"scope": "run", **effect}}
    return lambda size: [_rule(kind, number, {}, full) for number in range(size)]


def _unlike(_number: int) -> str:
    return "".join(random.choices("ab", k=MAX_NAME_BYTES))


_numbers = count()


def _new(_number: int) -> str:
    return f"tool_{next(_numbers)}"


_WORST: list[tuple[str, Rules, Callable[[int], str]]] = [
    *(
        (
            f"counted repetitions of {times}",
            _denies(
                lambda i, times=times: {"tool_name": {"regex": [f"[ab]*a[ab]{{{times}}}z{i}"]}}
            ),
            _unlike,
        )
        for times in (10, 40, 200)
    ),
    ("globs", _denies(lambda i: {"tool_name": {"glob": ["*a" + "?" * 60 + f"z{i}"]}}), _unlike),
    ("denies", _denies(lambda i: {"args": {"numeric_range": {"n": {"min": i + 2}}}}), _new),
    (
        "nested values",
        _denies(lambda i: {"args": {"key_in": {"k": [[*_DEEP[:-1], -1 - i]]}}}),
        _new,
    ),
    ("budgets", _counters("budget", limit_calls=10**9, on_exceed="BLOCK"), _new),
    ("dedupes", _counters("dedupe", window_ms=10**6, on_duplicate="BLOCK"), _new),
    (
        "repeat breakers",
        _counters("breaker", repeat_threshold=64, repeat_window_ms=10**6, on_trip="BLOCK"),
        _new,
    ),
]
