"""The rules that can matter for one tool of one server, prepared and in order.

Names are matched here, once; so are risk classes where no tag depends on a call's arguments. What
is left for each call is in the entries' guards.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from subluminal.contracts.decision import Decision
from subluminal.contracts.vocabulary import RuleKind
from subluminal.policy.predicates import (
    ArgsPredicate,
    TimePredicate,
    args_predicate,
    time_predicate,
)
from subluminal.policy.rules.access import AccessEntry
from subluminal.policy.rules.breaker import BreakerEntry
from subluminal.policy.rules.budget import BudgetEntry
from subluminal.policy.rules.dedupe import DedupeEntry
from subluminal.policy.rules.entry import Entry, Guard, Subject
from subluminal.policy.rules.rate_limit import RateLimitEntry
from subluminal.policy.rules.tag import TagEntry
from subluminal.policy.visit import Call, NotInspected, Visit

_ACCUMULATORS: dict[str, type[BudgetEntry | RateLimitEntry | BreakerEntry | DedupeEntry]] = {
    RuleKind.BUDGET: BudgetEntry,
    RuleKind.RATE_LIMIT: RateLimitEntry,
    RuleKind.BREAKER: BreakerEntry,
    RuleKind.DEDUPE: DedupeEntry,
}


class PreparedRule:
    """A rule of a snapshot with its predicates built; shared by all plans."""

    __slots__ = ("args_test", "data", "risk_class", "time_test")

    def __init__(self, data: dict[str, Any]) -> None:
        self.data = data
        match = data["match"]
        self.risk_class = frozenset(match["risk_class"])
        self.args_test: ArgsPredicate | None = args_predicate(match["args"])
        self.time_test: TimePredicate | None = time_predicate(match["time"])


class Step(NamedTuple):
    """An entry, taken apart for the loop that every call passes (`Program.decide`)."""

    is_access: bool
    args_test: ArgsPredicate | None
    """all that the guard asks, if it only asks about arguments, as most do"""
    visit: Callable[[Visit], Decision | None]
    entry: Entry


class Plan:
    """Entries in rule order, and the risk classes that names alone give."""

    __slots__ = ("classes", "entries", "steps", "tagged")

    def __init__(self, rules: list[tuple[int, PreparedRule]], subject: Subject) -> None:
        self.entries: list[Entry] = []
        self.steps: list[Step] = []
        self.tagged: set[int] = set()
        """tag rules that hold for every call of this tool, and so have no entry"""
        settled: set[str] = set()
        for index, rule in rules:
            wanted = frozenset[str]()
            if rule.risk_class and settled.isdisjoint(rule.risk_class):
                wanted = rule.risk_class
                if not self._may_gain(wanted):
                    continue
            guard = guard_of(rule, wanted)
            if rule.data["kind"] == RuleKind.TAG and guard is None:
                settled.update(rule.data["effect"]["tag"]["add_risk_class"])
                self.tagged.add(index)
            else:
                entry = self._entry(index, rule.data, guard, subject)
                entry.classes_above = frozenset(settled)
                self.entries.append(entry)
                args_test = None if wanted or rule.time_test else rule.args_test
                self.steps.append(Step(entry.is_access, args_test, entry.visit, entry))
        self.classes = frozenset(settled)

    def _may_gain(self, wanted: frozenset[str]) -> bool:
        """Whether a tag above, one that looks at arguments or time, may still add a class."""
        return any(
            isinstance(entry, TagEntry) and not wanted.isdisjoint(entry.classes)
            for entry in self.entries
        )

    def _entry(
        self, index: int, data: dict[str, Any], guard: Guard | None, subject: Subject
    ) -> Entry:
        kind = data["kind"]
        if kind == RuleKind.TAG:
            return TagEntry(index, data, guard)
        if kind in _ACCUMULATORS:
            return _ACCUMULATORS[kind](index, data, guard, subject)
        return AccessEntry(index, data, guard, subject, self._would_pass)

    def _would_pass(self, args: dict[str, Any], wall_ms: int) -> bool:
        """Whether the access rules alone would let these arguments through."""
        visit = Visit(Call("", "", args, ""), args, lambda _kind, _key: (), wall_ms, 0)
        for entry in self.entries:
            if entry.guard is not None and not entry.guard(visit):
                continue
            if isinstance(entry, AccessEntry):
                return entry.allows and not entry.needs_grant()
            if isinstance(entry, TagEntry):
                entry.visit(visit)
        return True


def guard_of(rule: PreparedRule, risk_class: frozenset[str]) -> Guard | None:
    """Builds the test that each call has to pass; None if names settle everything.

    Arguments come last: only a rule that otherwise matches may find them too large to read.
    """
    args_test, time_test = rule.args_test, rule.time_test
    if args_test is None and time_test is None and not risk_class:
        return None

    def guard(visit: Visit) -> bool:
        if risk_class and visit.classes.isdisjoint(risk_class):
            return False
        if time_test is not None and not time_test(visit.wall_ms):
            return False
        if args_test is None:
            return True
        if visit.args is None:
            raise NotInspected
        return args_test(visit.args)

    return guard
