"""All warnings and notes about a valid bundle, for `sub policy lint`.

`reach` finds rules that never act and writes without a limit; `suggestions` finds suggestions that
cannot help; `targets`, `taint` and `agents` find rules about targets, about the run's level and
about who acts that do less than they seem to; `contents` finds the same of texts and sequences, and
policies that end soon; the rest is here.
A warning is given only if it is certain.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from subluminal.contracts.bundle import AnyRule, Bundle, RateLimitRule, TagRule
from subluminal.contracts.shape import Misfit
from subluminal.contracts.vocabulary import Mode
from subluminal.errors import Problem
from subluminal.policy.lint.agents import agent_remarks, type_notes
from subluminal.policy.lint.contents import content_remarks, expiry_remarks
from subluminal.policy.lint.reach import shadowed_rules, unlimited_writes, unreachable_rules
from subluminal.policy.lint.suggestions import vain_suggestions
from subluminal.policy.lint.taint import taint_remarks
from subluminal.policy.lint.targets import target_remarks
from subluminal.policy.loading import LoadedBundle, rule_title
from subluminal.policy.text.places import problem_of

WARNING = "warning"
NOTE = "note"
"""Information that is never a fault: `--strict` does not fail because of a note."""


class Remark(NamedTuple):
    """One warning or note."""

    severity: str
    misfit: Misfit


def lint(loaded: LoadedBundle, wall_ms: int | None = None) -> list[Problem]:
    """Returns the warnings and notes with their places, in the order of the file.

    `wall_ms` is the time by which the end of the policy is judged; None if it is not.
    """
    title = rule_title(loaded.value)
    problems = [
        problem_of(loaded.in_its_words(misfit), loaded.node, loaded.file, title, severity)
        for severity, misfit in remarks(loaded.bundle, loaded.value, wall_ms)
    ]
    problems += [
        problem_of(misfit, loaded.node, loaded.file, title, WARNING) for misfit in loaded.warnings
    ]
    return sorted(problems, key=lambda problem: (problem.line, problem.column))


def remarks(bundle: Bundle, value: Any, wall_ms: int | None = None) -> list[Remark]:
    """Returns the warnings and notes about a bundle. `value` is the bundle as plain data."""
    warnings = [
        *unreachable_rules(bundle.rules),
        *shadowed_rules(bundle.rules),
        *unlimited_writes(bundle.rules),
        *vain_suggestions(bundle.rules),
        *target_remarks(bundle.rules),
        *taint_remarks(bundle),
        *agent_remarks(bundle.rules),
        *content_remarks(bundle.rules),
        *expiry_remarks(bundle, wall_ms),
        *_costly_calls(bundle.rules),
        *_idle_defaults(bundle),
        *_empty_lists(value),
    ]
    return [Remark(WARNING, misfit) for misfit in warnings] + [
        Remark(NOTE, misfit) for misfit in _notes(bundle)
    ]


def _costly_calls(rules: list[AnyRule]) -> Iterator[Misfit]:
    for index, rule in enumerate(rules):
        if isinstance(rule, RateLimitRule):
            limit = rule.effect.rate_limit
            if limit.capacity is not None and limit.cost_tokens_per_call > limit.capacity:
                yield Misfit(
                    ("rules", index, "effect", "rate_limit", "cost_tokens_per_call"),
                    f"no call can pass: a call costs {limit.cost_tokens_per_call} tokens, and the"
                    f" bucket holds {limit.capacity}",
                    "raise `capacity`, or lower `cost_tokens_per_call`",
                )


def _idle_defaults(bundle: Bundle) -> Iterator[Misfit]:
    if not bundle.defaults.fail_open_read_tools:
        return
    tagged = any(
        isinstance(rule, TagRule) and rule.enabled and "read_like" in rule.effect.tag.add_risk_class
        for rule in bundle.rules
    )
    if not tagged:
        yield Misfit(
            ("defaults", "fail_open_read_tools"),
            "has no effect: no enabled tag rule adds `read_like`",
            "add a tag rule for the tools that only read, or remove the field",
        )


_LISTS = (
    "risk_class",
    "environment",
    "agent_type",
    "agent_roles_any",
    "tool_provider",
    "data_labels_any",
)
_SELECTORS = ("env", "agent_id", "client")
_WORKLOAD = ("namespace", "service_account", "labels", "repo", "branch")


def _empty_lists(value: Any) -> Iterator[Misfit]:
    """Finds empty lists, which look like "none" and mean "all"."""
    paths: list[tuple[str | int, ...]] = [("selectors", name) for name in _SELECTORS]
    paths += [("selectors", "workload", name) for name in _WORKLOAD]
    for index in range(len(value["rules"])):
        paths += [("rules", index, "match", name) for name in _LISTS]
        paths += [("rules", index, "match", name) for name in ("server_name", "tool_name")]
    for path in paths:
        found = _at(value, path)
        if found is not None and _is_empty(found):
            yield Misfit(path, "is empty, so it matches everything", "remove the field")


def _is_empty(found: Any) -> bool:
    return all(item == [] for item in found.values()) if isinstance(found, dict) else not found


def _at(value: Any, path: tuple[str | int, ...]) -> Any:
    for part in path:
        value = value.get(part) if isinstance(value, dict) else value[part]
        if value is None:
            return None
    return value


def _notes(bundle: Bundle) -> Iterator[Misfit]:
    if bundle.mode is Mode.OBSERVE:
        yield Misfit(("mode",), "`observe` records what would be refused, and enforces nothing")
    if not bundle.rules:
        yield Misfit(("rules",), "the policy has no rules: every call is allowed")
    yield from type_notes(bundle.rules)
    for index, rule in enumerate(bundle.rules):
        if not rule.enabled:
            yield Misfit(("rules", index, "enabled"), "the rule is disabled and has no effect")
