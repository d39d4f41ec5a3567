"""Patterns for the texts of targets: globs with several stars are matched without RE2."""

from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subluminal.contracts.bundle import NameMatch
from subluminal.policy.texts import TextPatterns, compile_texts, text_test

globs = st.text(alphabet="ab*", min_size=1, max_size=7)
texts = st.text(alphabet="ab\n", max_size=8)


def matches(text, **match):
    return text_test(compile_texts(NameMatch(**match))._asdict())(text)


@given(globs, texts)
def test_a_glob_with_stars_matches_as_a_glob_does(glob, text):
    assert matches(text, glob=[glob]) is fnmatchcase(text, glob)


@pytest.mark.parametrize(
    ("globs", "wanted"),
    [
        (["a"], {"exact": ("a",)}),
        (["a*"], {"prefix": ("a",)}),
        (["*a"], {"suffix": ("a",)}),
        (["*a*"], {"parts": (("", "a", ""),)}),
        (["a*b"], {"parts": (("a", "b"),)}),
        (["a**b*c", "a*b*c"], {"parts": (("a", "b", "c"),)}),
        (["a*b", "c"], {"exact": ("c",), "parts": (("a", "b"),)}),
    ],
)
def test_globs_are_sorted_by_how_they_are_matched(globs, wanted):
    assert compile_texts(NameMatch(glob=globs)) == TextPatterns(any=False, **wanted)


def test_other_patterns_need_re2():
    assert compile_texts(NameMatch(glob=["a?*b*"])).re2
    assert matches("a\nb", regex=["a.b"])
    assert matches("xby", glob=["*[ab]*"])
    assert not matches("xy", glob=["*[ab]*"])


def test_without_a_pattern_everything_matches():
    for match in ({}, {"glob": ["*"]}, {"glob": ["a*b", "**"]}):
        assert matches("x", **match)


def test_parts_must_not_overlap():
    assert not matches("aba", glob=["ab*ba"])
    assert matches("abba", glob=["ab*ba"])
