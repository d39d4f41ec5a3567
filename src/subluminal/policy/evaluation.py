"""Decides one call: every layer is evaluated and the strictest decision wins (policy-layers).

An Engine holds one Program for each layer of a run. `evaluate` returns an Evaluation: the decision,
and the counter updates that follow from it. Nothing is written here: the caller writes `updates`,
and when the call has ended, the result of `learn`. Pure.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from subluminal.contracts.agents import AgentFacts
from subluminal.contracts.counters import CellKind, Counters, Update
from subluminal.contracts.decision import Decision, LayeredPolicyRef, PolicyRef
from subluminal.contracts.gate import Gate
from subluminal.contracts.identity import Identity
from subluminal.contracts.vocabulary import (
    TAINT_RANK,
    Action,
    Layer,
    Mode,
    ReasonCode,
    Status,
    Taint,
)
from subluminal.policy.contents import TextTest
from subluminal.policy.layer_answers import Evaluation, combine, evaluate_layer
from subluminal.policy.program import DEFAULT_ALLOW, NOT_APPLICABLE, Program
from subluminal.policy.snapshot import EMPTY_SNAPSHOT, REGISTRY_MATCHERS, Snapshot
from subluminal.policy.taint import lowest
from subluminal.policy.tool_rules import ToolRules
from subluminal.policy.tracing import Step, gate_step
from subluminal.policy.visit import Call

if TYPE_CHECKING:
    from subluminal.policy.claims import Variants

__all__ = ["NO_POLICY", "Call", "Engine", "Evaluation", "Step"]

_ALLOW = Action.ALLOW
_TAINT = CellKind.TAINT
_GRANTED = ReasonCode.APPROVAL_GRANTED

NO_POLICY = EMPTY_SNAPSHOT.ref
"""Stands for the policy of a run that has none: every call passes and is recorded."""


class Engine:
    """All policy layers of a run. The same inputs always give the same decision."""

    def __init__(
        self,
        layers: Sequence[tuple[Layer, Snapshot]],
        identity: Identity,
        gates: Sequence[Gate] = (),
        agent: AgentFacts = AgentFacts(),  # noqa: B008 - frozen
    ) -> None:
        """`gates` are asked before the layers, in order; a gate may settle a call by itself.

        `agent` is what is known about the agent of the run. If `asks_agent`, an engine must be
        given what the registry says; else the default does.
        """
        self._gates = tuple(gates)
        self._all = [Program(layer, snapshot, identity, agent) for layer, snapshot in layers]
        self._programs = [program for program in self._all if program.applies]
        self._who = (identity, agent)
        self._variants: Variants | None = None
        asks_who = any(program.asks_who for program in self._all)
        self._denials = self._other_agents().denials() if asks_who else None
        """counts refusals in a row, if they change what the rules say"""
        self._possible = self._programs
        """programs that may decide calls without claims"""
        if self._denials is not None:
            denied = self._denials.programs
            self._possible = [*self._programs, *(p for p in denied if p not in self._programs)]
        # The usual case, one layer and no gates, needs no loop.
        self._only = self._programs[0] if len(self._programs) == 1 and not gates else None
        self.asks_agent = any(each.snapshot.asks(REGISTRY_MATCHERS) for each in self._programs)
        """whether any rule asks for facts of the registry; if not, nobody needs to look them up"""
        self.asks_targets = any(
            rule.targets_test is not None for each in self._possible for rule in each.rules
        )
        """whether any rule tests what calls touch; if not, nobody needs to read it"""
        self.asks_kernel = any(program.asks_kernel for program in self._possible)
        """whether a pack is asked about calls, by a rule or by the door"""
        self.asks_contents = any(
            rule.text_test is not None or rule.data_test is not None
            for each in self._possible
            for rule in each.rules
        )
        """whether any rule tests what arguments say, or which data they contain"""
        self.asks_ahead = self.asks_targets or self.asks_kernel or self.asks_contents
        """whether something must be found out about calls before they are evaluated"""
        self.asks_taint = any(program.asks_taint for program in self._programs)
        """whether any policy speaks of the run's level; if not, nobody needs to look at it"""
        self.start = lowest(program.start for program in self._programs)
        """level that a run starts with at most"""
        self.policies = [
            LayeredPolicyRef(
                layer=program.layer,
                policy_id=program.snapshot.policy_id,
                policy_version=program.snapshot.version,
                policy_hash=program.snapshot.policy_hash,
            )
            for program in self._all
        ]

    def _other_agents(self) -> "Variants":
        if self._variants is None:
            # Most engines never need it.
            from subluminal.policy.claims import Variants

            self._variants = Variants(self._all, *self._who)
        return self._variants

    def prepare(self, call: Call) -> None:
        """Collects the rules for the tool of a call: the costly part of the tool's first call.

        Needs no lock. `evaluate` does the same if nobody has done it before.
        """
        key = (call.server_name, call.tool_name)
        for program in self._possible:
            if key not in program.tool_rules:
                program.rules_for(*key)

    def needs_targets(self, call: Call) -> bool:
        """Whether a rule for the tool of a call tests what the call touches."""
        return any(rules.asks_targets for _, rules in self._rules_of(call))

    def needs_data(self, call: Call) -> bool:
        """Whether a rule for the tool of a call tests which data the arguments contain."""
        return any(rules.asks_data for _, rules in self._rules_of(call))

    def text_tests(self, call: Call) -> list[TextTest]:
        """Returns the tests of what arguments say that rules for the tool of a call make."""
        return [test for _, rules in self._rules_of(call) for test in rules.text_tests]

    def needs_judge(self, call: Call) -> bool:
        """Whether a rule for the tool of a call asks a pack."""
        return any(rules.asks_kernel for _, rules in self._rules_of(call))

    def ask_packs(self, call: Call, counters: Counters, *, wall_ms: int) -> None:
        """Asks the call's judge everything that `evaluate` will ask it. Needs no lock.

        Which packs are asked does not depend on counters, but for the level of the run. A person
        may have answered what a pack asks, so that packs below are asked too.
        """
        for program, rules in self._rules_of(call):
            if rules.asks_kernel:
                keys = {(program.layer.value, entry.rule_id) for entry in rules.entries}
                passed = replace(call, granted=call.granted | keys)
                evaluate_layer(program, passed, counters, wall_ms, 0, None)

    def _rules_of(self, call: Call) -> Iterator[tuple[Program, ToolRules]]:
        key = (call.server_name, call.tool_name)
        for program in [*self._possible, *self._claimed(call)]:
            rules = program.tool_rules.get(key) or program.rules_for(*key)
            if rules is not None:
                yield program, rules

    def _claimed(self, call: Call) -> list[Program]:
        """Returns the programs that may decide a call because of what it claims."""
        claims = None if call.given is None else call.given.claims
        if claims is None:
            return []
        others = self._other_agents()
        found: list[Program] = []
        for said in claims.each:
            found += others.claimed(said, is_denied=False)
            if self._denials is not None:
                found += others.claimed(said, is_denied=True)
        return found

    def unjudged(self, server_name: str, tool_name: str | None) -> Taint:
        """Returns the lowest level to which a call may lower the run that no rule could judge.

        `tool_name` is None if nobody can be sure which tool is called.
        """
        return lowest(program.unjudged(server_name, tool_name) for program in self._possible)

    def read_from(self, server_name: str) -> tuple[Taint, str | None]:
        """Returns the level to which text of a server lowers the run if no tool gave it.

        That is a resource or a prompt. Only taint rules whose `match` names nothing but servers are
        about it. Returns the rule too.
        """
        found = [program.read_from(server_name) for program in self._possible]
        return max(found, key=lambda each: TAINT_RANK[each[0]], default=(Taint.SYSTEM, None))

    def tests_taint(self, rule_id: str | None) -> bool:
        """Whether a rule with this id tests the run's level."""
        return rule_id is not None and any(
            "taint" in rule["match"] and rule["rule_id"] == rule_id
            for program in self._programs
            for rule in program.snapshot.data["rules"]
        )

    def evaluate(
        self,
        call: Call,
        counters: Counters,
        *,
        wall_ms: int,
        mono_ms: int,
        steps: list[Step] | None = None,
    ) -> Evaluation:
        """Decides one call. The caller must write `updates` before the counters are read again."""
        if self._only is not None and (call.given is None or call.given.claims is None):
            if self._denials is None:
                return evaluate_layer(self._only, call, counters, wall_ms, mono_ms, steps)
            number = self._denials.number(counters.read)
            is_denied = self._denials.are_too_many(number)
            program = self._denials.programs[0] if is_denied else self._only
            found = evaluate_layer(program, call, counters, wall_ms, mono_ms, steps)
            self._denials.note(found.visits[0], number)
            return found
        if self._gates:
            settled = self._ask_gates(call, counters, wall_ms, mono_ms, steps)
            if settled is not None:
                return settled
        return self._ask_layers(call, counters, wall_ms, mono_ms, steps)

    def _ask_layers(
        self,
        call: Call,
        counters: Counters,
        wall_ms: int,
        mono_ms: int,
        steps: list[Step] | None,
    ) -> Evaluation:
        """Evaluates all layers, on the facts and on what the call claims."""
        programs, number = self._programs, 0
        if self._denials is not None:
            number = self._denials.number(counters.read)
            if self._denials.are_too_many(number):
                programs = self._denials.programs
        answers = [
            evaluate_layer(program, call, counters, wall_ms, mono_ms, steps) for program in programs
        ]
        if not answers:
            answers = [self._without_policy()]
        if call.given is not None and call.given.claims is not None:
            is_denied, asked = programs is not self._programs, list(programs)
            for said in call.given.claims.each:
                others = self._other_agents().claimed(said, is_denied=is_denied)
                new = [program for program in others if program not in asked]
                answers += self._on_claims(new, call, counters, wall_ms, mono_ms, steps, answers)
                asked += new
        is_granted = call.granted or call.lifted or call.excused
        if is_granted and all(answer.forwarded for answer in answers):
            # All layers let the call pass: the one that needed a grant gives the reason.
            answers.sort(key=lambda answer: answer.decision.reason_code != _GRANTED)
        found = combine(answers)
        if self._denials is not None and found.visits:
            self._denials.note(found.visits[0], number)
        return found

    def _on_claims(
        self,
        programs: list[Program],
        call: Call,
        counters: Counters,
        wall_ms: int,
        mono_ms: int,
        steps: list[Step] | None,
        on_facts: list[Evaluation],
    ) -> list[Evaluation]:
        """Evaluates the layers for the agent that a caller claims to be."""
        from subluminal.policy.claims import count_once

        told: list[Step] | None = None if steps is None else []
        answers = [
            evaluate_layer(program, call, counters, wall_ms, mono_ms, told) for program in programs
        ]
        if steps is not None and told is not None:
            steps += [step._replace(claimed=True) for step in told]
        count_once(
            [visit for answer in on_facts for visit in answer.visits],
            [visit for answer in answers for visit in answer.visits],
        )
        return answers

    def _ask_gates(
        self,
        call: Call,
        counters: Counters,
        wall_ms: int,
        mono_ms: int,
        steps: list[Step] | None,
    ) -> Evaluation | None:
        """Asks the gates in order; the first answer settles the call."""
        for gate in self._gates:
            found = gate.ask(call, counters, wall_ms=wall_ms, mono_ms=mono_ms)
            if steps is not None:
                steps.append(gate_step(gate, found))
            if found is not None:
                passes = found.decision.action is _ALLOW
                return Evaluation(found.decision, found.policy, passes, ())
        return None

    def refused_anyway(self, counters: Counters, calls: int) -> list[Update]:
        """Returns the updates for calls that are refused, though rules may let them pass."""
        return [] if self._denials is None else self._denials.of_refused(counters.read, calls)

    def outcome(
        self,
        evaluation: Evaluation,
        status: Status,
        latency_ms: int,
        counters: Counters,
        *,
        mono_ms: int,
    ) -> list[Update]:
        """Returns the counter updates of a call's end, as `Evaluation.learn` does."""
        return evaluation.learn(status, latency_ms, counters, mono_ms)

    def failure(self, call: Call, reason_code: ReasonCode, summary: str) -> Evaluation:
        """Decides a call that could not be evaluated or recorded, by `decision_on_error`.

        The strictest layer that enforces decides. If no layer enforces, the call passes.
        """
        answers = [
            Evaluation(program.enforced(written)[0], program.ref, written.action is _ALLOW, ())
            for program in [*self._possible, *self._claimed(call)]
            if program.mode is not Mode.OBSERVE
            for written in [program.failure(call, reason_code, summary)]
        ]
        if answers:
            return combine(answers)
        policy = self._all[0].ref if self._all else NO_POLICY
        passed = replace(DEFAULT_ALLOW, reason_code=reason_code, summary=summary)
        return Evaluation(passed, policy, True, ())

    def refusal(self, decision: Decision) -> Evaluation:
        """Wraps a refusal that no rule made: an ended run, or the kill switch."""
        policy = self._all[0].ref if self._all else NO_POLICY
        return Evaluation(decision, policy, False, ())

    @property
    def mode(self) -> Mode:
        """The strictest mode of the layers that apply; observe if no layer applies."""
        modes = [program.mode for program in self._programs]
        return max(modes, key=list(Mode).index, default=Mode.OBSERVE)

    @property
    def applying(self) -> list[Layer]:
        """The layers whose policy applies to this run."""
        return [program.layer for program in self._programs]

    @property
    def policy(self) -> PolicyRef:
        """The policy of the first layer that applies, else of the first layer, else NO_POLICY."""
        programs = self._programs or self._all
        return programs[0].ref if programs else NO_POLICY

    def _without_policy(self) -> Evaluation:
        if self._all:
            return Evaluation(NOT_APPLICABLE, self._all[0].ref, True, ())
        return Evaluation(DEFAULT_ALLOW, NO_POLICY, True, ())
