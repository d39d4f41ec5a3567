"""The most that one decision can cost, and the bound on it (linear-patterns).

A decision is made under the lock of a run, and an agent chooses the names and arguments of its
calls. So a bundle whose worst call would take too long is not compiled. The cost of a call is

    every regex, and every glob that needs one, against the longest name that is matched
    + every rule that the same call can meet, with its arguments, targets and counters

in units of about a microsecond. `bench/policy_costs.py` measures the worst bundles that pass.
"""

from typing import Any, NamedTuple

from subluminal.contracts.bundle import (
    AnyRule,
    ArgsMatch,
    BreakerRule,
    Bundle,
    DedupeRule,
    KernelRule,
    NameMatch,
    SequenceRule,
    TagRule,
    TaintRule,
    TargetsMatch,
    TextMatch,
)
from subluminal.contracts.limits import MAX_CALL_COST, MAX_NAME_BYTES, MAX_TARGETS_BYTES
from subluminal.contracts.shape import Misfit, Path
from subluminal.policy.patterns import NamePatterns, compile_names, glob_patterns, program_size
from subluminal.policy.texts import TextPatterns, compile_texts

_INSTRUCTION = 3
"""One instruction of a compiled pattern, tried at every byte of the longest name."""
_RULE = 10
"""A rule that matches a tool: collected at the tool's first call, and visited."""
_PREDICATE = 1
"""One predicate about an argument."""
_VALUES = 5
"""Number of nested values that are compared in one unit."""
_KINDS: dict[type[AnyRule], int] = {
    DedupeRule: 25,
    BreakerRule: 15,
    TagRule: 5,
    TaintRule: 5,
    KernelRule: 25,
    SequenceRule: 15,
}
"""Cost of a kind beyond that of other rules."""
_REPEATS = 25
"""Cost of a breaker that counts repeats: like dedupe, it writes a new key for most calls."""
_TARGETS = 60
"""A rule about targets: every command, path and host of a call is compared."""
_PARTS = 16
"""A glob with several `*`, searched in the text of all targets."""
_TEXTS = MAX_TARGETS_BYTES // MAX_NAME_BYTES
"""How much more text all targets of a call have than one name."""
_WORD = 20
"""A text that is searched in the arguments. They are searched before the run's lock is taken."""
_SEARCHED = 10
"""One instruction of a regex that is searched in the arguments, for the same reason not more."""
_NAMED = 3
"""Number of rules that the error names."""


class RuleCost(NamedTuple):
    """What one rule adds to the cost of a call."""

    number: int
    """index of the rule in the bundle"""
    patterns: int
    """cost of its patterns, for every call of a tool that is new to the run"""
    visit: int
    """cost for each call that its names match"""
    servers: NamePatterns
    tools: NamePatterns

    @property
    def total(self) -> int:
        return self.patterns + self.visit


def cost_misfits(bundle: Bundle) -> list[Misfit]:
    """Returns the misfit of a valid bundle that costs too much, at its most expensive rule."""
    costs = rule_costs(bundle)
    worst = worst_call(costs)
    if worst <= MAX_CALL_COST:
        return []
    first, *others = sorted(costs, key=lambda cost: -cost.total)[:_NAMED]
    named = [f"`{bundle.rules[each.number].rule_id[:60]}` ({each.total:,})" for each in others]
    more = f"; next are {' and '.join(named)}" if named else ""
    return [
        Misfit(
            ("rules", first.number, *_place(bundle.rules[first.number], first)),
            f"the policy is too expensive: one call may cost {worst:,} units of at most"
            f" {MAX_CALL_COST:,}. This rule costs most ({first.total:,}){more}",
            _advice(costs),
        )
    ]


def _place(rule: AnyRule, cost: RuleCost) -> Path:
    """Returns the part of a rule that costs most."""
    if cost.patterns <= cost.visit:
        return ("match",)
    servers, tools = _patterns_cost(cost.servers), _patterns_cost(cost.tools)
    name = "server_name" if servers > tools else "tool_name"
    names = getattr(rule.match, name)
    return "match", name, "regex" if names.regex else "glob"


def _advice(costs: list[RuleCost]) -> str:
    if 2 * sum(each.patterns for each in costs) > worst_call(costs):
        return (
            "write `+` or `*` instead of a counted repetition such as `{1,100}`, or use a glob:"
            " exact names, `prefix*` and `*suffix` cost nothing"
        )
    return "name the tools that each rule is about, or merge rules about the same tools"


def worst_call(costs: list[RuleCost]) -> int:
    """Returns the cost of the most expensive call that rules could have to decide."""
    patterns = sum(each.patterns for each in costs)
    by_tool = _worst_name([(each.visit, each.tools) for each in costs])
    by_server = _worst_name([(each.visit, each.servers) for each in costs])
    return patterns + min(by_tool, by_server)


def rule_costs(bundle: Bundle) -> list[RuleCost]:
    """Returns the cost of every enabled rule."""
    return [_rule_cost(index, rule) for index, rule in enumerate(bundle.rules) if rule.enabled]


def _rule_cost(index: int, rule: AnyRule) -> RuleCost:
    servers, tools = compile_names(rule.match.server_name), compile_names(rule.match.tool_name)
    visit = _RULE + _KINDS.get(type(rule), 0)
    visit += _args_cost(rule.match.args) + _args_cost(rule.match.context)
    visit += _targets_cost(rule.match.targets) + (0 if rule.match.taint is None else _PREDICATE)
    visit += _contents_cost(rule.match.text) + (_PREDICATE if rule.match.data_any else 0)
    if isinstance(rule, SequenceRule):
        visit += len(rule.effect.sequence.pattern) // 4
    if isinstance(rule, BreakerRule) and rule.effect.breaker.repeat_threshold is not None:
        visit += _REPEATS
    patterns = _patterns_cost(servers) + _patterns_cost(tools)
    if isinstance(rule, SequenceRule):
        globs = rule.effect.sequence.pattern
        patterns += sum(_patterns_cost(glob_patterns([glob])) for glob in globs)
    return RuleCost(index, patterns, visit, servers, tools)


def _patterns_cost(names: NamePatterns) -> int:
    return _INSTRUCTION * sum(map(program_size, names.re2))


def _targets_cost(targets: TargetsMatch | None) -> int:
    if targets is None:
        return 0
    path = targets.path
    names = [targets.program, targets.argv, targets.host]
    names += [] if path is None else [NameMatch(glob=path.glob, regex=path.regex)]
    return _TARGETS + sum(_texts_cost(compile_texts(each)) for each in names if each is not None)


def _texts_cost(patterns: TextPatterns) -> int:
    regexes = _TEXTS * _INSTRUCTION * sum(map(program_size, patterns.re2))
    return regexes + _PARTS * len(patterns.parts)


def _contents_cost(text: TextMatch | None) -> int:
    if text is None:
        return 0
    words = _WORD * (len(text.any_of) + len(text.none_of))
    return words + (0 if text.regex is None else _SEARCHED * program_size(f"(?i:{text.regex})"))


def _args_cost(args: ArgsMatch | None) -> int:
    if args is None:
        return 0
    keys = len(args.has_keys) + len(args.key_equals) + len(args.key_in) + len(args.numeric_range)
    keys += len(args.key_not_equals)
    # Strings and numbers are looked up in a set, however many there are.
    nested = sum(map(_nested_values, args.key_in.values()))
    return _PREDICATE * keys + nested // _VALUES


def _nested_values(values: list[Any]) -> int:
    return sum(_size(value) for value in values if isinstance(value, list | dict))


def _size(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + sum(map(_size, value.values()))
    return 1 + sum(map(_size, value)) if isinstance(value, list) else 1


def _worst_name(parts: list[tuple[int, NamePatterns]]) -> int:
    """Returns the highest sum of costs that one name can meet.

    Suffixes and regexes are taken to match every name.
    """
    everywhere = 0
    exact: dict[str, int] = {}
    prefix: dict[str, int] = {}
    for cost, names in parts:
        if names.any or names.suffix or names.re2:
            everywhere += cost
            continue
        for words, table in ((names.exact, exact), (names.prefix, prefix)):
            for word in words:
                table[word] = table.get(word, 0) + cost
    worst = 0
    above: list[tuple[str, int]] = []
    """the prefixes of the current word, each with the sum of the costs up to it"""
    for word in sorted({*exact, *prefix}):
        while above and not word.startswith(above[-1][0]):
            above.pop()
        cost = above[-1][1] if above else 0
        if word in prefix:
            cost += prefix[word]
            above.append((word, cost))
        worst = max(worst, cost + exact.get(word, 0))
    return everywhere + worst
