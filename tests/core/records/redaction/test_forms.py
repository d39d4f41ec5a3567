"""A plain value has few forms, and no prefilter misses a text that its pattern hits."""

import pytest
import re2
from tests.core.records.redaction.canaries import ENCODERS, make_canaries

from subluminal.core.records.redaction.forms import FRAGMENT_BYTES, forms_of


def test_values_too_short_have_no_form() -> None:
    assert forms_of("") == forms_of("abc") == []
    assert len(forms_of("abcd")) == len(forms_of("abcde")) == 1


def test_a_plain_value_has_three_forms_and_a_long_one_is_taken_in_pieces() -> None:
    assert len(forms_of("abcdef123")) == 3
    assert len(forms_of("a" * (FRAGMENT_BYTES + 1) + "b")) == 6


def test_a_line_of_a_long_value_is_found_by_itself() -> None:
    lines = ["first line of the key", "second line of the key", "short"]
    raw = [form.pattern() for form in forms_of("\n".join(lines))[::3]]
    assert any(re2.search(pattern, b"log: second line of the key") for pattern in raw)


@pytest.mark.parametrize("encoding", ENCODERS)
def test_a_prefilter_is_in_every_text_that_its_pattern_is_in(encoding: str) -> None:
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    for canary in make_canaries(21):
        text = ENCODERS[encoding](canary.reveal()).encode()
        for form in forms_of(canary.reveal()):
            if re2.search(form.pattern(), text, options):
                assert re2.search(form.prefilter, text, options)
