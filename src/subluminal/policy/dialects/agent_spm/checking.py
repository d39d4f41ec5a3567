"""Finds what no bundle of Agent-SPM can mean: what its loader refuses, and conditions that never
hold. There such a condition silently turns its rule off; here the bundle is not loaded.

Paths begin at Agent-SPM's bundle. Warnings are about rules that mean something, though probably not
what their author thinks.
"""

from collections.abc import Iterator
from typing import Any

from subluminal.contracts.shape import Misfit, Path, did_you_mean
from subluminal.policy.dialects.agent_spm.dates import rfc3339_of
from subluminal.policy.dialects.agent_spm.expressions import (
    CannotTranslate,
    is_skipped,
    translate,
)
from subluminal.policy.dialects.agent_spm.shape import (
    MAX_DEPTH,
    MAX_RULES,
    RuleMatch,
    RuleWhen,
    SpmBundle,
    SpmRule,
)
from subluminal.policy.patterns import regex_problem
from subluminal.policy.predicates import is_number, same_value
from subluminal.timestamps import parse_rfc3339

DEFAULT_RULE_ID = "defaults.outcome"
"""rule_id of the rule that stands for the bundle's default."""

_COMPARISONS = ("gt", "gte", "lt", "lte")
_OPERATORS = (*_COMPARISONS, "eq", "neq")
_KNOWN = ("version", "generated_at", "expires_at", "rules", "defaults", "signature")


def depth_misfits(value: Any) -> list[Misfit]:
    """Finds a value that is nested deeper than Agent-SPM loads."""
    level: list[tuple[Path, Any]] = [((), value)]
    for _ in range(MAX_DEPTH):
        level = [
            ((*path, key), item)
            for path, each in level
            for key, item in (each.items() if isinstance(each, dict) else enumerate(each))
            if isinstance(item, dict | list)
        ]
        if not level:
            return []
    hint = "Agent-SPM does not load such a bundle either"
    return [Misfit(level[0][0], f"nested deeper than {MAX_DEPTH} levels", hint)]


def bundle_misfits(bundle: SpmBundle, now_ms: int | None) -> list[Misfit]:
    """Returns every impossible value. `now_ms` is the time of loading; None accepts old bundles."""
    if len(bundle.rules) > MAX_RULES:
        return [Misfit(("rules",), f"has {len(bundle.rules)} rules; the most is {MAX_RULES}")]
    found = [*_head(bundle, now_ms), *_ids(bundle.rules)]
    for index, rule in enumerate(bundle.rules):
        for misfit in (*_match(rule.match), *_when(rule.when)):
            found.append(misfit._replace(path=("rules", index, *misfit.path)))
    return found


def _head(bundle: SpmBundle, now_ms: int | None) -> Iterator[Misfit]:
    if not bundle.version.strip():
        yield Misfit(("version",), "must not be empty")
    generated, expires = rfc3339_of(bundle.generated_at), rfc3339_of(bundle.expires_at)
    for name, read in (("generated_at", generated), ("expires_at", expires)):
        if read is None:
            hint = "write a date such as `2027-01-31T09:00:00Z`, with its time zone"
            yield Misfit((name,), f"`{getattr(bundle, name)[:40]}` is not a date", hint)
    if generated is None or expires is None:
        return
    end_ms = parse_rfc3339(expires)
    if now_ms is not None and end_ms < now_ms:
        hint = "renew the bundle: give it a later `expires_at`, and sign it again"
        yield Misfit(("expires_at",), f"the bundle expired at {expires}", hint)
    if parse_rfc3339(generated) >= end_ms:
        yield Misfit(("generated_at",), "must be before `expires_at`")


def _ids(rules: list[SpmRule]) -> Iterator[Misfit]:
    first: dict[str, int] = {}
    for index, rule in enumerate(rules):
        where = ("rules", index, "id")
        if not rule.id.strip():
            yield Misfit(where, "must not be empty")
        elif rule.id == DEFAULT_RULE_ID:
            yield Misfit(where, f"`{DEFAULT_RULE_ID}` stands for the bundle's default")
        elif first.setdefault(rule.id, index) != index:
            hint = f"rule {first[rule.id] + 1} has the same; give each rule an id of its own"
            yield Misfit(where, "duplicate id", hint)


def _match(match: RuleMatch) -> Iterator[Misfit]:
    names = match.tool_name if isinstance(match.tool_name, list) else [match.tool_name]
    if not names:
        yield Misfit(("match", "tool_name"), "an empty list matches no tool", 'write `"*"` for all')
    for index, name in enumerate(names):
        if not name:
            where = (index,) if isinstance(match.tool_name, list) else ()
            yield Misfit(("match", "tool_name", *where), "an empty name matches no tool")
    if not match.environment:
        hint = 'write `"*"` for every environment'
        yield Misfit(("match", "environment"), "an empty name matches no environment", hint)
    for field in ("agent_type", "tool_provider"):
        if getattr(match, field) == []:
            hint = "remove the member, or name what must match"
            yield Misfit(("match", field), "an empty list never matches", hint)


def _when(when: RuleWhen) -> Iterator[Misfit]:
    for field in ("contains_any", "not_contains"):
        for index, text in enumerate(getattr(when, field)):
            if not text:
                message = "an empty text is part of every value"
                yield Misfit(("when", field, index), message, "remove it")
    if _excludes_itself(when):
        message = "never holds: every text of `contains_any` has one of `not_contains` in it"
        yield Misfit(("when", "not_contains"), message)
    yield from _expression(when.matches_regex)
    for key, wanted in (when.tool_args_match or {}).items():
        yield from _wanted(wanted, ("when", "tool_args_match", key))


def _excludes_itself(when: RuleWhen) -> bool:
    never = [text.casefold() for text in when.not_contains if text]
    wanted = [text.casefold() for text in when.contains_any]
    return bool(wanted) and all(any(each in text for each in never) for text in wanted)


def _expression(pattern: str) -> Iterator[Misfit]:
    try:
        problem = regex_problem(translate(pattern))
    except CannotTranslate as error:
        problem = str(error)
    if problem is not None:
        hint = "Agent-SPM would skip the rule, or could hang; write the pattern in another way"
        message = f"invalid regex `{pattern[:40]}`: {problem}"
        yield Misfit(("when", "matches_regex"), message, hint)


def _wanted(wanted: Any, path: Path) -> Iterator[Misfit]:
    if isinstance(wanted, list):
        yield Misfit(path, "never holds: no argument equals a list", "compare a single value")
    if not isinstance(wanted, dict):
        return
    unknown = [name for name in wanted if name not in _OPERATORS]
    for name in unknown:
        hint = did_you_mean(name, _OPERATORS)
        yield Misfit((*path, name), f"unknown operator `{name[:60]}`", hint, at_key=True)
    wrong = [name for name in _COMPARISONS if name in wanted and not is_number(wanted[name])]
    for name in wrong:
        yield Misfit((*path, name), "expected a number")
    if isinstance(wanted.get("eq"), dict | list):
        yield Misfit((*path, "eq"), "never holds: no argument equals a list or an object")
    elif not unknown and not wrong and _never_holds(wanted):
        yield Misfit(path, "never holds: the operators exclude each other")


def _never_holds(wanted: dict[str, Any]) -> bool:
    """Whether no value fits all operators."""
    if "eq" in wanted:
        return not _fits(wanted["eq"], wanted)
    low = max((wanted[name] for name in ("gt", "gte") if name in wanted), default=None)
    high = min((wanted[name] for name in ("lt", "lte") if name in wanted), default=None)
    if low is None or high is None or low < high:
        return False
    return low > high or not _fits(low, wanted)


def _fits(value: Any, wanted: dict[str, Any]) -> bool:
    if "neq" in wanted and same_value(value, wanted["neq"]):
        return False
    if any(name in wanted for name in _COMPARISONS) and not is_number(value):
        return False
    return (
        ("gt" not in wanted or value > wanted["gt"])
        and ("gte" not in wanted or value >= wanted["gte"])
        and ("lt" not in wanted or value < wanted["lt"])
        and ("lte" not in wanted or value <= wanted["lte"])
    )


def bundle_warnings(bundle: SpmBundle, value: dict[str, Any]) -> list[Misfit]:
    """Returns what a valid bundle probably does not mean. `value` is the bundle as plain data."""
    found = [
        *_ignored(value, _KNOWN, ()),
        *_ignored(value["defaults"], ("outcome",), ("defaults",)),
    ]
    for index, rule in enumerate(bundle.rules):
        for misfit in _rule_warnings(rule):
            found.append(misfit._replace(path=("rules", index, *misfit.path)))
    return found


def _ignored(value: dict[str, Any], known: tuple[str, ...], path: Path) -> Iterator[Misfit]:
    for name in value:
        if name not in known:
            yield Misfit(
                (*path, name), f"`{name[:60]}` is ignored", did_you_mean(name, known), True
            )


def _rule_warnings(rule: SpmRule) -> Iterator[Misfit]:
    if isinstance(rule.match.tool_name, list):
        for index, name in enumerate(rule.match.tool_name):
            if name.endswith("*"):
                hint = "a list holds exact names; give a prefix a rule of its own"
                message = f"`{name[:40]}` matches only a tool with this very name"
                yield Misfit(("match", "tool_name", index), message, hint)
    if rule.when.matches_regex and is_skipped(rule.when.matches_regex):
        message = "Agent-SPM never runs this pattern, so the rule never matched there; here it does"
        yield Misfit(("when", "matches_regex"), message, "check that the rule says what you want")
    for key, wanted in (rule.when.tool_args_match or {}).items():
        yield from _idle_operators(wanted, ("when", "tool_args_match", key))
    if rule.approver_role and rule.outcome in ("ALLOW", "DENY"):
        message = f"has no effect on the outcome {rule.outcome}"
        yield Misfit(("approver_role",), message, "remove it, or use REQUIRE_APPROVAL")


def _idle_operators(wanted: Any, path: Path) -> Iterator[Misfit]:
    if wanted == {}:
        yield Misfit(path, "asks nothing", f"give an operator: {', '.join(_OPERATORS)}")
    elif isinstance(wanted, dict) and isinstance(wanted.get("neq"), dict | list):
        yield Misfit((*path, "neq"), "always holds: no argument equals a list or an object")
