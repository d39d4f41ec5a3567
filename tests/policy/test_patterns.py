"""Globs and regexes: what is refused and why, and that an index finds what each pattern finds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.differential import naive
from tests.requirements import requirement

from subluminal.contracts.bundle import NameMatch
from subluminal.contracts.limits import MAX_PATTERN_CHARS
from subluminal.policy import patterns
from subluminal.policy.patterns import NameIndex, compile_names, glob_problem, regex_problem

LETTERS = "ab.]-[!*?^\\ö"
names = st.text("ab.]-[!^\\ö\n", max_size=6)
globs = st.text(LETTERS, min_size=1, max_size=6).filter(lambda glob: glob_problem(glob) is None)


@given(st.lists(st.lists(globs, max_size=3), min_size=1, max_size=6), names)
def test_an_index_finds_what_a_slow_reading_of_the_globs_finds(lists, name):
    index = NameIndex([compile_names(NameMatch(glob=each)) for each in lists])

    slow = {i for i, each in enumerate(lists) if naive.name_matches({"glob": each}, name)}

    assert index.match(name) == slow


@pytest.mark.parametrize(
    ("glob", "problem"),
    [
        ("", "an empty glob matches no name"),
        ("a[b", "`[` without a closing `]`"),
        ("[]", "`[` without a closing `]`"),
        ("[!]", "`[` without a closing `]`"),
        ("[a][", "`[` without a closing `]`"),
        ("a" * (MAX_PATTERN_CHARS + 1), "longer than 1024 characters"),
    ],
)
def test_a_glob_that_cannot_mean_anything_is_refused(glob, problem):
    assert glob_problem(glob) == problem


def test_a_range_that_runs_backwards_is_refused():
    assert "range" in glob_problem("[z-a]")


@pytest.mark.parametrize("glob", ["a", "*", "[]]", "[!]]", "[a-z]?*", "]", "a" * MAX_PATTERN_CHARS])
def test_other_globs_are_fine(glob):
    assert glob_problem(glob) is None


@requirement("2.4:cheap")
@pytest.mark.parametrize(
    ("regex", "told"),
    [
        ("a(?=b)", "a lookahead `(?=` cannot be matched in linear time"),
        ("a(?!b)", "a lookahead `(?!` cannot be matched in linear time"),
        ("(?<=a)b", "a lookbehind `(?<=` cannot be matched in linear time"),
        ("(?<!a)b", "a lookbehind `(?<!` cannot be matched in linear time"),
        ("(?>a)b", "an atomic group `(?>` cannot be matched in linear time"),
        ("(a)(?(1)b)", "a conditional `(?(` cannot be matched in linear time"),
        ("(?P<n>a)(?P=n)", "a backreference `(?P=` cannot be matched in linear time"),
        ("a" * (MAX_PATTERN_CHARS + 1), "longer than 1024 characters"),
    ],
)
def test_a_regex_that_may_hang_is_refused_with_the_reason(regex, told):
    assert regex_problem(regex) == told


@pytest.mark.parametrize("regex", ["(", "[a", "a{2000}", r"(a)\1", "*a"])
def test_an_invalid_regex_is_refused_in_the_engines_words(regex):
    problem = regex_problem(regex)

    assert problem
    assert problem[0].islower()


@pytest.mark.parametrize("regex", [r"a\(?=b", r"[(?!]", "^p.*$", r"\pL", "(?i)x", ""])
def test_what_only_looks_like_a_lookaround_is_fine(regex):
    assert regex_problem(regex) is None


def test_more_patterns_than_one_set_can_hold_are_still_found(monkeypatch):
    """RE2 refuses a set that is too large; a policy must not lose its rules for that."""
    monkeypatch.setattr(patterns, "_RE2_MAX_MEM", 1 << 20)
    regexes = [f"^(?:[a-z]{{1,100}}_){{3}}x{number}$" for number in range(40)]

    index = NameIndex([compile_names(NameMatch(regex=[regex])) for regex in regexes])

    assert len(index._finders) > 1
    assert index.match("abc_def_ghi_x7") == {7}
    assert index.match("abc_def_ghi_x39") == {39}
    assert index.match("abc_def_ghi_x40") == set()


def test_a_pattern_that_only_an_earlier_version_accepted_is_still_found(monkeypatch):
    """A recorded policy may have patterns that are too large for the memory that a set gets now."""
    monkeypatch.setattr(patterns, "_RE2_MAX_MEM", 1 << 16)
    index = NameIndex([compile_names(NameMatch(regex=["^[a-z]{900}$"]))])

    assert index.match("a" * 900) == {0}
    assert index.match("a" * 901) == set()
