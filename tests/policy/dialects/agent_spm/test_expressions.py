"""Regular expressions of JavaScript in RE2's syntax: what Node.js said about them is the oracle."""

import json
import re
from pathlib import Path

import pytest
import re2
from tests.requirements import requirement

from subluminal.policy.dialects.agent_spm.expressions import (
    CannotTranslate,
    is_skipped,
    translate,
)
from subluminal.policy.patterns import regex_problem

GOLDEN = json.loads(
    (Path(__file__).parents[3] / "cases" / "agent_spm" / "expressions.json").read_text()
)


def ours(pattern: str) -> list[int] | None:
    """The numbers of the texts that the translation matches; None if there is none."""
    try:
        translated = translate(pattern)
    except CannotTranslate:
        return None
    if regex_problem(translated) is not None:
        return None
    found = re2.compile(f"(?i){translated}")
    return [number for number, text in enumerate(GOLDEN["texts"]) if found.search(text)]


@requirement("trust:dialect-javascript")
@pytest.mark.parametrize("row", GOLDEN["patterns"], ids=lambda row: ascii(row["pattern"]))
def test_a_translation_matches_what_javascript_matches(row):
    assert ours(row["pattern"]) == (None if "refused" in row else row["matches"])


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("(?=a)", "a lookahead `(?=` cannot be matched in linear time"),
        ("(?<!a)", "a lookbehind `(?<!` cannot be matched in linear time"),
        ("(a)\\1", "a backreference cannot be matched in linear time"),
        ("(?<n>a)\\k<n>", "a backreference cannot be matched in linear time"),
        ("(a", "`(` without a closing `)`"),
        ("a)", "`)` without an opening `(`"),
        ("[a", "`[` without a closing `]`"),
        ("[\\", "`\\` at the end"),
        ("a\\", "`\\` at the end"),
        ("*a", "`*` has nothing to repeat"),
        ("a**", "`*` has nothing to repeat"),
        ("^*", "`*` has nothing to repeat"),
        ("\\b+", "`+` has nothing to repeat"),
        ("{2}", "`{2}` has nothing to repeat"),
        ("a{3,2}", "`{3,2}`: the numbers are out of order"),
        ("[b-a]", "the ends of a range in `[…]` are out of order"),
        ("(?P<n>a)", "`(?` begins no group that JavaScript knows"),
        ("(?<n>a)(?<n>b)", "two groups are named `n`"),
        ("\\ud800", "half of a surrogate pair occurs in no text"),
        ("\\ud800\\u0041", "half of a surrogate pair occurs in no text"),
        ("\\udc00\\udc00", "half of a surrogate pair occurs in no text"),
        ("\\ud800x", "half of a surrogate pair occurs in no text"),
        ("a" * 513, "longer than 512 characters"),
        ("😀" * 257, "longer than 512 characters"),
    ],
)
def test_what_has_no_translation_is_refused_with_its_reason(pattern: str, said: str):
    with pytest.raises(CannotTranslate, match=f"^{re.escape(said)}$"):
        translate(pattern)


def test_a_group_in_a_set_or_behind_a_backslash_is_none():
    """So `\\1` is a character there, as in JavaScript."""
    assert ours("[(]\\1") is not None
    assert ours("\\(\\1") is not None


def test_a_surrogate_pair_is_one_character():
    assert translate("\\ud83d\\ude00") == "😀"


@pytest.mark.parametrize(
    "pattern", ["(a+)+", "(a*)*", "(a|b)+", "(a+){2,}", "(a*b*)*", "(a+b+)+", "x.*.*y", "(.+ )*"]
)
def test_the_shapes_that_agent_spm_skips_are_known(pattern: str):
    assert is_skipped(pattern)


@pytest.mark.parametrize("pattern", ["a+", "(a|b)", "(ab)+", "a{2,}", ".*x.*", "^SELECT\\s+\\*"])
def test_other_shapes_are_not_skipped(pattern: str):
    assert not is_skipped(pattern)


def test_a_pattern_that_would_hang_a_backtracking_engine_ends_at_once():
    """Linear time: 100,000 characters, where `(a+)+$` needs 2^100000 steps elsewhere."""
    assert re2.search(translate("(a+)+$"), "a" * 100_000 + "!") is None
