"""Numbers are replaced in place: every other byte of the file stays."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subluminal.errors import SubluminalError
from subluminal.policy.text.numbers import replace_numbers
from subluminal.policy.text.reading import read_document

PATH = ("rules", 1, "n")


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("rules:\n  - {n: 1}\n  - {n: 2, m: 2} # 2\n", "rules:\n  - {n: 1}\n  - {n: 30, m: 2} # 2\n"),
        ("rules:\r\n- n: 1\r\n- m: [2]\r\n  n:   0x2  \r\n", "rules:\r\n- n: 1\r\n- m: [2]\r\n  n:   30  \r\n"),
        ('{"rules": [1, {"ö\\u0041": "\\"n", "n" : 2}]}', '{"rules": [1, {"ö\\u0041": "\\"n", "n" : 30}]}'),
        ("\ufeffrules: [1, {n: 2}]", "\ufeffrules: [1, {n: 30}]"),
        ("a: &x 2\nrules: [*x, {n: 2, o: *x}]", "a: &x 2\nrules: [*x, {n: 30, o: *x}]"),
    ],
)  # fmt: skip
def test_one_number_changes_and_nothing_else(text, changed):
    assert replace_numbers(text.encode(), {PATH: 30}) == changed.encode()


def test_several_numbers_change_at_once():
    text = b"rules: [{n: 1, m: 22}, {n: 333}]"
    numbers = {PATH: 4, ("rules", 0, "m"): 5_555, ("rules", 0, "n"): 6}
    assert replace_numbers(text, numbers) == b"rules: [{n: 6, m: 5555}, {n: 4}]"


@pytest.mark.parametrize(
    "text",
    [
        "a: &x 2\nrules: [1, {n: *x}]",
        "rules: [1, {n: &x 2, m: *x}]",
        "rules: [&r {n: 2}, *r]",
        "rules: [1, &r {n: 2}, *r]",
        '{"rules": [1, {"\\u006e": 2}]}',
    ],
)
def test_a_number_that_is_shared_or_hidden_is_left_to_a_person(text):
    with pytest.raises(SubluminalError, match="cannot be edited safely") as refused:
        replace_numbers(text.encode(), {PATH: 30})
    assert refused.value.hint == "change them by hand: `rules[1].n: 30`"


values = st.recursive(
    st.integers(0, 99) | st.sampled_from(["a", "b: c", "#", "2"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abn"), inner),
    max_leaves=8,
)


@given(st.lists(values, min_size=2, max_size=3), st.integers(0, 10**12))
def test_any_json_is_changed_at_its_path_only(items, number):
    import json

    text = json.dumps({"rules": [items[0], {"x": items[1], "n": 7}, *items[2:]]}, indent=1)

    made = replace_numbers(text.encode(), {PATH: number})

    wanted = {"rules": [items[0], {"x": items[1], "n": number}, *items[2:]]}
    assert read_document(made, "")[0].value == wanted
    assert made.decode() == json.dumps(wanted, indent=1)
