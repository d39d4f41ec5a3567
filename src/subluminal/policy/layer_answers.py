"""What one layer says about a call, and the strictest of several layers (policy-layers).

An Evaluation is a decision, and the counter updates that follow from it. Nothing is written here.
"""

from msgspec import Struct

from subluminal.contracts.counters import CellKind, Counters, Update
from subluminal.contracts.decision import Decision, GrantRef, PolicyRef
from subluminal.contracts.events import Trip, WouldBe
from subluminal.contracts.intents import KernelDecision
from subluminal.contracts.vocabulary import ACTION_STRICTNESS, Action, Status
from subluminal.policy.program import Program
from subluminal.policy.refusing import Refuser
from subluminal.policy.tracing import Step, trace
from subluminal.policy.visit import Call, Visit

_ALLOW = Action.ALLOW
_TAINT = CellKind.TAINT


class Evaluation(Struct, gc=False):
    """A decision with its reasons, and the counter updates that follow from it."""

    decision: Decision
    """the decision, as the mode of its policy enforces it"""
    policy: PolicyRef
    """policy that decided"""
    forwarded: bool
    """whether the call goes to the server"""
    visits: tuple[Visit, ...]
    """what the rules of each layer left behind"""
    would_be: WouldBe | None = None
    """the strictest decision that observe mode did not enforce"""
    risk_classes: frozenset[str] = frozenset()
    """risk classes of the call"""
    grants: tuple[GrantRef, ...] = ()
    """grants that let the call pass; the caller that looked them up sets them"""
    kernel: KernelDecision | None = None
    """decision of a pack, if one was asked"""

    @property
    def updates(self) -> list[Update]:
        """The new contents of the counters. Some count only calls that are forwarded, or not."""
        updates: list[Update] = []
        for visit in self.visits:
            updates = updates + visit.updates if updates else visit.updates
            more = visit.if_forwarded if self.forwarded else visit.if_refused
            if more:
                updates = updates + more
        return updates

    @property
    def lowered_by(self) -> str | None:
        """The rule that lowers the run furthest, if the call is forwarded."""
        found = [
            (cell, visit.lowered_by)
            for visit in self.visits
            for kind, _, cell in visit.if_forwarded
            if kind is _TAINT
        ]
        return max(found, key=lambda each: each[0])[1] if found else None

    @property
    def trips(self) -> list[Trip]:
        """The breakers that refused this call."""
        return [trip for visit in self.visits for trip in visit.trips]

    @property
    def grants_used(self) -> list[tuple[str, str]]:
        """(layer, rule_id) of the rules that a grant let this call pass."""
        return [key for visit in self.visits for key in visit.grants_used]

    @property
    def refused_by(self) -> list[Refuser]:
        """The rules and packs that refuse this call; a grant must cover each of them."""
        return [visit.refused_by for visit in self.visits if visit.refused_by is not None]

    @property
    def limited_by(self) -> list[tuple[str, str]]:
        """(layer, rule_id) of the limits that refuse this call; a grant must cover each of them."""
        return [key for visit in self.visits for key in visit.limited_by]

    @property
    def is_watched(self) -> bool:
        """Whether a breaker counts the end of the call even if the call ends OK."""
        for visit in self.visits:  # no generator: every call comes here
            for breaker in visit.watches:
                if breaker.watches_latency:
                    return True
        return False

    def learn(
        self, status: Status, latency_ms: int, counters: Counters, mono_ms: int
    ) -> list[Update]:
        """Returns the counter updates of the call's end. Breakers count forwarded calls only."""
        if not self.forwarded:
            return []
        return [
            update
            for visit in self.visits
            for breaker in visit.watches
            for update in breaker.learn(counters.read, status, latency_ms, mono_ms)
        ]


def evaluate_layer(
    program: Program,
    call: Call,
    counters: Counters,
    wall_ms: int,
    mono_ms: int,
    steps: list[Step] | None,
) -> Evaluation:
    """Evaluates one layer as if it were the only one."""
    visit = Visit(call, call.args, counters.read, wall_ms, mono_ms)
    server_name, tool_name = call.server_name, call.tool_name
    rules = program.tool_rules.get((server_name, tool_name)) or program.rules_for(
        server_name, tool_name
    )
    if rules is None:
        classes: frozenset[str] = frozenset()
        written = program.on_error(classes, None, "a name is too long, or is not valid Unicode")
    else:
        if steps is None:
            written = program.decide(rules, visit)
        else:
            written = trace(program, rules, visit, call, steps)
        classes = rules.classes | visit.classes if visit.classes else rules.classes
    if program.expires_ms is not None and wall_ms >= program.expires_ms:
        written = program.expired(visit)
    if written.action is _ALLOW:
        return Evaluation(written, program.ref, True, (visit,), None, classes, (), visit.kernel)
    decision, would_be = program.enforced(written)
    forwarded = decision.action is _ALLOW
    if would_be is not None:
        visit.refused_by = None  # observe mode never asks for approval
        visit.limited_by = ()
    return Evaluation(
        *(decision, program.ref, forwarded, (visit,), would_be, classes), kernel=visit.kernel
    )


def combine(answers: list[Evaluation]) -> Evaluation:
    """Takes the strictest decision, the earlier layer's on a tie, and the updates of all layers."""
    best = max(answers, key=lambda answer: ACTION_STRICTNESS[answer.decision.action])
    observed = [answer.would_be for answer in answers if answer.would_be is not None]
    if observed:
        best.would_be = max(observed, key=lambda would_be: ACTION_STRICTNESS[would_be.action])
    best.risk_classes = best.risk_classes.union(*(answer.risk_classes for answer in answers))
    for answer in answers:
        if answer is not best:
            best.visits += answer.visits
            best.kernel = best.kernel or answer.kernel
    return best
