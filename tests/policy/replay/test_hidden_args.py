"""Arguments that the record hides: what is still known, and what they could have been."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.differential import generated
from tests.policy.bundles import bundle, rule

from subluminal.canonical import args_hash, encode
from subluminal.contracts.bundle import Bundle
from subluminal.contracts.identity import Identity
from subluminal.contracts.limits import TRUNCATED
from subluminal.contracts.vocabulary import Layer
from subluminal.policy.compiling import compile_bundle
from subluminal.policy.counters import MemoryCounters
from subluminal.policy.evaluation import Call, Engine
from subluminal.policy.replay.hidden_args import (
    MAX_TRIES,
    PartialArgs,
    Possibilities,
    known_args,
    with_args,
)
from subluminal.policy.replay.recorded import Said, said_by
from subluminal.policy.snapshot import Snapshot

MARK = "[REDACTED:token]"


def partial(text: str | None, *, truncated: bool = False, redacted: bool = False) -> PartialArgs:
    found = known_args(text, truncated=truncated, redacted=redacted)
    assert isinstance(found, PartialArgs)
    return found


def test_a_whole_preview_is_the_arguments():
    found = known_args('{"a":1.50,"b":[true]}', truncated=False, redacted=False)
    assert found == {"a": 1.5, "b": [True]}
    assert not isinstance(found, PartialArgs)


def test_arguments_that_were_not_inspected_are_none():
    assert known_args(TRUNCATED, truncated=True, redacted=False) is None


@pytest.mark.parametrize("text", [None, f'"{MARK}"', "no json", '{"a":1,"a":2}'])
def test_nothing_is_known_without_a_readable_preview(text):
    found = partial(text, redacted=text is not None)
    assert not found
    assert found.hides("anything")


def test_masked_values_hide_their_keys_and_no_others():
    found = partial(
        f'{{"a":"x {MARK}","b":[{{"c":["{MARK}"]}}],"d":{{"e":1}},"f":2}}', redacted=True
    )
    assert dict(found) == {"d": {"e": 1}, "f": 2}
    assert [key for key in "abdfz" if found.hides(key)] == ["a", "b"]
    assert found.present == {"a", "b"}


def test_a_masked_key_may_be_any_key():
    found = partial(f'{{"{MARK}":1,"b":2}}', redacted=True)
    assert dict(found) == {"b": 2}
    assert found.hides("a")
    assert not found.hides("b")
    assert not found.present


def test_keys_before_the_cut_are_known():
    found = partial('{"a":1,"c":{"x":[1,2]},"d":"is c', truncated=True)
    assert dict(found) == {"a": 1, "c": {"x": [1, 2]}}
    assert [key for key in "abcde" if found.hides(key)] == ["d", "e"]


@pytest.mark.parametrize(
    "text", ['{"a":1', '{"a":12,"b":', "{", '{"', "", '{"a":1}', '{"b":1,"a":1,"c"']
)
def test_a_preview_may_be_cut_anywhere(text):
    assert not set(partial(text, truncated=True)) - {"a", "b"}


def test_keys_that_are_not_in_order_prove_no_absence():
    found = partial('{"b":1,"a":1,"c":1', truncated=True)
    assert dict(found) == {"b": 1, "a": 1}
    assert found.hides("aa")
    assert not found.hides("a")


def test_duplicate_keys_before_a_cut_are_not_believed():
    assert not partial('{"a":1,"a":2,"c":1', truncated=True)


def test_after_the_first_mark_of_a_cut_text_nothing_is_known():
    found = partial(f'{{"a":1,"b":"{MARK}","c":1,"d":"x', truncated=True, redacted=True)
    assert dict(found) == {"a": 1}
    assert found.hides("c")


values: Any = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner, max_size=2)
    ),
    max_leaves=4,
)


@given(st.dictionaries(st.text("abcé", max_size=2), values, max_size=4), st.integers(1, 60))
def test_a_cut_never_lies(args: dict[str, Any], size: int):
    """What is told to be there is there, and what is not hidden and not there was not there."""
    text = encode(args).decode()
    found = partial(text[:size], truncated=True)
    for key in ["", "a", "b", "c", "é", "ab", *args]:
        if not found.hides(key):
            assert (key in found) == (key in args)
            assert found.get(key) == args.get(key)


def test_the_keys_that_were_read_are_remembered():
    found = partial('{"a":1,"b":', truncated=True)
    assert found.get("a") == 1
    assert "a" in found
    assert not found.asked
    assert found.get("b", 7) == 7
    assert "c" not in found
    assert found.asked == {"b", "c"}


class Asking:
    def __init__(self, snapshot: Snapshot) -> None:
        self.engine = Engine([(Layer.USER, snapshot)], Identity())
        self.possibilities = Possibilities([snapshot])

    def say(self, args: dict[str, Any]) -> Said:
        return said_by(self._evaluate(args))

    def possible(self, args: PartialArgs) -> set[Said] | None:
        found = self.possibilities.evaluations(self._evaluate, args)
        return None if found is None else {said_by(each) for each in found}

    def _evaluate(self, args: dict[str, Any]) -> Any:
        call = with_args(Call("git", "push", None, args_hash({})), args)
        return self.engine.evaluate(call, MemoryCounters(), wall_ms=0, mono_ms=0)


def denying(**clauses: Any) -> dict[str, Any]:
    return rule("deny", "-".join(clauses), match={"args": clauses})


def actions(found: set[Said] | None) -> set[str]:
    assert found is not None
    return {said.action.value for said in found}


def nothing_known(*present: str) -> PartialArgs:
    return PartialArgs({}, lambda _key: True, frozenset(present))


def test_each_kind_of_clause_can_go_either_way():
    for clauses in (
        {"has_keys": ["a"]},
        {"key_equals": {"a": "?"}},
        {"key_in": {"a": ["?", 1, [2], None]}},
        {"numeric_range": {"a": {"min": 1, "max": 1}}},
        {"numeric_range": {"a": {"max": -1e308}}},
    ):
        asking = Asking(compile_bundle(bundle(denying(**clauses))))
        assert actions(asking.possible(nothing_known())) == {"ALLOW", "BLOCK"}


def test_a_key_that_was_there_is_not_tried_as_absent():
    asking = Asking(compile_bundle(bundle(denying(has_keys=["a"]))))
    assert actions(asking.possible(nothing_known("a"))) == {"BLOCK"}


def test_two_rules_about_one_key_are_answered_together():
    """`env` is not both dev and prod, so one of the two always lets it pass."""
    both = denying(key_equals={"env": "dev"}, key_in={"env": ["prod"]})
    assert actions(Asking(compile_bundle(bundle(both))).possible(nothing_known())) == {"ALLOW"}


def test_numbers_between_two_bounds_are_tried():
    between = bundle(
        rule("allow", "low", match={"args": {"numeric_range": {"a": {"max": 1}}}}),
        rule("allow", "high", match={"args": {"numeric_range": {"a": {"min": 2}}}}),
        denying(numeric_range={"a": {"min": 0}}),
    )
    assert actions(Asking(compile_bundle(between)).possible(nothing_known())) == {"ALLOW", "BLOCK"}


def test_too_many_possibilities_are_none():
    keys = [f"k{number}" for number in range(MAX_TRIES.bit_length() + 1)]
    asking = Asking(
        compile_bundle(
            bundle(
                *[
                    rule("deny", key, match={"args": {"has_keys": [key]}}, enabled=True)
                    for key in keys
                ]
            )
        )
    )
    found = asking.possible(nothing_known())
    assert found is not None  # the first rule that matches settles it
    tagging = [rule("tag", key, match={"args": {"has_keys": [key]}}) for key in keys]
    assert Asking(compile_bundle(bundle(*tagging))).possible(nothing_known()) is None


@given(st.integers(0, 10**9))
def test_the_real_decision_is_among_the_possible_ones(seed: int):
    """For any policy and any arguments, whichever keys are hidden."""
    choose = generated.seeded(seed)
    asking = Asking(compile_bundle(msgspec.convert(generated.bundle(choose), Bundle)))
    args = generated.args(choose) or {}
    gone = frozenset(choose.some(generated.KEYS, 1, 3))
    known = {key: value for key, value in args.items() if key not in gone}
    present = frozenset(args) & gone if choose.below(2) else frozenset()
    hides = (lambda key: key in present) if present else (lambda key: key in gone)
    if present:
        known = {key: value for key, value in args.items() if key not in present}
    found = asking.possible(PartialArgs(known, hides, present))
    assert found is None or asking.say(args) in found
