"""`misfits`: every mistake is reported at once, in words, with a suggestion."""

from typing import Annotated, Any, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.contracts import samples
from tests.requirements import requirement

from subluminal.contracts.bundle import Bundle
from subluminal.contracts.decision import Hint
from subluminal.contracts.shape import Misfit, did_you_mean, misfits, noun_of, struct_of

pytestmark = requirement("house:misfits")


def with_rule(kind: str, /, **changes: Any) -> dict[str, Any]:
    return {**samples.BUNDLE, "rules": [{**samples.rule(kind), **changes}]}


def told(value: Any, type_: Any = Bundle) -> list[tuple[str, str, str | None]]:
    return [
        (".".join(map(str, misfit.path)), misfit.message, misfit.hint)
        for misfit in misfits(value, type_)
    ]


def test_a_valid_bundle_has_no_misfit() -> None:
    assert misfits(samples.BUNDLE, Bundle) == []
    assert struct_of(samples.BUNDLE, Bundle).policy_id == "p"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ([], ("", "expected a mapping, got a list", None)),
        (
            with_rule("deny", kind="denny"),
            ("rules.0.kind", "unknown rule kind `denny`", "did you mean `deny`?"),
        ),
        (
            {**samples.BUNDLE, "mode": "guard"},
            ("mode", "unknown value `guard`", "did you mean `guardrails`?"),
        ),
        (
            {**samples.BUNDLE, "mode": 3},
            (
                "mode",
                "expected one of `observe`, `guardrails`, `control`, got a whole number `3`",
                None,
            ),
        ),
        (
            {**samples.BUNDLE, "version": 1.0},
            (
                "version",
                "expected a string, got a number `1.0`",
                "put it in quotes to make it a string",
            ),
        ),
        (
            {**samples.BUNDLE, "rules": {}},
            ("rules", "expected a list, got a mapping", None),
        ),
        (
            {**samples.BUNDLE, "rules": [1]},
            ("rules.0", "expected a mapping, got a whole number `1`", None),
        ),
        (
            with_rule("deny", enabled="yes"),
            ("rules.0.enabled", "expected true or false, got a string `yes`", None),
        ),
        (
            with_rule("deny", rule_id=True),
            (
                "rules.0.rule_id",
                "expected a string, got true or false",
                "put it in quotes to make it a string",
            ),
        ),
        (
            with_rule("deny", match={"tool_nam": {}}),
            ("rules.0.match.tool_nam", "unknown field `tool_nam`", "did you mean `tool_name`?"),
        ),
        (
            with_rule("deny", match={"tool_name": {"glob": "push"}}),
            ("rules.0.match.tool_name.glob", "expected a list, got a string `push`", None),
        ),
        (
            with_rule("deny", match={"args": {"key_equals": {"a": []}}}),
            (
                "rules.0.match.args.key_equals.a",
                "expected a string or a whole number or a number or true or false or nothing, got a list",
                None,
            ),
        ),
        (
            with_rule("deny", match={"args": {"key_in": []}}),
            ("rules.0.match.args.key_in", "expected a mapping, got a list", None),
        ),
        (
            with_rule("deny", match={"args": {"numeric_range": {3: {"min": 1}}}}),
            (
                "rules.0.match.args.numeric_range",
                "expected a string as key, got a whole number `3`",
                None,
            ),
        ),
        (
            with_rule(
                "budget",
                effect={"budget": {**samples.EFFECTS["budget"]["budget"], "scope": "runn"}},
            ),
            ("rules.0.effect.budget.scope", "unknown value `runn`", "did you mean `run`?"),
        ),
        (
            with_rule("budget", effect={"budget": None}),
            ("rules.0.effect.budget", "expected a mapping, got nothing", None),
        ),
    ],
    ids=lambda value: value[1] if isinstance(value, tuple) else "",
)
def test_one_mistake(value: Any, expected: tuple[str, str, str | None]) -> None:
    assert told(value) == [expected]


@pytest.mark.parametrize(
    ("field", "hint"),
    [
        ("policy_id", None),
        ("mode", "one of `observe`, `guardrails`, `control`"),
        ("selectors", "write `{}` to match everything"),
        ("defaults", None),
    ],
)
def test_a_missing_field_has_a_hint_with_its_values(field: str, hint: str | None) -> None:
    value = {key: member for key, member in samples.BUNDLE.items() if key != field}
    assert told(value) == [("", f"missing field `{field}`", hint)]


def test_a_missing_literal_has_a_hint_with_its_values() -> None:
    ((_, message, hint),) = told({**samples.BUNDLE, "defaults": {}})
    assert message == "missing field `decision_on_error`"
    assert sorted((hint or "").removeprefix("one of ").split(", ")) == ["`ALLOW`", "`BLOCK`"]


def test_a_rule_without_a_kind_has_a_hint_with_all_kinds() -> None:
    rule = samples.rule("deny")
    del rule["kind"]
    ((path, message, hint),) = told({**samples.BUNDLE, "rules": [rule]})
    assert (path, message) == ("rules.0", "missing field `kind`")
    assert hint is not None
    assert "`rate_limit`" in hint


def test_every_mistake_is_reported_at_once() -> None:
    value = {**samples.BUNDLE, "mode": "x", "rulez": [], "rules": [samples.rule("tag", enabled=1)]}
    assert [path for path, _, _ in told(value)] == ["rulez", "mode", "rules.0.enabled"]


def test_an_unknown_key_is_reported_at_the_key() -> None:
    (misfit,) = misfits({**samples.BUNDLE, "rulez": []}, Bundle)
    assert misfit == Misfit(("rulez",), "unknown field `rulez`", misfit.hint, at_key=True)


def test_the_deepest_misfit_of_a_union_is_the_one_that_was_meant() -> None:
    value = with_rule("deny", match={"args": {"numeric_range": {"n": {"min": "low"}}}})
    ((path, message, _),) = told(value)
    assert path == "rules.0.match.args.numeric_range.n.min"
    assert message.endswith("got a string `low`")


def test_hints_name_the_closest_word_or_all_if_they_are_few() -> None:
    assert did_you_mean("denny", ["allow", "deny"]) == "did you mean `deny`?"
    assert did_you_mean("xyz", ["allow", "deny"]) == "one of `allow`, `deny`"
    assert did_you_mean("xyz", [f"word{number}" for number in range(13)]) is None
    assert did_you_mean("xyz", []) is None


def test_an_unknown_type_has_a_noun() -> None:
    assert noun_of(object()) == "something else"


words = st.sampled_from(["observe", "ALLOW", "run", "x", ""])
junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=6,
)


@st.composite
def nearly_bundles(draw: st.DrawFn) -> Any:
    """A valid bundle with one value, anywhere in it, replaced or removed."""

    def mutated(value: Any) -> Any:
        if isinstance(value, dict) and value and draw(st.booleans()):
            key = draw(st.sampled_from(sorted(value)))
            copy = {**value, key: mutated(value[key])}
            if draw(st.integers(0, 3)) == 0:
                del copy[key]
            return copy
        if isinstance(value, list) and value and draw(st.booleans()):
            at = draw(st.integers(0, len(value) - 1))
            return [*value[:at], mutated(value[at]), *value[at + 1 :]]
        return draw(junk)

    return mutated(samples.BUNDLE)


@given(nearly_bundles() | junk)
def test_a_value_has_misfits_if_and_only_if_the_decoder_refuses_it(value: Any) -> None:
    try:
        msgspec.convert(value, Bundle)
    except msgspec.ValidationError:
        assert misfits(value, Bundle)
    else:
        assert misfits(value, Bundle) == []


def test_literals_outside_a_struct() -> None:
    assert told("b", Literal["a"]) == [("", "unknown value `b`", "one of `a`")]


def test_a_tolerant_struct_takes_unknown_fields_and_any_value() -> None:
    value = {"hint_text": "x", "suggested_args": {"a": object()}, "new_in_v9": 1}
    assert misfits(value, Hint) == []


def test_a_number_below_its_bound_is_reported() -> None:
    bounded = Annotated[int, msgspec.Meta(ge=1)]
    assert told(0, bounded) == [("", "expected a whole number of at least 1, got `0`", None)]
    assert told(1, bounded) == []
