"""Patterns hit where they should, bad ones are refused, and no message contains a pattern."""

import pytest
from tests.core.records.redaction.shape_examples import EXAMPLES

from subluminal.core.records.redaction import matching
from subluminal.core.records.redaction.matching import (
    Hit,
    Matcher,
    Wanted,
    after_open_hits,
    check_pattern,
)
from subluminal.core.records.redaction.shapes import SHAPES
from subluminal.errors import SubluminalError


def matcher(*patterns: bytes) -> Matcher:
    return Matcher([Wanted(p, lambda p=p: p) for p in patterns])  # type: ignore[misc]


def test_hits_come_in_order_with_the_group_that_caught() -> None:
    found = matcher(b"b+", rb"k=(a)|k=(c+)").find(b"k=cc bb k=a")
    assert found == [Hit(2, 4, 1), Hit(5, 7, 0), Hit(10, 11, 1)]


def test_many_patterns_are_spread_over_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching, "MAX_SET_BYTES", 20)
    many = matcher(*(b"token-%03d" % n for n in range(50)))
    assert many.find(b"x token-007 token-049") == [Hit(2, 11, 7), Hit(12, 21, 49)]
    assert many._sets is not None
    assert len(many._sets) == 25


def test_a_set_too_large_for_its_memory_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching, "MAX_PATTERN_MEMORY", 40_000)
    with pytest.raises(SubluminalError):
        matcher(*(b"[a-z]token%03d[a-z]{8}" % n for n in range(60))).find(b"xtoken007abcdefgh")


def test_an_error_of_the_engine_does_not_show_the_pattern() -> None:
    with pytest.raises(SubluminalError) as caught:
        matcher(b"s3cret(").find(b"x")
    assert "s3cret" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_a_text_may_hold_the_probe() -> None:
    assert matcher(b"abc").find(matching._PROBE + b"abc") == [Hit(18, 21, 0)]


def test_a_pattern_is_made_only_when_its_prefilter_hits() -> None:
    made = []

    def make() -> bytes:
        made.append(1)
        return b"abc"

    lazy = Matcher([Wanted(b"ab", make)])
    assert lazy.find(b"nothing") == []
    assert not made
    assert lazy.find(b"abc abc") == [Hit(0, 3, 0), Hit(4, 7, 0)]
    assert made == [1]


def test_a_cut_moves_behind_chained_hits() -> None:
    assert after_open_hits([Hit(0, 5, 0), Hit(4, 9, 0), Hit(9, 12, 0)], 3) == 9


def test_a_bad_pattern_is_told_by_name() -> None:
    with pytest.raises(SubluminalError, match="redact pattern `mine`") as caught:
        check_pattern("mine", "a(?!b)")
    assert caught.value.hint is not None
    check_pattern("fine", "a+b")


def test_hard_text_takes_linear_time() -> None:
    """A text that would hang a backtracking engine costs no more than another (linear-patterns)."""
    import time

    shapes = matcher(*(shape.pattern for shape in SHAPES))
    hard = [b"password" * 2000, b"eyJ" * 5000, b"-----BEGIN " * 1500, b"a." * 8000, b"\\" * 16000]
    hard.append("".join(text for hits, _ in EXAMPLES.values() for text in hits).encode()[:16000])
    for text in hard:
        shapes.find(text)
    begun = time.perf_counter()
    for text in hard:
        shapes.find(text)
    assert time.perf_counter() - begun < 2.0
