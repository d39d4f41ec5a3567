"""What previews still tell of arguments: redacted, cut, or not taken."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subluminal.canonical import encode
from subluminal.contracts.limits import TRUNCATED
from subluminal.policy.replay.known_args import PartialArgs, known_args

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
def test_nothing_is_known_where_no_preview_is_to_be_read(text):
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


def test_what_stands_before_the_cut_is_known():
    found = partial('{"a":1,"c":{"x":[1,2]},"d":"is c', truncated=True)
    assert dict(found) == {"a": 1, "c": {"x": [1, 2]}}
    assert [key for key in "abcde" if found.hides(key)] == ["d", "e"]


@pytest.mark.parametrize(
    "text", ['{"a":1', '{"a":12,"b":', "{", '{"', "", '{"a":1}', '{"b":1,"a":1,"c"']
)
def test_no_cut_is_too_early(text):
    assert not set(partial(text, truncated=True)) - {"a", "b"}


def test_keys_that_are_not_in_order_prove_no_absence():
    found = partial('{"b":1,"a":1,"c":1', truncated=True)
    assert dict(found) == {"b": 1, "a": 1}
    assert found.hides("aa")
    assert not found.hides("a")


def test_duplicate_keys_before_a_cut_are_not_believed():
    assert not partial('{"a":1,"a":2,"c":1', truncated=True)


def test_behind_the_first_mark_of_a_cut_text_nothing_is_known():
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


def test_it_remembers_what_was_asked():
    found = partial('{"a":1,"b":', truncated=True)
    assert found.get("a") == 1
    assert "a" in found
    assert not found.asked
    assert found.get("b", 7) == 7
    assert "c" not in found
    assert found.asked == {"b", "c"}
