"""The rules that can matter for one tool of one server, in rule order.

Names are matched once, when a ToolRules is made, and so are risk classes that names alone decide.
What remains to be tested for each call is the condition of an entry: its risk classes, times,
arguments and targets.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from subluminal.contracts.decision import Decision
from subluminal.contracts.vocabulary import RuleKind, Taint
from subluminal.policy.contents import DataTest, TextTest, data_test, text_test
from subluminal.policy.predicates import (
    ArgsPredicate,
    TimePredicate,
    args_predicate,
    time_predicate,
)
from subluminal.policy.rules.access import AccessEntry
from subluminal.policy.rules.breaker import BreakerEntry
from subluminal.policy.rules.budget import BudgetEntry, ResettingBudgetEntry
from subluminal.policy.rules.dedupe import DedupeEntry
from subluminal.policy.rules.entry import Condition, Entry, Subject
from subluminal.policy.rules.kernel import KernelEntry
from subluminal.policy.rules.limit import LimitEntry
from subluminal.policy.rules.rate_limit import RateLimitEntry
from subluminal.policy.rules.sequence import SequenceEntry
from subluminal.policy.rules.sliding_limit import SlidingLimitEntry
from subluminal.policy.rules.tag import TagEntry
from subluminal.policy.rules.taint import TaintEntry
from subluminal.policy.snapshot import GIVEN_MATCHERS
from subluminal.policy.taint import TaintTest, taint_test
from subluminal.policy.targets import TargetsTest, targets_test
from subluminal.policy.visit import Call, NotInspected, NotJudged, Visit

if TYPE_CHECKING:
    from subluminal.policy.given import GivenTest

_ACCUMULATORS: dict[str, type[LimitEntry]] = {
    RuleKind.BUDGET: BudgetEntry,
    RuleKind.RATE_LIMIT: RateLimitEntry,
    RuleKind.BREAKER: BreakerEntry,
    RuleKind.DEDUPE: DedupeEntry,
    RuleKind.SEQUENCE: SequenceEntry,
}


class PreparedRule:
    """A rule of a snapshot with its predicates built. All tools share it."""

    __slots__ = (
        "args_test",
        "data",
        "data_test",
        "given_test",
        "risk_class",
        "taint_test",
        "targets_test",
        "text_test",
        "time_test",
    )

    def __init__(self, data: dict[str, Any]) -> None:
        self.data = data
        match = data["match"]
        self.risk_class = frozenset(match["risk_class"])
        self.args_test: ArgsPredicate | None = args_predicate(match["args"])
        self.time_test: TimePredicate | None = time_predicate(match["time"])
        # A snapshot without targets is the same as before there were any.
        # A rule that lets a call pass, or keeps it from lowering the run, must match all targets.
        needs_all = data["kind"] == RuleKind.ALLOW or _exempts(data)
        self.targets_test: TargetsTest | None = targets_test(
            match.get("targets"), needs_all=needs_all
        )
        self.taint_test: TaintTest | None = taint_test(match.get("taint"))
        self.given_test = _given_test(match)
        self.text_test: TextTest | None = text_test(match.get("text"))
        self.data_test: DataTest | None = data_test(match.get("data_any"), favours=needs_all)

    @property
    def is_about_servers(self) -> bool:
        """Whether this is a taint rule that names nothing but servers."""
        match = self.data["match"]
        of_run = (self.time_test, self.taint_test, self.given_test)
        of_call = (self.args_test, self.targets_test, self.text_test, self.data_test)
        return (
            self.data["kind"] == RuleKind.TAINT
            and bool(match["tool_name"]["any"])
            and not self.risk_class
            and all(test is None for test in (*of_run, *of_call))
        )


def _given_test(match: dict[str, Any]) -> "GivenTest | None":
    if not any(name in match for name in GIVEN_MATCHERS):
        return None
    # Most policies do not ask for it, and need not load this.
    from subluminal.policy.given import given_test

    return given_test(match)


def _exempts(data: dict[str, Any]) -> bool:
    effect = data["effect"].get("taint")
    return effect is not None and effect["lower_to"] == Taint.SYSTEM


def _accumulator(data: dict[str, Any]) -> type[LimitEntry]:
    kind = data["kind"]
    if kind == RuleKind.RATE_LIMIT and "max_calls" in data["effect"][kind]:
        return SlidingLimitEntry
    if kind == RuleKind.BUDGET and "reset_ms" in data["effect"][kind]:
        return ResettingBudgetEntry
    return _ACCUMULATORS[kind]


class UnpackedEntry(NamedTuple):
    """An entry with its parts looked up in advance, for the loop in `Program.decide`."""

    is_access: bool
    args_test: ArgsPredicate | None
    """the whole condition, if it is about arguments only, as most are"""
    visit: Callable[[Visit], Decision | None]
    entry: Entry


class ToolRules:
    """The rules of one policy for one tool, and the risk classes that names alone give it."""

    __slots__ = (
        "asks_data",
        "asks_kernel",
        "asks_targets",
        "classes",
        "entries",
        "tagged",
        "text_tests",
        "unpacked",
    )

    def __init__(self, rules: list[tuple[int, PreparedRule]], subject: Subject) -> None:
        self.entries: list[Entry] = []
        self.unpacked: list[UnpackedEntry] = []
        """the same entries, for the loop"""
        self.tagged: set[int] = set()
        """indexes of the tag rules that match every call of this tool, and so need no entry"""
        self.asks_targets = any(rule.targets_test is not None for _, rule in rules)
        """whether a rule tests what a call touches"""
        self.asks_kernel = any(rule.data["kind"] == RuleKind.KERNEL for _, rule in rules)
        """whether a rule asks a pack"""
        self.asks_data = any(rule.data_test is not None for _, rule in rules)
        """whether a rule tests which classes of data the arguments contain"""
        self.text_tests = tuple(rule.text_test for _, rule in rules if rule.text_test is not None)
        """the tests of what the arguments say"""
        settled: set[str] = set()
        gained: set[str] = set()
        """classes that a tag rule with a condition of its own may add"""
        for index, rule in rules:
            wanted = frozenset[str]()
            if rule.risk_class and settled.isdisjoint(rule.risk_class):
                wanted = rule.risk_class
                if gained.isdisjoint(wanted):
                    continue
            condition = condition_of(rule, wanted)
            if rule.data["kind"] == RuleKind.TAG and condition is None:
                settled.update(rule.data["effect"]["tag"]["add_risk_class"])
                self.tagged.add(index)
            else:
                entry = self._entry(index, rule.data, condition, subject)
                if isinstance(entry, TagEntry):
                    gained |= entry.classes
                entry.classes_above = frozenset(settled)
                self.entries.append(entry)
                of_run = wanted or rule.time_test or rule.taint_test or rule.given_test
                of_call = rule.targets_test or rule.text_test or rule.data_test
                args_test = None if of_run or of_call else rule.args_test
                unpacked = UnpackedEntry(entry.is_access, args_test, entry.visit, entry)
                self.unpacked.append(unpacked)
        self.classes = frozenset(settled)

    def _entry(
        self, index: int, data: dict[str, Any], condition: Condition | None, subject: Subject
    ) -> Entry:
        kind = data["kind"]
        if kind == RuleKind.TAG:
            return TagEntry(index, data, condition)
        if kind == RuleKind.TAINT:
            return TaintEntry(index, data, condition)
        if kind in _ACCUMULATORS:
            return _accumulator(data)(index, data, condition, subject)
        if kind == RuleKind.KERNEL:
            return KernelEntry(index, data, condition, subject, self._would_pass)
        return AccessEntry(index, data, condition, subject, self._would_pass)

    def _would_pass(self, args: dict[str, Any], refused: Visit) -> bool:
        """Whether allow, deny and kernel rules would let a call with these arguments pass.

        False if they test targets or data: nobody has read those of other arguments.
        """
        if self.asks_targets or self.asks_data:
            return False
        asked = refused.call
        call = Call(
            *("", "", args, ""), provider=asked.provider, given=asked.given, judge=asked.judge
        )
        visit = Visit(call, args, refused.read, refused.wall_ms, 0)
        for entry in self.entries:
            if entry.condition is not None and not entry.condition(visit):
                continue
            if isinstance(entry, AccessEntry):
                return entry.allows and not entry.needs_grant()
            if isinstance(entry, KernelEntry) and _objects(entry, args, visit):
                return False
            if isinstance(entry, TagEntry):
                entry.visit(visit)
        return True


def _objects(entry: KernelEntry, args: dict[str, Any], visit: Visit) -> bool:
    try:
        return entry.ask(args, visit).refusal is not None
    except NotJudged:
        return True


def condition_of(rule: PreparedRule, risk_class: frozenset[str]) -> Condition | None:
    """Builds the test of a call beyond its names; None if there is nothing to test.

    Arguments are tested last: NotInspected is raised only if everything else matches.
    """
    of_run, of_call = _run_condition(rule, risk_class), _call_condition(rule)
    if of_run is None or of_call is None:
        return of_run or of_call
    return lambda visit: of_run(visit) and of_call(visit)


def _run_condition(rule: PreparedRule, risk_class: frozenset[str]) -> Condition | None:
    """Builds the test of what can be told without the arguments of a call."""
    time_test, taint_test, given_test = rule.time_test, rule.taint_test, rule.given_test
    if not risk_class and all(test is None for test in (time_test, taint_test, given_test)):
        return None

    def condition(visit: Visit) -> bool:
        if risk_class and visit.classes.isdisjoint(risk_class):
            return False
        if time_test is not None and not time_test(visit.wall_ms):
            return False
        if given_test is not None and not given_test(visit.call):
            return False
        return taint_test is None or taint_test(visit.read)

    return condition


def _call_condition(rule: PreparedRule) -> Condition | None:
    args_test, targets_test = rule.args_test, rule.targets_test
    text_test, data_test = rule.text_test, rule.data_test
    if all(test is None for test in (args_test, targets_test, text_test, data_test)):
        return None

    def condition(visit: Visit) -> bool:
        if visit.args is None:
            raise NotInspected
        if args_test is not None and not args_test(visit.args):
            return False
        if targets_test is not None and not targets_test(visit.call.targets):
            return False
        if data_test is not None and not data_test(visit.call.data):
            return False
        return text_test is None or visit.texts_of(visit.args).holds(text_test)

    return condition
