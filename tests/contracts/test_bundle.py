"""Contract B: the bundle is read strictly, with the defaults that are written in its types."""

from typing import Any

import msgspec
import pytest
from tests.contracts import samples
from tests.requirements import requirement

from subluminal.contracts.bundle import Bundle, Match, Selectors
from subluminal.contracts.vocabulary import Mode, RuleKind, Scope, Severity


def bundle_of(value: dict[str, Any]) -> Bundle:
    return msgspec.convert(value, Bundle)


def with_rule(rule: dict[str, Any]) -> dict[str, Any]:
    return {**samples.BUNDLE, "rules": [rule]}


@requirement("2.1:bundle-fields", "2.3:rule-fields", "2.5:effect-fields")
def test_a_bundle_with_every_kind_is_read() -> None:
    bundle = bundle_of(samples.BUNDLE)
    assert [rule.__struct_config__.tag for rule in bundle.rules] == list(samples.EFFECTS)
    assert bundle.mode is Mode.GUARDRAILS


@requirement("2.1:bundle-fields")
@pytest.mark.parametrize(
    "field", ["policy_id", "version", "mode", "defaults", "selectors", "rules"]
)
def test_a_bundle_needs_its_required_fields(field: str) -> None:
    broken = {key: value for key, value in samples.BUNDLE.items() if key != field}
    with pytest.raises(msgspec.ValidationError, match=field):
        bundle_of(broken)


@requirement("2.1:bundle-fields")
def test_recommended_fields_are_kept() -> None:
    more = {"description": "d", "owner": "o", "created_at": "2025-12-15T12:34:56Z"}
    bundle = bundle_of({**samples.BUNDLE, **more})
    assert (bundle.description, bundle.owner, bundle.created_at) == tuple(more.values())


@requirement("2.3:rule-fields")
@pytest.mark.parametrize("field", ["rule_id", "kind", "enabled", "match", "effect", "severity"])
@pytest.mark.parametrize("kind", samples.EFFECTS)
def test_a_rule_needs_its_required_fields(kind: str, field: str) -> None:
    rule = samples.rule(kind)
    del rule[field]
    with pytest.raises(msgspec.ValidationError, match=field):
        bundle_of(with_rule(rule))


@requirement("2.3:rule-fields", "2.5:effect-fields")
def test_the_words_of_rules_are_the_packs() -> None:
    assert [kind.value for kind in RuleKind if kind is not RuleKind.PIN] == list(samples.EFFECTS)
    assert [scope.value for scope in Scope] == [
        *("run", "tool", "server_tool"),
        *("agent", "agent_tool"),  # additive
    ]
    assert [severity.value for severity in Severity] == ["info", "warn", "critical"]
    assert [mode.value for mode in Mode] == ["observe", "guardrails", "control"]


@requirement("0.2:unknown-rule-kinds")
@pytest.mark.parametrize("kind", ["denny", "", "DENY", None])
def test_an_unknown_rule_kind_is_an_error(kind: str | None) -> None:
    with pytest.raises(msgspec.ValidationError):
        bundle_of(with_rule({**samples.rule("deny"), "kind": kind}))


@requirement("0.2:unknown-rule-kinds")
@pytest.mark.parametrize(
    "broken",
    [
        {**samples.BUNDLE, "rule": []},
        {**samples.BUNDLE, "selectors": {"agents": ["a"]}},
        {**samples.BUNDLE, "defaults": {"decision_on_error": "BLOCK", "fail_open": True}},
        with_rule(samples.rule("deny", when={})),
        with_rule(samples.rule("deny", match={"tool": {"glob": ["*"]}})),
        with_rule(samples.rule("deny", match={"args": {"has_key": ["a"]}})),
        with_rule(samples.rule("budget", effect={**samples.EFFECTS["budget"], "deny": {}})),
    ],
)
def test_an_unknown_field_is_an_error_at_every_level(broken: dict[str, Any]) -> None:
    """A misspelt field must never be a rule that silently does not match (rule-evaluation)."""
    with pytest.raises(msgspec.ValidationError, match="unknown field"):
        bundle_of(broken)


@requirement("0.2:defaults")
def test_every_optional_field_has_a_default() -> None:
    bundle = bundle_of({**samples.BUNDLE, "selectors": {}, "rules": [samples.rule("budget")]})
    assert bundle.defaults.fail_open_read_tools is False
    assert bundle.selectors == Selectors()
    assert bundle.rules[0].effect.budget.cost_units_per_call == 1
    assert bundle.rules[0].effect.budget.count == "attempts"
    rate = bundle_of(with_rule(samples.rule("rate_limit"))).rules[0].effect.rate_limit
    assert rate.cost_tokens_per_call == 1
    assert Match() == Match(server_name=None, tool_name=None, risk_class=[], args=None, time=None)


@requirement("2.2:selector-fields")
def test_the_supported_selectors_are_the_packs() -> None:
    workload = {
        "namespace": ["a"],
        "service_account": ["b"],
        "labels": {"k": "v"},
        "repo": ["acme/x"],
        "branch": ["main"],
    }
    selectors = {"env": ["ci"], "agent_id": ["a"], "client": ["codex"], "workload": workload}
    bundle = bundle_of({**samples.BUNDLE, "selectors": selectors})
    assert msgspec.to_builtins(bundle.selectors) == selectors


@requirement("2.4:match-fields")
def test_the_match_object_is_the_packs() -> None:
    match = {
        "server_name": {"glob": ["git*", "linear"], "regex": ["^g"]},
        "tool_name": {"glob": ["push"], "regex": ["x"]},
        "risk_class": ["write_like"],
        "args": {
            "has_keys": ["a"],
            "key_equals": {"s": "x", "i": 1, "f": 1.5, "b": True},
            "key_in": {"k": ["a", 1]},
            "numeric_range": {"n": {"min": 1, "max": 2.5}},
        },
    }
    rule = bundle_of(with_rule(samples.rule("deny", match=match))).rules[0]
    assert msgspec.to_builtins(rule.match) == match


@requirement("2.5:effect-fields")
@pytest.mark.parametrize(
    ("kind", "field", "value"),
    [
        ("allow", "action", "TERMINATE_RUN"),
        ("budget", "on_exceed", "THROTTLE"),
        ("rate_limit", "on_limit", "TERMINATE_RUN"),
        ("breaker", "on_trip", "THROTTLE"),
        ("dedupe", "on_duplicate", "ALLOW"),
    ],
)
def test_an_effect_admits_only_its_own_actions(kind: str, field: str, value: str) -> None:
    effect = samples.EFFECTS[kind]
    changed = (
        {**effect, field: value} if kind == "allow" else {kind: {**effect[kind], field: value}}
    )
    with pytest.raises(msgspec.ValidationError, match=field):
        bundle_of(with_rule(samples.rule(kind, effect=changed)))


@requirement("2.1:bundle-fields")
def test_a_bundle_is_frozen() -> None:
    bundle: Bundle = bundle_of(samples.BUNDLE)
    with pytest.raises(AttributeError, match="immutable"):
        bundle.mode = Mode.OBSERVE  # type: ignore[misc]
