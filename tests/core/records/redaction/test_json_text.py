"""Masks fitted into JSON text."""

import json

import pytest

from subluminal.core.records.redaction.json_text import (
    inside_one_string,
    looks_like_json,
    split_at_structure,
    view_of,
    whole_chars,
    whole_escapes,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b'{"a":1}', True),
        (b" [1]", True),
        (b'"x"', True),
        (b"plain", False),
        (b"", False),
        (b"12", False),
    ],
)
def test_what_looks_like_json(text: bytes, expected: bool) -> None:
    assert looks_like_json(text) is expected


def test_in_the_view_every_quote_is_structure() -> None:
    text = json.dumps({"a": 'x"y\\', "b": json.dumps({"c": '"'})}).encode()
    view = view_of(text)
    assert len(view) == len(text)
    assert view.count(b'"') == 8


@pytest.mark.parametrize(
    ("text", "span", "expected"),
    [
        (rb'"a\nb"', (3, 4), (2, 4)),
        (rb'"a\nb"', (1, 3), (1, 4)),
        (rb'"a\\nb"', (4, 5), (4, 5)),
        (rb'"a\\nb"', (3, 5), (2, 5)),
        (rb'"a\\nb"', (1, 3), (1, 4)),
        (rb'"\u00e4x"', (4, 8), (1, 8)),
        (rb'"x\u00e4"', (1, 5), (1, 8)),
        (rb'"\ud83d\ude00"', (7, 13), (1, 13)),
        (rb'"\ud83d\ude00"', (1, 7), (1, 13)),
        (rb'"abc"', (2, 3), (2, 3)),
    ],
)
def test_a_span_is_widened_to_whole_escapes(
    text: bytes, span: tuple[int, int], expected: tuple[int, int]
) -> None:
    assert whole_escapes(view_of(text), span) == expected


def test_a_span_is_widened_to_whole_characters() -> None:
    assert whole_chars("aäb".encode(), (2, 3)) == (1, 3)
    assert whole_chars("aäb".encode(), (0, 2)) == (0, 3)


def test_inside_and_outside_of_strings() -> None:
    view = view_of(b'{"ab":12,"c":"d"}')
    assert inside_one_string(view, (2, 4))
    assert not inside_one_string(view, (6, 8))
    assert not inside_one_string(view, (3, 6))
    assert list(split_at_structure(view, (3, 12))) == [
        ((3, 4), False),
        ((6, 8), True),
        ((10, 11), False),
    ]
    assert list(split_at_structure(view, (7, 8))) == [((6, 8), True)]
