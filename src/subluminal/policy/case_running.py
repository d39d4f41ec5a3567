"""Runs policy cases in virtual time, and compares each call with its `want`. Pure."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from subluminal.canonical import args_hash
from subluminal.contracts.counters import CountersFull, Update
from subluminal.contracts.limits import MAX_COUNTERS
from subluminal.contracts.targets import Targets
from subluminal.contracts.vocabulary import DataClass, Layer, Taint
from subluminal.errors import SubluminalError
from subluminal.policy.casefile import CaseCall, Difference, LoadedCase, differences
from subluminal.policy.counters import MemoryCounters
from subluminal.policy.evaluation import Call, Engine, Evaluation, Step
from subluminal.policy.rules.limit import LIMIT_KINDS
from subluminal.policy.snapshot import Snapshot
from subluminal.policy.taint import level_in, lowering_to, lowest
from subluminal.policy.visit import JudgeOf

ReadTargets = Callable[[str, str, dict[str, Any], str], Targets]
"""Returns the targets of (server_name, tool_name, args, cwd)."""
ReadData = Callable[[dict[str, Any]], frozenset[DataClass]]
"""Returns the classes of data in arguments."""
Layers = Sequence[tuple[Layer, Snapshot]]

_UNREAD_HASH = "0" * 64
"""The args_hash of arguments that are too large to inspect."""


class Failure(NamedTuple):
    """One call whose evaluation differs from its `want`."""

    call: int
    """number of the call in its case, from 1"""
    differences: list[Difference]
    """fields that differ"""


class CaseResult(NamedTuple):
    """The result of one case."""

    failures: list[Failure]
    """calls that failed"""
    matched: set[tuple[str, str]]
    """(policy_hash, rule_id) of every rule that matched a call"""

    @property
    def passed(self) -> bool:
        return not self.failures


def run_case(
    loaded: LoadedCase,
    layers: Layers,
    targets_of: ReadTargets | None = None,
    judge_of: JudgeOf | None = None,
    data_in: ReadData | None = None,
) -> CaseResult:
    """Runs the calls of one case in order, starting with empty counters.

    `targets_of` reads what a call touches. Without it, every call is opaque to rules about targets.
    `judge_of` finds whom `kernel` rules ask. `data_in` finds classes of data; without it, every
    call counts as one that contains all of them.
    """
    runner = _Runner(loaded, layers, targets_of, judge_of, data_in)
    failures = []
    for number, call in enumerate(loaded.case.calls, start=1):
        evaluation = runner.make(call)
        found = differences(call.want, evaluation, runner.level)
        if found:
            failures.append(Failure(number, found))
    return CaseResult(failures, runner.matched)


class _Runner:
    """The engine, counters and virtual clock of one case."""

    def __init__(
        self,
        loaded: LoadedCase,
        layers: Layers,
        targets_of: ReadTargets | None,
        judge_of: JudgeOf | None,
        data_in: ReadData | None,
    ) -> None:
        self._judge_of = judge_of
        self._data_in = data_in
        self._engine = Engine(layers, loaded.identity, agent=loaded.agent)
        self._targets_of = targets_of
        self._layers = [layer.value for layer, _ in layers]
        self._limits = {
            (layer.value, rule["rule_id"])
            for layer, snapshot in layers
            for rule in snapshot.data["rules"]
            if rule["kind"] in LIMIT_KINDS
        }
        self._hashes = {layer.value: snapshot.policy_hash for layer, snapshot in layers}
        self._counters = MemoryCounters()
        self._counters.write(lowering_to(lowest([loaded.case.taint, self._engine.start])))
        self._title = loaded.title
        self._start_ms = loaded.start_ms
        self._now_ms = 0
        self.matched: set[tuple[str, str]] = set()

    @property
    def level(self) -> Taint:
        """The level of the run after the calls so far."""
        return level_in(self._counters.read)

    def make(self, call: CaseCall) -> Evaluation:
        """Evaluates one call and its end."""
        if call.at_ms is not None:
            self._now_ms = call.at_ms
        steps: list[Step] = []
        evaluation = self._engine.evaluate(
            self._call_of(call),
            self._counters,
            wall_ms=self._start_ms + self._now_ms,
            mono_ms=self._now_ms,
            steps=steps,
        )
        self.matched.update(
            (self._hashes[step.layer], step.rule_id) for step in steps if step.result == "matched"
        )
        self._write(evaluation.updates)
        outcome = call.outcome
        self._write(
            self._engine.outcome(
                evaluation,
                outcome.status,
                outcome.latency_ms,
                self._counters,
                mono_ms=self._now_ms,
            )
        )
        return evaluation

    def _write(self, updates: list[Update]) -> None:
        try:
            self._counters.write(updates)
        except CountersFull:
            raise SubluminalError(
                f"{self._title} needs more than {MAX_COUNTERS} counters",
                hint="use fewer tools in the case, or the scope `run`",
            ) from None

    def _call_of(self, call: CaseCall) -> Call:
        granted = frozenset((layer, rule) for layer in self._layers for rule in call.granted)
        made = Call(
            call.server,
            call.tool,
            call.args,
            _UNREAD_HASH if call.args is None else args_hash(call.args),
            granted=granted - self._limits,
            excused=granted & self._limits,
            provider=call.provider,
            given=call.given,
        )
        made = replace(made, targets=self._targets(call, made), data=self._data(made))
        if self._judge_of is None or not self._engine.needs_judge(made):
            return made
        judge = self._judge_of(made, self._title, self._start_ms + self._now_ms)
        return replace(made, judge=judge)

    def _data(self, made: Call) -> frozenset[DataClass] | None:
        if self._data_in is None or made.args is None or not self._engine.needs_data(made):
            return None
        return self._data_in(made.args)

    def _targets(self, call: CaseCall, made: Call) -> Targets | None:
        if self._targets_of is None or call.args is None or not self._engine.needs_targets(made):
            return None
        return self._targets_of(call.server, call.tool, call.args, call.cwd)
