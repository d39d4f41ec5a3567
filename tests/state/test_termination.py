"""The reason of a termination is bounded, may be any text, and is never a mix of two reasons."""

import pytest

from subluminal.state import layout
from subluminal.state.errors import StateUnusable
from subluminal.state.storage import open_or_create
from subluminal.state.termination import TerminationLatch


@pytest.fixture
def file(state_dir):
    file = open_or_create(state_dir, "run")
    yield file
    file.close()


@pytest.mark.parametrize(
    ("given", "got"),
    [
        (("CODE", "a message"), ("CODE", "a message")),
        (("CODE", ""), ("CODE", "")),
        (("", ""), ("", "")),
        (("CO\0DE", "one\0two"), ("CODE", "one\0two")),
        (("CODE", "\ud800"), ("CODE", "?")),
        (("CODE", "é" * 2_000), ("CODE", "é" * 509)),
        (("C" * 2_000, "message"), ("C" * 1_024, "")),
    ],
    ids=["plain", "no message", "nothing", "NUL", "surrogate", "long message", "long code"],
)
def test_the_reason_is_read_as_far_as_it_fits(file, given, got):
    latch = TerminationLatch(file)
    assert latch.get() is None
    assert latch.set(*given)
    assert latch.get() == got
    assert not latch.set("OTHER", "other")
    assert latch.get() == got


def test_a_reason_that_never_matches_its_latch_is_damage(file):
    latch = TerminationLatch(file)
    latch.set("CODE", "message")
    file.words[layout.W_TERMINATION] ^= 1
    with pytest.raises(StateUnusable, match="unreadable"):
        latch.get()
