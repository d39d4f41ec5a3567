"""The index leaves out no match that covers another."""

from hypothesis import given, settings
from hypothesis import strategies as st

from subluminal.contracts.bundle import Match, NameMatch
from subluminal.policy.covering import covers
from subluminal.policy.lint.index import CoverIndex

globs = st.lists(st.text("ab*?[]", min_size=1, max_size=4), max_size=2)
names = st.builds(NameMatch, glob=globs, regex=st.lists(st.sampled_from(["a", ".*"]), max_size=1))
matches = st.builds(Match, tool_name=st.none() | names)


@given(st.lists(matches, max_size=6), matches)
@settings(max_examples=500)
def test_whatever_covers_a_match_is_a_candidate(wide, narrow):
    index = CoverIndex()
    for number, match in enumerate(wide):
        index.add(number, match)
    covering = {number for number, match in enumerate(wide) if covers(match, narrow)}
    assert covering <= set(index.candidates(narrow))


def test_what_names_other_tools_is_no_candidate():
    index = CoverIndex()
    for number, glob in enumerate(["a", "ab*", "b*", "*", "*c"]):
        index.add(number, Match(tool_name=NameMatch(glob=[glob])))
    assert index.candidates(Match(tool_name=NameMatch(glob=["abc"]))) == [1, 3, 4]
    assert index.candidates(Match()) == [3]
