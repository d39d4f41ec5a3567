"""Tests of what a door or a program says about a call: `tool_provider`, `data_labels_any`,
`context`.

A door that says nothing about a call gives it no labels and an empty context.
"""

from collections.abc import Callable, Mapping
from typing import Any

from subluminal.contracts.call import Given
from subluminal.policy.predicates import args_predicate
from subluminal.policy.snapshot import GIVEN_MATCHERS
from subluminal.policy.visit import Call

GivenTest = Callable[[Call], bool]
_NOTHING = Given()


def given_test(match: Mapping[str, Any]) -> GivenTest | None:
    """Builds the test from `match` of a snapshot; None if it has no such matcher."""
    tests = list(given_tests(match).values())
    if len(tests) <= 1:
        return tests[0] if tests else None
    return lambda call: all(test(call) for test in tests)


def given_tests(match: Mapping[str, Any]) -> dict[str, GivenTest]:
    """Builds the tests of each such matcher, by its name."""
    return {name: _TESTS[name](match[name]) for name in GIVEN_MATCHERS if name in match}


def _provider_test(wanted: list[str]) -> GivenTest:
    providers = frozenset(wanted)
    return lambda call: call.provider in providers


def _labels_test(wanted: list[str]) -> GivenTest:
    labels = frozenset(wanted)
    return lambda call: call.given is not None and not labels.isdisjoint(call.given.labels)


def _context_test(spec: dict[str, Any]) -> GivenTest:
    test = args_predicate(spec)
    if test is None:  # an empty context asks nothing
        return lambda _: True
    return lambda call: test((call.given or _NOTHING).context)


_TESTS: dict[str, Callable[[Any], GivenTest]] = {
    "tool_provider": _provider_test,
    "data_labels_any": _labels_test,
    "context": _context_test,
}
