"""Why a decision came out as it did: every rule, which clause failed, counters before and after.

Takes the same plan and the same entries as the fast path, so it cannot explain another decision.
"""

from typing import NamedTuple

from subluminal.contracts.counters import Cell, CellKind
from subluminal.contracts.decision import Decision
from subluminal.contracts.gate import Gate, GateName, Settled
from subluminal.contracts.vocabulary import Action
from subluminal.policy.plan import Plan
from subluminal.policy.program import DEFAULT_ALLOW, Program
from subluminal.policy.rules.entry import Entry
from subluminal.policy.visit import Call, NotInspected, Visit


class Step(NamedTuple):
    """One rule on the way to a decision."""

    layer: str
    rule_id: str
    kind: str
    result: str
    """matched, no match, passed over (access was settled above), error"""
    clause: str = ""
    """the first clause of `match` that did not hold"""
    action: str | None = None
    """what the rule decided, if it did"""
    note: str = ""
    before: Cell = ()
    """the counter as the call found it"""
    after: Cell = ()
    """and as it leaves it, if the call is forwarded"""


def gate_step(gate: Gate, settled: Settled | None) -> Step:
    """The step of a gate that was asked before the layers."""
    step = Step(GateName.PLUGINS.value, gate.name, "gate", "no match")
    if settled is None:
        return step
    decision = settled.decision
    return step._replace(result="matched", action=decision.action.value, note=decision.summary)


def trace(program: Program, plan: Plan, visit: Visit, call: Call, steps: list[Step]) -> Decision:
    """Decides as Program.decide does, and appends a step for every rule."""
    entries = {entry.index: entry for entry in plan.entries}
    order: list[Decision] = []
    for index, rule in enumerate(program.rules):
        entry = entries.get(index)
        if entry is not None:
            steps.append(_visit(program, entry, visit, order))
            continue
        settled = index in plan.tagged
        clause = "" if settled else _failed_clause(program, index, call)
        steps.append(
            Step(
                layer=program.layer.value,
                rule_id=rule.data["rule_id"],
                kind=rule.data["kind"],
                result="matched" if settled else "no match",
                clause=clause,
            )
        )
    return _settle(order)


def _settle(order: list[Decision]) -> Decision:
    refusals = [found for found in order if found.action is not Action.ALLOW]
    ends = [found for found in refusals if found.action is Action.TERMINATE_RUN]
    return (ends or refusals or order or [DEFAULT_ALLOW])[0]


def _failed_clause(program: Program, index: int, call: Call) -> str:
    if index not in program.servers.match(call.server_name):
        return "server_name"
    if index not in program.tools.match(call.tool_name):
        return "tool_name"
    return "risk_class"  # no tag above can add one that it asks for


def _visit(program: Program, entry: Entry, visit: Visit, order: list[Decision]) -> Step:
    step = Step(program.layer.value, entry.rule_id, entry.kind, "matched")
    if entry.is_access and visit.access_settled:
        return step._replace(result="passed over", note="access was settled by a rule above")
    reads: list[Cell] = []
    read = visit.read

    def noted(kind: CellKind, key: bytes) -> Cell:
        cell = read(kind, key)
        reads.append(cell)
        return cell

    visit.read = noted
    written = len(visit.updates), len(visit.if_forwarded)
    try:
        if entry.guard is not None and not entry.guard(visit):
            return step._replace(result="no match", clause=_guard_clause(program, entry, visit))
        found = entry.visit(visit)
    except NotInspected:
        found = program.not_inspected(entry, visit)
        step = step._replace(result="error", note=found.summary)
    finally:
        visit.read = read
    if found is not None:
        order.append(found)
        step = step._replace(action=found.action.value, note=found.summary)
    new = visit.updates[written[0] :] + visit.if_forwarded[written[1] :]
    return step._replace(before=reads[-1] if reads else (), after=new[-1][2] if new else ())


def _guard_clause(program: Program, entry: Entry, visit: Visit) -> str:
    rule = program.rules[entry.index]
    if rule.time_test is not None and not rule.time_test(visit.wall_ms):
        return "time"
    if rule.args_test is not None and visit.args is not None and not rule.args_test(visit.args):
        return "args"
    return "risk_class"
