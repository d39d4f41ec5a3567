"""What rules about targets cost: a decision about a shell line, with and without such rules.

The line has 60 characters. Both tasks decide the same call; one reads its targets first, as the
enforcer does, and matches them against a force push, writes outside of the repository and opaque
calls. The difference has a bar in microseconds. CPU time counts, so other programs on the machine
do not.
"""

import os
import time
from collections.abc import Callable, Iterator
from statistics import median
from typing import Any

import msgspec

from bench.harness import Result
from subluminal.canonical import args_hash
from subluminal.contracts.bundle import Bundle
from subluminal.contracts.identity import Identity
from subluminal.contracts.vocabulary import Layer
from subluminal.core.targets.reading import targets_of
from subluminal.policy.compiling import compile_bundle
from subluminal.policy.counters import MemoryCounters
from subluminal.policy.evaluation import Call, Engine

BAR_US = 40.0
_ROUNDS, _NUMBER = 120, 100
LINE = 'git commit -am "fix the parser" && git push origin main:next'
_TARGETS: list[dict[str, Any]] = [
    {"program": {"glob": ["git"]}, "argv": {"regex": [r"\bpush\b.*\s(--force|-[a-z]*f|\+)"]}},
    {"access": ["write"], "path": {"outside": [".", "/tmp"]}},
    {"opaque": True},
]


def measure() -> Iterator[Result]:
    """Yields the share of the bar that the targets of a line of 60 characters use."""
    assert len(LINE) == 60
    without, with_targets = (_engine([None] * len(_TARGETS)), _engine(_TARGETS))
    bare, read = _cpu_seconds([_decider(without), _decider(with_targets)])
    more_us = (read - bare) * 1e6
    detail = f"{read * 1e6:.1f} us against {bare * 1e6:.1f} us: {more_us:.1f} us more"
    yield Result(f"targets of a line over {BAR_US:g} us", more_us / BAR_US, 1.0, False, detail)


def _cpu_seconds(tasks: list[Callable[[], object]]) -> list[float]:
    """Returns the median CPU time of each task; the tasks take turns."""
    times: list[list[float]] = [[] for _ in tasks]
    for task in tasks:
        task()
    for _ in range(_ROUNDS):
        for task, seconds in zip(tasks, times, strict=True):
            begun = time.process_time()
            for _ in range(_NUMBER):
                task()
            seconds.append((time.process_time() - begun) / _NUMBER)
    return [median(seconds) for seconds in times]


def _engine(matches: list[dict[str, Any] | None]) -> Engine:
    """Makes a policy with as many rules either way; none of them matches the line."""
    rules = [
        {
            "rule_id": f"rule-{number}",
            "kind": "deny",
            "enabled": True,
            "severity": "warn",
            "match": {"args": {"has_keys": ["none"]}} if match is None else {"targets": match},
            "effect": {"action": "BLOCK", "reason_code": "NO", "message": "not that"},
        }
        for number, match in enumerate(matches)
    ]
    bundle = {
        "policy_id": "bench",
        "version": "1",
        "mode": "guardrails",
        "defaults": {"decision_on_error": "BLOCK"},
        "selectors": {},
        "rules": rules,
    }
    snapshot = compile_bundle(msgspec.convert(bundle, Bundle))
    return Engine([(Layer.USER, snapshot)], Identity())


def _decider(engine: Engine) -> Callable[[], object]:
    args = {"command": LINE}
    digest, counters, cwd = args_hash(args), MemoryCounters(), os.getcwd()

    def decide() -> object:
        call = Call("@claude", "Bash", args, digest)
        if engine.asks_targets and engine.needs_targets(call):
            found = targets_of("@claude", "Bash", args, cwd=cwd)
            call = msgspec.structs.replace(call, targets=found)
        found_ = engine.evaluate(call, counters, wall_ms=0, mono_ms=0)
        assert found_.forwarded
        return found_

    return decide
