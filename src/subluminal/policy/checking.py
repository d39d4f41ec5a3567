"""Finds values that no policy can mean in a bundle whose shape is right.

A bundle with a misfit is not compiled, so a rule never does silently less than it says
(rule-evaluation). In this order: the bundle, matches (Pack 2.4), effects kind by kind (Pack 2.5).
"""

from collections.abc import Callable, Iterator
from typing import assert_never

from msgspec import UNSET

from subluminal.contracts.bundle import (
    AccessEffect,
    AllowRule,
    AnyRule,
    ArgsMatch,
    Breaker,
    BreakerRule,
    Budget,
    BudgetRule,
    Bundle,
    Dedupe,
    DedupeRule,
    DenyRule,
    KernelRule,
    Match,
    NameMatch,
    PinRule,
    RateLimitRule,
    SequenceRule,
    Suggestion,
    Tag,
    TagRule,
    TaintRule,
    TargetsMatch,
    TimeMatch,
)
from subluminal.contracts.limits import MAX_PATTERN_CHARS, MAX_RULES
from subluminal.contracts.shape import Misfit, Path
from subluminal.contracts.vocabulary import Action, Taint
from subluminal.policy.agent_checks import agent_misfits
from subluminal.policy.bounds import amount_misfits, not_finite, range_misfits
from subluminal.policy.content_checks import (
    constraint_misfits,
    expiry_misfits,
    number_misfits,
    rate_limit_misfits,
    sequence_misfits,
    text_misfits,
)
from subluminal.policy.costs import cost_misfits
from subluminal.policy.packs import FindPack, no_packs, pack_misfits
from subluminal.policy.patterns import glob_problem, regex_problem
from subluminal.policy.raising import LimitRule
from subluminal.policy.snapshot import NO_POLICY_ID


def semantic_misfits(bundle: Bundle, find_pack: FindPack = no_packs) -> list[Misfit]:
    """Returns every impossible value; an empty list if the bundle can be compiled."""
    if len(bundle.rules) > MAX_RULES:
        return [Misfit(("rules",), f"has {len(bundle.rules)} rules; the most is {MAX_RULES}")]
    found = [*_unfit_names(bundle), *expiry_misfits(bundle), *_duplicate_ids(bundle.rules)]
    for index, rule in enumerate(bundle.rules):
        found += rule_misfits(rule, index, find_pack)
    return found or cost_misfits(bundle)


def rule_misfits(rule: AnyRule, index: int, find_pack: FindPack) -> list[Misfit]:
    """Returns the misfits of one rule. Paths begin at the bundle."""
    found = list(match_misfits(rule.match)) + list(effect_misfits(rule, find_pack))
    targets = rule.match.targets
    if targets is not None and targets.opaque and isinstance(rule, AllowRule):
        hint = "remove `opaque`: an allow matches only if everything that a call touches is known"
        found.append(Misfit(("match", "targets", "opaque"), "can never match in an allow", hint))
    if not rule.rule_id.strip():
        found.append(Misfit(("rule_id",), "must not be empty"))
    return [misfit._replace(path=("rules", index, *misfit.path)) for misfit in found]


def _unfit_names(bundle: Bundle) -> Iterator[Misfit]:
    for name in ("policy_id", "version"):
        if not getattr(bundle, name).strip():
            yield Misfit((name,), "must not be empty")
    if bundle.policy_id == NO_POLICY_ID:
        hint = "give the policy another name"
        yield Misfit(("policy_id",), "`none` stands for runs without a policy", hint)


def _duplicate_ids(rules: list[AnyRule]) -> Iterator[Misfit]:
    first: dict[str, int] = {}
    for index, rule in enumerate(rules):
        # A blank id has a misfit of its own.
        if rule.rule_id.strip() and first.setdefault(rule.rule_id, index) != index:
            hint = f"rule {first[rule.rule_id] + 1} has the same; give each rule an id of its own"
            yield Misfit(("rules", index, "rule_id"), "duplicate rule_id", hint)


def match_misfits(match: Match) -> Iterator[Misfit]:
    """Finds the misfits of a match. Paths begin at the rule."""
    yield from _names(match.server_name, ("match", "server_name"))
    yield from _names(match.tool_name, ("match", "tool_name"))
    for index, name in enumerate(match.risk_class):
        if not name.strip():
            yield Misfit(("match", "risk_class", index), "must not be empty")
    if match.args is not None:
        yield from _args(match.args, ("match", "args"))
    if match.context is not None:
        yield from _args(match.context, ("match", "context"))
    yield from agent_misfits(match)
    if match.time is not None:
        yield from _time(match.time, ("match", "time"))
    if match.targets is not None:
        yield from _targets(match.targets, ("match", "targets"))
    if match.text is not None:
        yield from text_misfits(match.text, ("match", "text"))
    if match.taint is not None and match.taint.below is Taint.UNTRUSTED:
        hint = "write `below: TRUSTED` for runs that are UNTRUSTED"
        yield Misfit(("match", "taint", "below"), "no level is below UNTRUSTED", hint)


def _names(names: NameMatch | None, path: Path) -> Iterator[Misfit]:
    if names is None:
        return
    yield from _patterns(names.glob, glob_problem, "glob", path)
    yield from _patterns(names.regex, regex_problem, "regex", path)


def _patterns(
    patterns: list[str], problem_of: Callable[[str], str | None], name: str, path: Path
) -> Iterator[Misfit]:
    for index, pattern in enumerate(patterns):
        problem = problem_of(pattern)
        if problem is not None:
            shown = f" `{pattern[:40]}`" if pattern else ""
            yield Misfit((*path, name, index), f"invalid {name}{shown}: {problem}")


def _args(args: ArgsMatch, path: Path) -> Iterator[Misfit]:
    for key, value in args.key_equals.items():
        yield from not_finite(value, (*path, "key_equals", key))
    for key, value in args.key_not_equals.items():
        yield from not_finite(value, (*path, "key_not_equals", key))
    for key, values in args.key_in.items():
        if not values:
            yield Misfit((*path, "key_in", key), "an empty list matches no value")
        yield from not_finite(values, (*path, "key_in", key))
    for key, bounds in args.numeric_range.items():
        yield from number_misfits(bounds, (*path, "numeric_range", key))


def _time(time: TimeMatch, path: Path) -> Iterator[Misfit]:
    for index, pair in enumerate(time.utc_hours):
        problem = _hours_problem(pair)
        if problem is not None:
            hint = "write `[9, 17]` for 09:00 to 17:00, or `[22, 6]` for a night"
            yield Misfit((*path, "utc_hours", index), problem, hint)


def _targets(targets: TargetsMatch, path: Path) -> Iterator[Misfit]:
    if targets == TargetsMatch():
        hint = "name `program`, `argv`, `path`, `access`, `host`, or `opaque: true`"
        yield Misfit(path, "says nothing about targets", hint)
    yield from _names(targets.program, (*path, "program"))
    yield from _names(targets.argv, (*path, "argv"))
    yield from _names(targets.host, (*path, "host"))
    if targets.path is None:
        return
    place = (*path, "path")
    names = NameMatch(glob=targets.path.glob, regex=targets.path.regex)
    yield from _names(names, place)
    for name in ("inside", "outside"):
        for index, directory in enumerate(getattr(targets.path, name)):
            if directory != "." and not _is_directory(directory):
                hint = "write an absolute path such as `/tmp`, or `.` for the repository"
                yield Misfit((*place, name, index), f"`{directory[:40]}` is not a directory", hint)


def _is_directory(text: str) -> bool:
    parts = text.split("/")
    return text.startswith("/") and len(text) <= MAX_PATTERN_CHARS and ".." not in parts


def _hours_problem(pair: list[int]) -> str | None:
    if len(pair) != 2:
        return f"expected a pair of hours, got {len(pair)}"
    start, end = pair
    if not 0 <= start <= 23 or not 0 <= end <= 24:
        return "an hour must be between 0 and 24"
    if start == end:
        return f"the time from {start} to {end} is empty"
    return None


def effect_misfits(rule: AnyRule, find_pack: FindPack = no_packs) -> Iterator[Misfit]:
    """Finds the misfits of an effect. Paths begin at the rule."""
    match rule:
        case AllowRule() | DenyRule():
            yield from _access(rule.effect, isinstance(rule, AllowRule))
        case BudgetRule() | RateLimitRule() | BreakerRule() | DedupeRule() | SequenceRule():
            yield from _limit(rule)
        case TagRule():
            yield from _tag(rule.effect.tag)
        case TaintRule():
            pass  # every level is possible
        case KernelRule():
            yield from _kernel(rule, find_pack)
        case PinRule():
            yield Misfit(
                ("kind",),
                "unknown rule kind `pin`: this version cannot watch tool definitions",
                "remove the rule: it would protect nothing",
            )
        case _:  # pragma: no cover
            assert_never(rule)


def _limit(rule: LimitRule) -> Iterator[Misfit]:
    match rule:
        case BudgetRule():
            yield from _budget(rule.effect.budget)
        case RateLimitRule():
            yield from rate_limit_misfits(rule.effect.rate_limit)
        case BreakerRule():
            yield from _breaker(rule.effect.breaker)
        case DedupeRule():
            yield from _dedupe(rule.effect.dedupe)
        case SequenceRule():
            yield from sequence_misfits(rule.effect.sequence)
        case _:  # pragma: no cover
            assert_never(rule)


def _access(effect: AccessEffect, allows: bool) -> Iterator[Misfit]:
    path: Path = ("effect",)
    if allows != (effect.action == Action.ALLOW):
        wanted = "`ALLOW`" if allows else "`BLOCK` or `REJECT_WITH_HINT`"
        kind = "an allow" if allows else "a deny"
        hint = f"use {wanted}, or another rule kind"
        yield Misfit((*path, "action"), f"{kind} rule cannot {effect.action}", hint)
    if not effect.reason_code.strip():
        yield Misfit((*path, "reason_code"), "must not be empty")
    if allows and effect.suggest:
        yield Misfit((*path, "suggest"), "only a deny rule can suggest other arguments")
    for key, suggestion in effect.suggest.items():
        yield from _suggestion(suggestion, (*path, "suggest", key))
    yield from constraint_misfits(effect)
    yield from amount_misfits(effect.expires_ms, 1, (*path, "expires_ms"))
    if effect.require is None:
        for name in ("approver_role", "expires_ms"):
            if getattr(effect, name) is not None:
                yield Misfit(
                    (*path, name), "has no effect without `require`", "add `require`, or remove it"
                )


def _suggestion(suggestion: Suggestion, path: Path) -> Iterator[Misfit]:
    clamps = suggestion.clamp_min is not None or suggestion.clamp_max is not None
    given = [
        name
        for name, is_given in (
            ("set", suggestion.set is not UNSET),
            ("remove", suggestion.remove),
            ("clamp_min/clamp_max", clamps),
            ("one_of", bool(suggestion.one_of)),
        )
        if is_given
    ]
    if len(given) != 1:
        told = " and ".join(f"`{name}`" for name in given) or "none"
        hint = "give exactly one of `set`, `remove: true`, `clamp_min`/`clamp_max`, `one_of`"
        yield Misfit(path, f"expected one operation, got {told}", hint)
    if clamps:
        names = ("clamp_min", "clamp_max")
        yield from range_misfits(suggestion.clamp_min, suggestion.clamp_max, names, path)
    yield from not_finite(suggestion.set, (*path, "set"))
    yield from not_finite(suggestion.one_of, (*path, "one_of"))


def _budget(budget: Budget) -> Iterator[Misfit]:
    path: Path = ("effect", "budget")
    if budget.limit_calls is None and budget.limit_cost_units is None:
        yield Misfit(path, "needs `limit_calls` or `limit_cost_units`")
    yield from amount_misfits(budget.limit_calls, 0, (*path, "limit_calls"))
    yield from amount_misfits(budget.limit_cost_units, 0, (*path, "limit_cost_units"))
    # A call that costs nothing would never reach the limit.
    yield from amount_misfits(budget.cost_units_per_call, 1, (*path, "cost_units_per_call"))
    yield from amount_misfits(budget.reset_ms, 1, (*path, "reset_ms"))


_BREAKER_GROUPS = (
    ("error_threshold", "window_ms"),
    ("repeat_threshold", "repeat_window_ms"),
    ("latency_threshold_ms", "latency_count", "window_ms"),
)
_BREAKER_FIELDS = tuple(dict.fromkeys(name for group in _BREAKER_GROUPS for name in group))


def _breaker(breaker: Breaker) -> Iterator[Misfit]:
    path: Path = ("effect", "breaker")
    given = {name for name in _BREAKER_FIELDS if getattr(breaker, name) is not None}
    for name in _BREAKER_FIELDS:
        yield from amount_misfits(getattr(breaker, name), 1, (*path, name))
    complete = [group for group in _BREAKER_GROUPS if given.issuperset(group)]
    halves = list(_half_groups(given))
    for name, missing in halves:
        told = " and ".join(f"`{each}`" for each in missing)
        yield Misfit((*path, name), f"needs {told} as well")
    if not complete and not halves:
        hint = (
            "give `error_threshold` and `window_ms`, or `repeat_threshold` and `repeat_window_ms`"
        )
        yield Misfit(path, "would never trip", hint)


def _half_groups(given: set[str]) -> Iterator[tuple[str, list[str]]]:
    """Finds incomplete groups: a given field, and the missing ones."""
    for group in _BREAKER_GROUPS:
        own = [name for name in group if name != "window_ms" and name in given]
        missing = [name for name in group if name not in given]
        if own and missing:
            yield own[0], missing
    if "window_ms" in given and not given & {
        "error_threshold",
        "latency_threshold_ms",
        "latency_count",
    }:
        yield "window_ms", ["error_threshold"]


def _dedupe(dedupe: Dedupe) -> Iterator[Misfit]:
    path: Path = ("effect", "dedupe")
    yield from amount_misfits(dedupe.window_ms, 1, (*path, "window_ms"))
    if dedupe.key != "args_hash":
        yield Misfit(
            (*path, "key"), "this version compares calls by `args_hash` only", "remove `key`"
        )
    if dedupe.on_duplicate == "REPLAY":
        hint = "use `BLOCK` or `REJECT_WITH_HINT`"
        message = "this version cannot replay recorded answers"
        yield Misfit((*path, "on_duplicate"), message, hint)


def _tag(tag: Tag) -> Iterator[Misfit]:
    path: Path = ("effect", "tag", "add_risk_class")
    if not tag.add_risk_class:
        yield Misfit(path, "an empty list adds no class", "name a risk class, or remove the rule")
    for index, name in enumerate(tag.add_risk_class):
        if not name.strip():
            yield Misfit((*path, index), "must not be empty")


def _kernel(rule: KernelRule, find_pack: FindPack) -> Iterator[Misfit]:
    asked, path = rule.effect.kernel, ("effect", "kernel")
    for field, argument in (asked.payload or {}).items():
        if not field.strip() or not argument.strip():
            yield Misfit((*path, "payload", field), "names must not be empty")
    found = list(not_finite(asked.state, (*path, "state")))
    if found or not rule.enabled:
        yield from found  # the pack of a disabled rule need not be installed
    else:
        yield from pack_misfits(asked, find_pack, path)
