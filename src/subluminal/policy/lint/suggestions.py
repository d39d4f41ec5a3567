"""Finds suggestions that cannot help: the corrected call would always be denied again.

An evaluation never offers such arguments. Lint warns the author if that is certain in advance.
"""

from collections.abc import Iterator
from typing import Any

from msgspec import UNSET, structs

from subluminal.contracts.bundle import (
    AllowRule,
    AnyRule,
    ArgsMatch,
    DenyRule,
    NumericRange,
    Suggestion,
)
from subluminal.contracts.shape import Misfit
from subluminal.policy.covering import among, covers, possible_values
from subluminal.policy.covering_contents import in_range
from subluminal.policy.predicates import is_number, same_value
from subluminal.policy.rules.access import clamped


def vain_suggestions(rules: list[AnyRule]) -> Iterator[Misfit]:
    """Finds deny rules whose suggestion their own policy would deny."""
    for index, rule in enumerate(rules):
        if not (isinstance(rule, DenyRule) and rule.enabled and rule.effect.suggest):
            continue
        path = ("rules", index, "effect", "suggest")
        asks_more = rule.match.text is not None or bool(rule.match.data_any)
        if not asks_more and not _can_leave(rule.match.args or ArgsMatch(), rule.effect.suggest):
            yield Misfit(
                path,
                "cannot help: the corrected arguments would match this rule again",
                "suggest a value that `match.args` does not match",
            )
            continue
        other = _always_denies(rules, index)
        if other is not None:
            yield Misfit(
                path,
                f"cannot help: rule `{other[:60]}` would deny the corrected call",
                "change that rule, or remove the suggestion",
            )


def _can_leave(args: ArgsMatch, suggest: dict[str, Suggestion]) -> bool:
    """Whether a predicate of the rule may fail for the corrected arguments."""
    return any(_breaks(args, key, suggestion) for key, suggestion in suggest.items())


def _breaks(args: ArgsMatch, key: str, suggestion: Suggestion) -> bool:
    if suggestion.remove:
        return key in {*args.has_keys, *args.key_equals, *args.key_in, *args.numeric_range}
    if suggestion.set is not UNSET:
        return not _holds(args, key, suggestion.set)
    if suggestion.one_of:
        # The first value is suggested, unless the argument is one of them already.
        return not _holds(args, key, suggestion.one_of[0])
    return _clamp_breaks(args, key, suggestion)


def _holds(args: ArgsMatch, key: str, value: Any) -> bool:
    """Whether the predicates about a key hold for a value."""
    if key in args.key_equals and not same_value(args.key_equals[key], value):
        return False
    if key in args.key_not_equals and same_value(args.key_not_equals[key], value):
        return False
    if key in args.key_in and not among(value, args.key_in[key]):
        return False
    return key not in args.numeric_range or in_range(value, args.numeric_range[key])


def _clamp_breaks(args: ArgsMatch, key: str, suggestion: Suggestion) -> bool:
    low, high = suggestion.clamp_min, suggestion.clamp_max
    possible = possible_values(args, key)
    if possible is not None:
        return any(
            is_number(value) and not _holds(args, key, clamped(value, low, high))
            for value in possible
        )
    bounds = args.numeric_range.get(key)
    if bounds is None:
        return False
    # A value in the rule's range always leaves it only if the clamp lies outside that range.
    above = low is not None and not in_range(low, NumericRange(max=bounds.max, lt=bounds.lt))
    below = high is not None and not in_range(high, NumericRange(min=bounds.min, gt=bounds.gt))
    return above or below


def _always_denies(rules: list[AnyRule], index: int) -> str | None:
    """Returns another deny rule, not below an allow, that matches every call of this rule."""
    match = structs.replace(rules[index].match, args=None)
    for position, rule in enumerate(rules):
        if not rule.enabled or position == index:
            continue
        if isinstance(rule, AllowRule):
            return None
        if isinstance(rule, DenyRule) and covers(rule.match, match):
            return rule.rule_id
    return None
