"""Explains one decision step by step, for `sub policy explain`. Pure."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from subluminal.canonical import args_hash
from subluminal.contracts.agents import AgentFacts
from subluminal.contracts.bundle import AnyRule
from subluminal.contracts.call import MCP, Given
from subluminal.contracts.counters import Cell
from subluminal.contracts.decision import Decision
from subluminal.contracts.gate import Gate
from subluminal.contracts.identity import Identity
from subluminal.contracts.intents import KernelDecision
from subluminal.contracts.targets import Targets
from subluminal.contracts.vocabulary import (
    DataClass,
    Layer,
    Outcome,
    ReasonCode,
    Status,
    Taint,
)
from subluminal.policy.counters import MemoryCounters
from subluminal.policy.evaluation import Call, Engine, Evaluation, Step
from subluminal.policy.outcomes import evaluated_outcome
from subluminal.policy.snapshot import Snapshot
from subluminal.policy.taint import level_in, lowering_to, lowest
from subluminal.policy.visit import JudgeOf

_DISABLED = "disabled"
_RUN_ID = "explain"
"""The run that the explained call belongs to."""


_MAX_TOLD = 5
"""Most targets of one kind that the text names; JSON has all of them."""


class PackStep(NamedTuple):
    """One step of a pack on its way to a decision."""

    phase: str
    """kill, schema, state, taint, auth, business or default"""
    outcome: str
    """`match` if this step decided, else `pass`"""
    guard: str | None
    """name of the guard, if it has one"""


class PackSteps(NamedTuple):
    """How the pack of a `kernel` rule came to its decision."""

    rule_id: str
    """the rule"""
    kernel: KernelDecision
    """the decision"""
    steps: list[PackStep]
    """steps in their order; the last one decided"""


class Explanation(NamedTuple):
    """A decision, and what every rule contributed to it."""

    evaluation: Evaluation
    """the decision"""
    steps: list[Step]
    """one step for each rule, in rule order"""
    targets: Targets | None = None
    """what the call touches; None if the caller did not read it"""
    taint: tuple[Taint, Taint] | None = None
    """level of the run before and after the call; None if the policy does not speak of it"""
    packs: tuple[PackSteps, ...] = ()
    """the packs that were asked, in their order"""
    on_facts: Decision | None = None
    """the decision without what the caller claims; None if the caller claims nothing"""
    data: frozenset[DataClass] | None = None
    """classes of data in the arguments; None if no rule asks"""

    def plain(self) -> dict[str, Any]:
        """Returns what `--json` prints."""
        return {
            "decision": msgspec.to_builtins(self.evaluation.decision),
            "outcome": evaluated_outcome(self.evaluation),
            "steps": [step._asdict() for step in self.steps],
            "would_be": msgspec.to_builtins(self.evaluation.would_be),
            "risk_classes": sorted(self.evaluation.risk_classes),
            "policy": msgspec.to_builtins(self.evaluation.policy),
            "packs": [
                {
                    "rule_id": each.rule_id,
                    "kernel": msgspec.to_builtins(each.kernel),
                    "steps": [step._asdict() for step in each.steps],
                }
                for each in self.packs
            ],
            "on_facts": msgspec.to_builtins(self.on_facts),
            "data": None if self.data is None else sorted(self.data),
            "targets": None if self.targets is None else targets_plain(self.targets),
            "taint": None
            if self.taint is None
            else {"before": self.taint[0].value, "after": self.taint[1].value},
        }


def targets_plain(targets: Targets) -> dict[str, Any]:
    """Returns targets with every field, as `--json` prints them."""
    return {
        "commands": targets.commands,
        "paths": [{"path": each.path, "access": each.access} for each in targets.paths],
        "hosts": targets.hosts,
        "opaque": targets.opaque,
        "why": targets.why,
        "roots": targets.roots,
    }


def explain(
    snapshot: Snapshot,
    identity: Identity,
    call: tuple[str, str, dict[str, Any]],
    *,
    wall_ms: int,
    repeat: int = 1,
    gates: Sequence[Gate] = (),
    targets: Targets | None = None,
    taint: Taint = Taint.SYSTEM,
    judge_of: JudgeOf | None = None,
    agent: AgentFacts = AgentFacts(),  # noqa: B008 - frozen
    provider: str = MCP,
    given: Given | None = None,
    data: frozenset[DataClass] | None = None,
) -> Explanation:
    """Decides a call as the first of a run, or as the last of `repeat` identical calls.

    `gates` are those that a run of this installation passes before its policy layers. `targets` are
    what the call touches, as `core.targets` reads it. `taint` is the level of the run before its
    first call; a lower `defaults.taint` of the policy holds. `judge_of` finds whom `kernel` rules
    ask. `agent` is what is known about the agent, and `given` what the program says of the call.
    `data` are the classes of data in the arguments, as `core.contents` finds them.
    """
    engine = Engine([(Layer.REPOSITORY, snapshot)], identity, gates, agent)
    server, tool, args = call
    asked = Call(
        *(server, tool, args, args_hash(args)),
        targets=targets,
        provider=provider,
        given=given,
        data=data,
    )
    if judge_of is not None and engine.needs_judge(asked):
        asked = msgspec.structs.replace(asked, judge=judge_of(asked, _RUN_ID, wall_ms))
    counters = MemoryCounters()
    counters.write(lowering_to(lowest([taint, engine.start])))
    for _ in range(repeat):
        steps: list[Step] = []
        before = level_in(counters.read)
        on_facts = _on_facts(engine, asked, counters, wall_ms)
        evaluation = engine.evaluate(asked, counters, wall_ms=wall_ms, mono_ms=0, steps=steps)
        counters.write(evaluation.updates)
        counters.write(engine.outcome(evaluation, Status.OK, 0, counters, mono_ms=0))
    levels = (before, level_in(counters.read)) if engine.asks_taint else None
    seen = data if engine.needs_data(asked) else None
    return Explanation(evaluation, steps, targets, levels, on_facts=on_facts, data=seen)


def _on_facts(
    engine: Engine, asked: Call, counters: MemoryCounters, wall_ms: int
) -> Decision | None:
    """Returns the decision that a call has without its claims; None if it has none."""
    if asked.given is None or asked.given.claims is None:
        return None
    silent = msgspec.structs.replace(asked, given=msgspec.structs.replace(asked.given, claims=None))
    return engine.evaluate(silent, counters, wall_ms=wall_ms, mono_ms=0).decision


def with_disabled(steps: list[Step], rules: list[AnyRule]) -> list[Step]:
    """Adds steps for disabled rules, which a snapshot leaves out, in rule order."""
    rest = [step for step in steps if not step.claimed]
    claimed = [step for step in steps if step.claimed]
    return [*_with_disabled(rest, rules), *_with_disabled(claimed, rules)]


def _with_disabled(steps: list[Step], rules: list[AnyRule]) -> list[Step]:
    if not steps:
        return steps
    layer, claimed, rest = steps[0].layer, steps[0].claimed, iter(steps)
    return [
        next(rest)
        if rule.enabled
        else Step(
            *(layer, rule.rule_id, str(rule.__struct_config__.tag), _DISABLED), claimed=claimed
        )
        for rule in rules
    ]


def as_text(explanation: Explanation) -> list[str]:
    """Returns lines for a terminal: the decision, then each rule in order."""
    evaluation, steps, targets, taint, packs, on_facts, _ = explanation
    decision = evaluation.decision
    by = f" by rule `{decision.rule_id}`" if decision.rule_id is not None else ""
    lines = [f"{decision.action}{by} ({decision.reason_code}, {decision.severity})"]
    lines.append(f"  {decision.summary}")
    outcome = evaluated_outcome(evaluation)
    if outcome not in (Outcome.ALLOW, Outcome.DENY):  # they say no more than the action
        lines.append(f"  outcome: {outcome}")
    if evaluation.would_be is not None:
        lines.append(f"  would be {evaluation.would_be.action}: the policy is in observe mode")
    lines += _because_of_claims(decision, on_facts)
    if decision.backoff_ms is not None:
        lines.append(f"  retry after {decision.backoff_ms} ms")
    if decision.hint is not None:
        lines.append(f"  hint: {decision.hint.hint_text}")
        if decision.hint.suggested_args is not None:
            suggested = msgspec.json.encode(decision.hint.suggested_args).decode()
            lines.append(f"  suggested arguments: {suggested}")
    lines += _contents_lines(explanation)
    if targets is not None:
        lines += _touched(targets)
    if taint is not None:
        before, after = taint
        told = f", and {after} after it" if after is not before else ""
        lines.append(f"  the run is {before} before this call{told}")
    if (on_facts or decision).reason_code != ReasonCode.POLICY_NOT_APPLICABLE:
        lines += _step_lines("rules, in order:", [step for step in steps if not step.claimed])
    lines += _claimed_lines(steps)
    for each in packs:
        lines += ["", *_pack_lines(each)]
    return lines


def _because_of_claims(decision: Decision, on_facts: Decision | None) -> list[str]:
    if on_facts is None or on_facts.action is decision.action:
        return []
    return [f"  because of what the caller claims: without that it is {on_facts.action}"]


def _claimed_lines(steps: list[Step]) -> list[str]:
    claimed = [step for step in steps if step.claimed]
    if not claimed:
        return []
    return _step_lines("rules, if what the caller claims were true:", claimed)


def _contents_lines(explanation: Explanation) -> list[str]:
    """Returns lines for the constraints of the decision and for the data of the call."""
    constraints, data = explanation.evaluation.decision.constraints, explanation.data
    lines = []
    if constraints is not None:
        lines.append(f"  constraints: {msgspec.json.encode(constraints).decode()}")
    if data is not None:
        lines.append(f"  data: {', '.join(sorted(data)) or 'none of the classes that rules know'}")
    return lines


def _touched(targets: Targets) -> list[str]:
    """Returns a line for each kind of target that a call has."""
    told = {
        "runs": [" ".join(words) for words in targets.commands],
        "writes": [each.path for each in targets.paths if each.access == "write"],
        "reads": [each.path for each in targets.paths if each.access == "read"],
        "hosts": targets.hosts,
        "opaque": targets.why if targets.opaque else [],
    }
    return [f"  {name}: {_listed(found)}" for name, found in told.items() if found]


def _listed(found: list[str]) -> str:
    more = [f"and {len(found) - _MAX_TOLD} more"] if len(found) > _MAX_TOLD else []
    return "; ".join([*found[:_MAX_TOLD], *more])


def _step_lines(head: str, steps: list[Step]) -> list[str]:
    return ["", head, *(_step_line(number, step) for number, step in enumerate(steps, start=1))]


def _step_line(number: int, step: Step) -> str:
    why = f": `{step.clause}` does not match" if step.clause else ""
    action = f", {step.action}" if step.action else ""
    note = f" ({step.note})" if step.note else ""
    line = f"  {number:>3}. {step.rule_id} ({step.kind}): {step.result}{why}{action}{note}"
    if step.before or step.after:
        line += f"; counter {_cell(step.before)} -> {_cell(step.after or step.before)}"
    return line


def _pack_lines(trace: PackSteps) -> list[str]:
    said = trace.kernel
    head = f"pack {said.pack} {said.version}, asked by rule `{trace.rule_id}`"
    lines = [f"{head} about {said.intent_kind}: {said.kind}"]
    for phase, outcome, guard in trace.steps:
        lines.append(f"  {phase}: {outcome}" + (f" ({guard})" if guard else ""))
    return [*lines, f"  because of {', '.join(said.basis)}"] if said.basis else lines


def _cell(cell: Cell) -> str:
    return "[" + ", ".join(str(number) for number in cell) + "]" if cell else "empty"
