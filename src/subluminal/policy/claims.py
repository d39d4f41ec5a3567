"""The same policy for another agent: after refusals in a row, and as a caller claims to be.

Facts are proven; a claim is only said, so it may tighten a decision and never loosen it. A call
with claims is decided on the facts, and again on the facts with the claims laid over them. The
stricter decision holds, that of the facts on a tie. The call counts once: what a rule has left
behind on the facts, it does not leave behind again.
"""

from collections.abc import Sequence

from subluminal.contracts.agents import AgentFacts, Said
from subluminal.contracts.counters import CellKind, Update
from subluminal.contracts.identity import Identity
from subluminal.policy.agents import Who, denials_matter, settled
from subluminal.policy.denials import Denials
from subluminal.policy.predicates import applies
from subluminal.policy.program import Program
from subluminal.policy.visit import Visit

_MAX_KEPT = 64
"""Most programs and most claims that are kept. Claims come from outside, so a full cache is
emptied."""
_TAINT = CellKind.TAINT


class Variants:
    """Finds the programs of an engine for an agent that differs from the one of its run."""

    def __init__(self, programs: Sequence[Program], identity: Identity, agent: AgentFacts) -> None:
        """`programs` are those of all layers, for the agent of the run."""
        self._programs = programs
        self._who = Who(identity, agent)
        self._made: dict[tuple[int, tuple[int, ...]], Program] = {}
        self._found: dict[tuple[Said, bool], list[Program]] = {}

    def denials(self) -> Denials | None:
        """Returns what counts refusals in a row; None if no rule asks for trust that they cost."""
        matches = [rule["match"] for each in self._programs for rule in each.snapshot.data["rules"]]
        if not denials_matter(matches, self._who.facts):
            return None
        return Denials(self._for(self._who.after_denials()))

    def claimed(self, claims: Said, *, is_denied: bool) -> list[Program]:
        """Returns the programs that apply to the agent that a caller claims to be."""
        found = self._found.get((claims, is_denied))
        if found is None:
            if len(self._found) >= _MAX_KEPT:
                self._found.clear()
            who = self._who.after_denials() if is_denied else self._who
            found = self._found[claims, is_denied] = self._for(who.claiming(claims))
        return found

    def _for(self, who: Who) -> list[Program]:
        return [
            self._program(number, program, who)
            for number, program in enumerate(self._programs)
            if applies(program.snapshot.data["selectors"], who.identity)
        ]

    def _program(self, number: int, program: Program, who: Who) -> Program:
        """Returns the program itself if the same rules are about this agent."""
        places = settled(program.snapshot.data["rules"], who)
        if program.applies and places == tuple(program.places):
            return program
        key = (number, places)
        found = self._made.get(key)
        if found is None:
            if len(self._made) >= _MAX_KEPT:
                self._made.clear()
            found = Program(program.layer, program.snapshot, who.identity, who.facts)
            self._made[key] = found
        return found


def count_once(facts: Sequence[Visit], claimed: Sequence[Visit]) -> None:
    """Removes from the visits of claims what the visits of the facts have left behind."""
    counted = {(kind, key) for visit in facts for kind, key, _ in visit.updates}
    forwarded = [update for visit in facts for update in visit.if_forwarded]
    counted |= {(kind, key) for kind, key, _ in forwarded}
    lowest = max((cell for kind, _, cell in forwarded if kind is _TAINT), default=())
    watched = {breaker.grant_key for visit in facts for breaker in visit.watches}
    trips = {trip for visit in facts for trip in visit.trips}
    used = {key for visit in facts for key in visit.grants_used}
    limits = {key for visit in facts for key in visit.limited_by}
    refusers = {visit.refused_by.grant_key for visit in facts if visit.refused_by is not None}

    def is_new(update: Update) -> bool:
        kind, key, cell = update
        return cell > lowest if kind is _TAINT else (kind, key) not in counted

    for visit in claimed:
        visit.updates = [each for each in visit.updates if is_new(each)]
        visit.if_forwarded = [each for each in visit.if_forwarded if is_new(each)]
        visit.watches = tuple(each for each in visit.watches if each.grant_key not in watched)
        visit.trips = tuple(each for each in visit.trips if each not in trips)
        visit.grants_used = tuple(each for each in visit.grants_used if each not in used)
        visit.limited_by = tuple(each for each in visit.limited_by if each not in limits)
        if visit.refused_by is not None and visit.refused_by.grant_key in refusers:
            visit.refused_by = None
