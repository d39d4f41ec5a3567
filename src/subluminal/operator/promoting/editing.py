"""The edit of a policy's text that lets a refused call pass, checked before it is written."""

from typing import Any, NamedTuple

import msgspec

from subluminal.contracts.bundle import AllowRule, Bundle, DenyRule, Match
from subluminal.contracts.decision import Decision
from subluminal.contracts.vocabulary import Action, Dialect, Mode, ReasonCode
from subluminal.core.policies.installed import find_installed, installed_judge
from subluminal.errors import SubluminalError, UsageError
from subluminal.operator.policies import is_snapshot
from subluminal.operator.promoting.hinted import Hinted
from subluminal.policy.compiling import compile_bundle
from subluminal.policy.loading import parse_bundle
from subluminal.policy.promoting import (
    also_passed,
    decide,
    exception_rule,
    free_rule_id,
    is_on_record,
    refusing_rule,
    watched_keys,
)
from subluminal.policy.raising import LimitRule, chosen, kind_of, numbers_of, raised
from subluminal.policy.text.inserting import insert_rule
from subluminal.policy.text.numbers import replace_numbers

EXACT, ANY = "exact", "any"
"""The exception covers exactly the call's arguments, or any arguments."""


class Wish(NamedTuple):
    """The scope, name and description of the exception to write, or the numbers of a limit."""

    args: str | None
    """EXACT, ANY, or `keys`: only the arguments that the refusing rule looks at; None for EXACT"""
    keys: list[str]
    """names of arguments; if there are any, `args` is ignored"""
    rule_id: str | None
    description: str
    numbers: dict[str, int]
    """new numbers of a limit; if there are none, `policy.raising` chooses them"""


class Number(NamedTuple):
    """A number of a limit, before and after."""

    field: str
    old: int
    new: int


class PolicyEdit(NamedTuple):
    """A policy before and after it was edited: a rule was inserted, or numbers were changed."""

    old: Bundle
    new: Bundle
    data: bytes
    """the new text"""
    rule: dict[str, Any] | None
    """the exception that was inserted"""
    numbers: list[Number]
    """numbers that were changed"""
    also_passed: list[str]
    """later rules that no longer see these calls"""
    is_proven: bool
    """whether the new policy was evaluated on the refused call itself"""


def edit_policy(data: bytes, file: str, hinted: Hinted, wish: Wish) -> PolicyEdit:
    """Loosens the rule of a hint: by an exception, or by other numbers. Raises SubluminalError."""
    if is_snapshot(data):
        raise SubluminalError(
            f"`{file}` is a compiled policy", hint="name the file that it was compiled from"
        )
    loaded = parse_bundle(data, file, find_installed)
    if loaded.dialect is not Dialect.PACK:
        raise SubluminalError(
            f"`{file}` is a bundle of Agent-SPM, which `sub promote` cannot edit",
            hint="change the bundle by hand; without `--to`, the call passes for its run only",
        )
    old = loaded.bundle
    index, refused_by = refusing_rule(old, hinted.rule_id, hinted.reason_code)
    if isinstance(refused_by, AllowRule | DenyRule):
        return _with_exception(data, file, hinted, wish, old, index, refused_by)
    return _with_numbers(data, file, hinted, wish, old, index, refused_by)


def _with_exception(
    data: bytes,
    file: str,
    hinted: Hinted,
    wish: Wish,
    old: Bundle,
    index: int,
    refused_by: AllowRule | DenyRule,
) -> PolicyEdit:
    """Inserts an exception and evaluates both policies on the call."""
    if wish.numbers:
        raise UsageError(f"rule `{refused_by.rule_id}` has no numbers", hint="leave `--set` out")
    keys = _keys(hinted, refused_by, wish)
    is_proven = is_on_record(hinted.call, compile_bundle(old))
    if is_proven:
        _check_refused(old, hinted)
    rule = exception_rule(
        hinted.call,
        keys,
        rule_id=wish.rule_id or free_rule_id(old, refused_by.rule_id),
        description=wish.description,
        message=f"an exception to {refused_by.rule_id}",
        refused_by=refused_by,
    )
    made = insert_rule(data, index, rule)
    new = parse_bundle(made, file, find_installed).bundle
    if is_proven:
        _check_passes(new, hinted)
    match = msgspec.convert(rule["match"], Match)
    passed = also_passed(old.rules, index, match)
    return PolicyEdit(old, new, made, rule, [], passed, is_proven)


def _with_numbers(
    data: bytes,
    file: str,
    hinted: Hinted,
    wish: Wish,
    old: Bundle,
    index: int,
    limit: LimitRule,
) -> PolicyEdit:
    """Changes numbers of a limit. A replay of the call's run tells whether the call would pass."""
    if wish.args or wish.keys or wish.rule_id:
        raise UsageError(
            f"rule `{limit.rule_id}` is a {kind_of(limit).value} rule: an exception does not"
            " shield from it",
            hint="`--set FIELD=N` chooses its numbers",
        )
    _check_applies(old, hinted)
    wanted = chosen(limit, wish.numbers) if wish.numbers else raised(limit, hinted.cause)
    path = ("rules", index, "effect", kind_of(limit).value)
    made = replace_numbers(data, {(*path, name): number for name, number in wanted.items()})
    given = numbers_of(limit)
    numbers = [Number(name, given[name], number) for name, number in wanted.items()]
    return PolicyEdit(
        old, parse_bundle(made, file, find_installed).bundle, made, None, numbers, [], False
    )


def _keys(hinted: Hinted, refused_by: AllowRule | DenyRule, wish: Wish) -> list[str]:
    """Returns the names of the arguments that the exception compares."""
    if wish.args == ANY and not wish.keys:
        return []
    args = hinted.call.args
    if args is None:
        raise SubluminalError(
            "the arguments of this call were masked or cut when they were recorded",
            hint="`--args any` allows every call of this tool, `--session` only those of this run",
        )
    if wish.keys:
        missing = [key for key in wish.keys if key not in args]
        if missing:
            raise UsageError(
                f"the call has no argument `{missing[0]}`", hint=f"it has {_listed(list(args))}"
            )
        return list(dict.fromkeys(wish.keys))
    if wish.args in (None, EXACT):
        if not args:
            raise UsageError(
                "this call has no arguments, so an exception would allow every call of the tool",
                hint="confirm that with `--args any`",
            )
        return list(args)
    watched = [key for key in watched_keys(refused_by) if key in args]
    if not watched:
        raise UsageError(
            f"rule `{refused_by.rule_id}` looks at no argument of this call",
            hint="use `--args exact`, `--key NAME` or, for every call of the tool, `--args any`",
        )
    return watched


def _listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names) or "none"


def _check_refused(old: Bundle, hinted: Hinted) -> None:
    """Raises SubluminalError unless this policy refuses the call by the rule of the hint."""
    decision = _check_applies(old, hinted)
    if decision.action is Action.ALLOW:
        raise SubluminalError(f"policy `{old.policy_id}` already allows this call")
    if decision.rule_id != hinted.rule_id:
        raise SubluminalError(
            f"this call is now refused by another rule, `{decision.rule_id}`",
            hint="let the agent try again, then promote the new hint",
        )


def _check_applies(old: Bundle, hinted: Hinted) -> Decision:
    """Decides the call by this policy. Raises SubluminalError if the policy enforces nothing."""
    if old.mode is Mode.OBSERVE:
        raise SubluminalError(f"policy `{old.policy_id}` is in observe mode and refuses no calls")
    decision = decide(compile_bundle(old), hinted.call, installed_judge)
    if decision.reason_code == ReasonCode.POLICY_NOT_APPLICABLE:
        raise SubluminalError(
            f"policy `{old.policy_id}` does not apply to the run of this call",
            hint="name the file of the policy that refused it",
        )
    return decision


def _check_passes(new: Bundle, hinted: Hinted) -> None:
    decision = decide(compile_bundle(new), hinted.call, installed_judge)
    if decision.action is not Action.ALLOW:
        raise SubluminalError(
            f"an exception would not help: rule `{decision.rule_id}` refuses this call too",
            hint=f"`sub policy explain` shows why: {decision.summary}",
        )
