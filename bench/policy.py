"""Decisions per second, compared with cedarpy, casbin and regopy; and the cost of a thousand rules.

Our policy has the stateless rules that all engines share and one accumulator of each kind, and we
write the counters. The other engines decide the stateless rules only, which they parsed before.
"""

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import msgspec

from bench.bundles import bundle_of
from bench.harness import Result, interleaved
from bench.rivals.installing import ensure_installed
from bench.rivals.rules import ARGS, DENIED_TOOL, SERVER, TOOL, Refusal, refusals
from subluminal.canonical import args_hash
from subluminal.contracts.bundle import Bundle
from subluminal.contracts.identity import Identity
from subluminal.contracts.vocabulary import Env, Layer
from subluminal.policy.compiling import compile_bundle
from subluminal.policy.counters import MemoryCounters
from subluminal.policy.evaluation import Call, Engine

BAR_FASTER = 30.0
BAR_THOUSAND = 4.0
BAR_FIRST_CALL_US = 300.0
SMALL, LARGE = 50, 1_000
_ACCUMULATORS: dict[str, dict[str, Any]] = {
    "budget": {"limit_calls": 10**12, "on_exceed": "BLOCK"},
    "rate_limit": {
        "capacity": 10**6,
        "refill_tokens": 10**6,
        "refill_period_ms": 1,
        "on_limit": "THROTTLE",
        "backoff_ms": 100,
    },
    "breaker": {
        "error_threshold": 5,
        "window_ms": 60_000,
        "repeat_threshold": 5,
        "repeat_window_ms": 10,
        "on_trip": "BLOCK",
    },
    "dedupe": {"window_ms": 5, "on_duplicate": "BLOCK"},
}


def measure() -> Iterator[Result]:
    """Runs all measurements, in turns and in one run."""
    yield from _against_rivals()
    yield from _thousand_rules()


def _against_rivals() -> Iterator[Result]:
    ensure_installed()
    from bench.rivals import cedar, pycasbin, rego  # importable only after the installation

    rules = refusals(SMALL - len(_ACCUMULATORS))
    rivals = {"cedarpy": cedar, "casbin": pycasbin, "regopy": rego}
    for name, module in rivals.items():
        _prove_equal(name, module.decider(rules, TOOL), module.decider(rules, DENIED_TOOL))
    ours = decider(_engine(rules), TOOL)
    _prove_equal("subluminal", ours, decider(_engine(rules), DENIED_TOOL))
    tasks = [_times(ours, 200), *(module.decider(rules, TOOL) for module in rivals.values())]
    seconds = interleaved(tasks, rounds=120)
    own = seconds[0] / 200
    for name, theirs in zip(rivals, seconds[1:], strict=True):
        detail = f"{own * 1e6:.2f} us against {theirs * 1e6:.0f} us"
        yield Result(
            f"policy, 50 rules, faster than {name}", theirs / own, BAR_FASTER, True, detail
        )


def _thousand_rules() -> Iterator[Result]:
    small = _engine(refusals(SMALL - len(_ACCUMULATORS)))
    large = _engine(refusals(LARGE - len(_ACCUMULATORS)))
    few, many = interleaved([decider(small, TOOL), decider(large, TOOL)], rounds=60, number=200)
    detail = f"{many * 1e6:.2f} us against {few * 1e6:.2f} us"
    yield Result("policy, 1,000 rules over 50", many / few, BAR_THOUSAND, False, detail)
    for name, engine in ((SMALL, small), (LARGE, large)):
        (first,) = interleaved([_first_call(engine)], rounds=100)
        detail = f"{first * 1e6:.0f} us with {name:,} rules"
        share = first * 1e6 / BAR_FIRST_CALL_US
        yield Result("policy, first call of a tool over 300 us", share, 1.0, False, detail)


def rules_of(rules: list[Refusal]) -> list[dict[str, Any]]:
    """The rules of a bundle: one accumulator of each kind, and a deny for each refusal."""
    accumulators = [
        _rule(kind, kind, {}, {kind: {"scope": "run"} | effect})
        for kind, effect in _ACCUMULATORS.items()
    ]
    return [*accumulators, *map(_deny, rules)]


def _engine(rules: list[Refusal]) -> Engine:
    bundle = bundle_of(rules_of(rules), env=["dev", "ci"])
    snapshot = compile_bundle(msgspec.convert(bundle, Bundle))
    identity = Identity(agent_id="fixer", env=Env.CI)
    return Engine([(Layer.USER, snapshot)], identity)


def _rule(rule_id: str, kind: str, match: dict[str, Any], effect: dict[str, Any]) -> dict[str, Any]:
    return {
        "rule_id": rule_id,
        "kind": kind,
        "enabled": True,
        "match": match,
        "effect": effect,
        "severity": "warn",
    }


def _deny(rule: Refusal) -> dict[str, Any]:
    match: dict[str, Any] = {
        "tool_name": {"regex": [rule.regex]} if rule.regex else {"glob": [rule.glob]}
    }
    if rule.equals is not None:
        match["args"] = {"key_equals": {rule.key: rule.equals}}
    if rule.at_least is not None:
        match["args"] = {"numeric_range": {rule.key: {"min": rule.at_least}}}
    effect = {"action": "BLOCK", "reason_code": "NO", "message": "not that"}
    return _rule(rule.name, "deny", match, effect)


def decider(engine: Engine, tool: str) -> Callable[[], bool]:
    """Decides one call and writes its counters. Time advances, so that no call is a duplicate."""
    counters, clock = MemoryCounters(), count(0, 20)
    call = Call(SERVER, tool, ARGS, args_hash(ARGS))

    def decide() -> bool:
        now = next(clock)
        found = engine.evaluate(call, counters, wall_ms=now, mono_ms=now)
        counters.write(found.updates)
        return found.forwarded

    return decide


def _first_call(engine: Engine) -> Callable[[], object]:
    """Decides calls of tools that the engine has never seen, a new one each time."""
    counters, numbers, hashed = MemoryCounters(), count(), args_hash(ARGS)

    def decide() -> object:
        number = next(numbers)
        call = Call(SERVER, f"create_thing_{number}", ARGS, hashed)
        return engine.evaluate(call, counters, wall_ms=number * 20, mono_ms=number * 20)

    return decide


def _times(task: Callable[[], object], number: int) -> Callable[[], object]:
    def run() -> None:
        for _ in range(number):
            task()

    return run


def _prove_equal(name: str, allowed: Callable[[], bool], denied: Callable[[], bool]) -> None:
    """Makes sure that an engine decides like the others before it is measured."""
    if not allowed() or denied():
        raise AssertionError(f"{name} does not decide as it should")
