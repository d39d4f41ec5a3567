"""Explains a decision: every rule, the clause that did not match, the counter before and after.

`trace` uses the same entries as `Program.decide`, so it cannot explain another decision.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from subluminal.contracts.counters import Cell, CellKind
from subluminal.contracts.decision import Decision
from subluminal.contracts.gate import Gate, GateName, Settled
from subluminal.contracts.vocabulary import Action
from subluminal.policy.program import DEFAULT_ALLOW, Program
from subluminal.policy.rules.entry import Entry
from subluminal.policy.rules.kernel import KernelEntry
from subluminal.policy.rules.taint import TaintEntry
from subluminal.policy.tool_rules import PreparedRule, ToolRules
from subluminal.policy.visit import Call, NotEvaluated, Visit


class Step(NamedTuple):
    """One rule, and what it contributed to a decision."""

    layer: str
    """layer of the rule's policy"""
    rule_id: str
    """the rule"""
    kind: str
    """kind of the rule"""
    result: str
    """`matched`, `no match`, `passed over` (a rule above settled access, or the level), `error`"""
    clause: str = ""
    """first clause of `match` that did not hold"""
    action: str | None = None
    """action that the rule decided, if it decided"""
    note: str = ""
    """the reason in words"""
    before: Cell = ()
    """counter of the rule before the call"""
    after: Cell = ()
    """counter of the rule after the call, if the call is forwarded"""
    claimed: bool = False
    """whether the rule was tested with what the caller claims to be"""


def gate_step(gate: Gate, settled: Settled | None) -> Step:
    """Returns the step of a gate that was asked before the layers."""
    step = Step(GateName.PLUGINS.value, gate.name, "gate", "no match")
    if settled is None:
        return step
    decision = settled.decision
    return step._replace(result="matched", action=decision.action.value, note=decision.summary)


def trace(
    program: Program, rules: ToolRules, visit: Visit, call: Call, steps: list[Step]
) -> Decision:
    """Decides as `Program.decide` does, and appends a step for every rule."""
    entries = {entry.index: entry for entry in rules.entries}
    indexes = {place: index for index, place in enumerate(program.places)}
    order: list[Decision] = []
    for place, rule in enumerate(program.snapshot.data["rules"]):
        index = indexes.get(place)
        if index is None:
            steps.append(_left_out(program, rule))
        elif index in entries:
            steps.append(_visit(program, entries[index], visit, order))
        else:
            step = Step(program.layer.value, rule["rule_id"], rule["kind"], "matched")
            if index not in rules.tagged:
                clause = _failed_clause(program, index, call)
                step = step._replace(result="no match", clause=clause)
            steps.append(step)
    return _settle(order)


def _left_out(program: Program, rule: dict[str, Any]) -> Step:
    """Returns the step of a rule that is about other agents."""
    from subluminal.policy.agents import Who, failed_clause, words

    who = Who(program.identity, program.agent)
    clause = failed_clause(rule["match"], who)
    step = Step(program.layer.value, rule["rule_id"], rule["kind"], "no match", clause)
    return step._replace(note=words(clause, who))


def _settle(order: list[Decision]) -> Decision:
    refusals = [found for found in order if found.action is not Action.ALLOW]
    ends = [found for found in refusals if found.action is Action.TERMINATE_RUN]
    return (ends or refusals or order or [DEFAULT_ALLOW])[0]


def _failed_clause(program: Program, index: int, call: Call) -> str:
    if index not in program.servers.match(call.server_name):
        return "server_name"
    if index not in program.tools.match(call.tool_name):
        return "tool_name"
    return "risk_class"  # no tag rule above can add a class that this rule wants


def _visit(program: Program, entry: Entry, visit: Visit, order: list[Decision]) -> Step:
    step = Step(program.layer.value, entry.rule_id, entry.kind, "matched")
    if entry.is_access and visit.access_settled:
        return step._replace(result="passed over", note="a rule above settled access")
    if isinstance(entry, TaintEntry) and visit.taint_settled:
        return step._replace(result="passed over", note="a taint rule above matched")
    reads: list[Cell] = []
    read = visit.read

    def noted(kind: CellKind, key: bytes) -> Cell:
        cell = read(kind, key)
        if kind is not CellKind.TAINT:  # the level is told in words
            reads.append(cell)
        return cell

    visit.read = noted
    written = len(visit.updates), len(visit.if_forwarded)
    try:
        if entry.condition is not None and not entry.condition(visit):
            return step._replace(result="no match", clause=_condition_clause(program, entry, visit))
        found = entry.visit(visit)
    except NotEvaluated as error:
        found = program.not_evaluated(entry, visit, error)
        step = step._replace(result="error")
    finally:
        visit.read = read
    if isinstance(entry, TaintEntry):
        return step._replace(note=entry.told)
    if found is not None:
        order.append(found)
        step = step._replace(action=found.action.value, note=found.summary)
    elif isinstance(entry, KernelEntry):
        step = step._replace(note="the pack has no objection")
    new = visit.updates[written[0] :] + visit.if_forwarded[written[1] :]
    return step._replace(before=reads[-1] if reads else (), after=new[-1][2] if new else ())


def _condition_clause(program: Program, entry: Entry, visit: Visit) -> str:
    rule, call, args = program.rules[entry.index], visit.call, visit.args
    answers: dict[str, Callable[[], bool]] = {}
    if rule.time_test is not None:
        answers["time"] = partial(rule.time_test, visit.wall_ms)
    if rule.taint_test is not None:
        answers["taint"] = partial(rule.taint_test, visit.read)
    if rule.given_test is not None:
        answers |= _given_answers(rule, call)
    if args is not None:
        answers |= _call_answers(rule, call, args, visit)
    return next((name for name, holds in answers.items() if not holds()), "risk_class")


def _given_answers(rule: PreparedRule, call: Call) -> dict[str, Callable[[], bool]]:
    from subluminal.policy.given import given_tests

    tests = given_tests(rule.data["match"])
    return {name: partial(test, call) for name, test in tests.items()}


def _call_answers(
    rule: PreparedRule, call: Call, args: dict[str, Any], visit: Visit
) -> dict[str, Callable[[], bool]]:
    answers: dict[str, Callable[[], bool]] = {}
    if rule.args_test is not None:
        answers["args"] = partial(rule.args_test, args)
    if rule.targets_test is not None:
        answers["targets"] = partial(rule.targets_test, call.targets)
    if rule.data_test is not None:
        answers["data_any"] = partial(rule.data_test, call.data)
    if rule.text_test is not None:
        answers["text"] = partial(visit.texts_of(args).holds, rule.text_test)
    return answers
