"""One list of the characters that a terminal acts on or hides."""

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subluminal.visible import json_shown, shown, shown_lines

BIDI = [0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)]
HIDDEN = [0x7F, *range(0x80, 0xA0), *BIDI, 0x200B, 0x2028, 0x2029, 0xFEFF, 0xE0041]


@pytest.mark.parametrize("code", HIDDEN, ids=hex)
def test_json_text_has_none_of_them_and_decodes_to_the_same(code: int) -> None:
    value = {"a" + chr(code): [f"b{chr(code)}c", "grüße 日本 😀"]}
    text = json_shown(json.dumps(value, ensure_ascii=False, indent=2))
    assert chr(code) not in text
    assert "grüße 日本 😀" in text, "what is harmless stays readable"
    assert json.loads(text) == value


def test_the_escape_is_the_one_of_json() -> None:
    assert json_shown('"\x9b\u202e\U000e0041"') == '"\\u009b\\u202e\\udb40\\udc41"'


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_survives(text: str) -> None:
    shown_text = json_shown(json.dumps(text, ensure_ascii=False))
    assert json.loads(shown_text) == text
    assert not [char for char in shown_text if unicodedata.category(char) in ("Cc", "Zl", "Zp")]


@given(st.text())
def test_text_for_people_has_no_control_character(text: str) -> None:
    assert not [char for char in shown(text) if unicodedata.category(char) in ("Cc", "Cs", "Zl")]
    kept = [char for char in shown_lines(text) if unicodedata.category(char) in ("Cc", "Cs", "Zl")]
    assert set(kept) <= set("\t\n\r")
