"""Lint and the published schemas agree: about complete bundles, and about policies as people write them.

A valid bundle is changed at random, in a few places. What the schema accepts, lint accepts, unless it
is one of the few things that a schema cannot say. What lint accepts, the schema accepts.
"""

import json
import os
import sys
from copy import deepcopy
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from tests.differential import generated
from tests.differential.generated import Chooser, seeded
from tests.policy.bundles import plain, rule
from tests.policy.desk import find_desk
from tests.requirements import requirement

from subluminal.errors import InvalidInput
from subluminal.policy.loading import bundle_in
from subluminal.policy.text.places import Node

SCHEMAS = Path(__file__).parents[2] / "schema"
VALIDATORS = {
    name: jsonschema_rs.validator_for(json.loads((SCHEMAS / f"{name}.schema.json").read_text()))
    for name in ("bundle", "policy")
}
EXAMPLES = int(os.environ.get("SCHEMA_EXAMPLES", "1000"))

UNSAYABLE = (
    "duplicate rule_id",
    "is greater than",  # an empty range
    "invalid glob",
    "invalid regex",
    "the policy is too expensive",
    "is not installed",
    "has no intent",
    "the installed pack has",
)
"""Problems that a schema cannot express."""

VALUES: list[Any] = [
    None, True, False, 0, 1, -1, 24, 23, 10**12, 10**12 + 1, 0.5, -2.5, "", " ", "\u3000", "a", "none",
    "x" * 1_024, "x" * 1_025, [], [[]], [""], ["a"], [1, 2], [9, 9], [22, 6], [0, 24], [24, 0], {}, {"a": 1},
    {"a": []}, {"a": [1]}, {"a": {}}, {"min": 1}, {"min": None}, {"set": None}, {"remove": True},
    {"remove": False}, {"clamp_min": 1}, {"one_of": []}, {"one_of": [1]}, {"set": 1, "remove": True},
    {"a": {"set": 1}}, {"a": {"clamp_max": None}}, {"a": {"one_of": [1], "clamp_max": 3}},
    "kernel", "desk", "desk.close", {"a": " "}, {" ": "a"}, {"f": "a"},
    "allow", "deny", "budget", "rate_limit", "breaker", "dedupe", "tag", "pin", "ALLOW", "BLOCK",
    "REJECT_WITH_HINT", "TERMINATE_RUN", "THROTTLE", "REPLAY", "args_hash", "custom", "approval", "run",
]  # fmt: skip
FIELDS = [
    "policy_id", "version", "mode", "defaults", "selectors", "rules", "description", "enabled", "match",
    "severity", "effect", "action", "reason_code", "message", "hint_text", "suggest", "require",
    "approver_role", "expires_ms", "scope", "limit_calls", "limit_cost_units", "backoff_ms", "window_ms",
    "error_threshold", "repeat_threshold", "repeat_window_ms", "latency_count", "latency_threshold_ms",
    "pack", "intent", "payload", "state", "fingerprint",
    "key", "time", "utc_hours", "weekdays", "args", "numeric_range", "key_in", "min", "max", "glob", "odd",
]  # fmt: skip


def lint(value: Any, name: str) -> list[str]:
    try:
        bundle_in(value, Node(), "p", (), find_desk, is_short=name == "policy")
    except InvalidInput as refused:
        return [problem.message for problem in refused.problems]
    return []


def changed(choose: Chooser, value: Any) -> Any:
    """A value with one thing in it changed, removed or added."""
    if isinstance(value, dict) and value and choose.below(6):
        key = choose.one(sorted(value))
        match choose.below(8):
            case 0:
                return {each: item for each, item in value.items() if each != key}
            case 1:
                return {**value, choose.one(FIELDS): deepcopy(choose.one(VALUES))}
            case _:
                return {**value, key: changed(choose, value[key])}
    if isinstance(value, list) and value and choose.below(6):
        index = choose.below(len(value))
        if not choose.below(6):
            return value[:index] + value[index + 1 :]
        return [*value[:index], changed(choose, value[index]), *value[index + 1 :]]
    return deepcopy(choose.one(VALUES))


def assert_agreement(value: Any, name: str) -> None:
    told = lint(value, name)
    accepts = VALIDATORS[name].is_valid(value)
    if accepts:
        assert not [each for each in told if not any(known in each for known in UNSAYABLE)]
    else:
        assert told, next(VALIDATORS[name].iter_errors(value)).message


@requirement("house:schemas")
@pytest.mark.parametrize("name", VALIDATORS)
@pytest.mark.parametrize("changes", [0, 1, 3])
def test_lint_and_schema_accept_the_same(name, changes):
    for seed in range(EXAMPLES):
        choose = seeded(seed)
        value = generated.bundle(choose)
        for _ in range(changes):
            value = changed(choose, value)
        try:
            assert_agreement(value, name)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {json.dumps(value)}") from error


@pytest.mark.parametrize("name", VALIDATORS)
@pytest.mark.parametrize(
    "kind", ["budget", "rate_limit", "breaker", "dedupe", "allow", "deny", "tag"]
)
@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_lint_and_schema_agree_about_every_field(name, kind, value):
    made = rule(kind, require="approval", suggest={}) if kind in ("allow", "deny") else rule(kind)
    effect = made["effect"] if kind in ("allow", "deny") else made["effect"][kind]
    for field in [*effect, "window_ms", "error_threshold", "latency_count", "expires_ms", "key"]:
        inner = {**effect, field: value}
        each = {**made, "effect": inner if kind in ("allow", "deny") else {kind: inner}}
        assert_agreement(plain(each), name)


def test_a_blank_name_is_the_same_to_both():
    validator = VALIDATORS["bundle"]
    for code in (*range(0xD800), *range(0xE000, sys.maxunicode + 1)):
        if chr(code).isspace() or code < 0x3100:
            name = chr(code)
            assert validator.is_valid(plain(policy_id=name)) == bool(name.strip()), hex(code)
