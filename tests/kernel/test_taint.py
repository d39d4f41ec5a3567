"""The lattice: levels fall, never rise; those of fields count."""

from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.kernel.making import Minimum, envelope
from tests.requirements import requirement

from subluminal.canonical import AmbiguousJSON
from subluminal.kernel import (
    Origin,
    Taint,
    can_propose,
    can_propose_field_level,
    collect_field_taints,
    effective_taint,
    is_contaminating,
    is_tainted,
    meet_all,
    merge_taint,
    taint_rank,
    tainted,
)
from subluminal.kernel.taint import lowest_field_taint

levels = st.sampled_from(list(Taint))


@requirement("003:taint-monotone")
@given(levels, levels, levels)
def test_merging_never_raises_trust(a: Taint, b: Taint, c: Taint) -> None:
    """Seed 003: taint monotonicity. The meet of a lattice, too."""
    merged = merge_taint(a, b)
    assert taint_rank(merged) <= min(taint_rank(a), taint_rank(b))
    assert merged in (a, b)
    assert merge_taint(b, a) == merged
    assert merge_taint(a, a) == a
    assert (
        merge_taint(merge_taint(a, b), c)
        == merge_taint(a, merge_taint(b, c))
        == meet_all([a, b, c])
    )


@requirement("003:lattice")
def test_levels_have_ranks_and_names() -> None:
    assert [taint_rank(name) for name in ("SYSTEM", "TRUSTED", "UNTRUSTED")] == [3, 2, 1]
    assert meet_all([]) is Taint.SYSTEM
    with pytest.raises(ValueError):
        merge_taint("SYSTEM", "ROOT")


@requirement("003:lattice")
@pytest.mark.parametrize(("level", "minimum"), list(product(Taint, Taint)))
def test_can_propose_compares_ranks(level: Taint, minimum: Taint) -> None:
    wanted = taint_rank(level) >= taint_rank(minimum)
    assert can_propose(level, "k", Minimum(minimum)) is wanted
    assert can_propose_field_level(level, "k", Minimum(minimum), {"a": 1}) is wanted


@requirement("003:field-taints")
def test_fields_lower_the_level_of_an_envelope_wherever_they_are() -> None:
    """Seed 003: TaintedValue; kernel.md: field taints count."""
    payload = {"a": [tainted({"deep": tainted(1, "UNTRUSTED")}, "TRUSTED")], "b": 2}
    assert collect_field_taints(payload) == [Taint.TRUSTED, Taint.UNTRUSTED]
    made = envelope(payload, taint="SYSTEM")
    assert collect_field_taints(made.payload) == [Taint.TRUSTED, Taint.UNTRUSTED]
    assert effective_taint(made) is Taint.UNTRUSTED
    assert effective_taint(envelope({"a": tainted(1, "SYSTEM")}, taint="TRUSTED")) is Taint.TRUSTED
    assert not can_propose_field_level("SYSTEM", "k", Minimum("TRUSTED"), made.payload)


@given(
    st.recursive(
        st.integers() | levels.map(lambda level: {"value": 1, "taint": level.value}),
        lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from("abc"), inner),
    )
)
def test_the_lowest_field_is_the_meet_of_all_fields(payload: Any) -> None:
    assert lowest_field_taint(payload) == meet_all(collect_field_taints(payload))


def test_a_field_with_a_level_has_both_members() -> None:
    assert is_tainted(tainted(1, "SYSTEM"))
    assert is_tainted({"value": None, "taint": "TRUSTED", "more": 1})
    others: list[Any] = [
        {"value": 1},
        {"taint": "TRUSTED"},
        {"value": 1, "taint": "ROOT"},
        {"value": 1, "taint": ["TRUSTED"]},
        "TRUSTED",
    ]
    assert not any(map(is_tainted, others))
    assert collect_field_taints(others) == []
    assert lowest_field_taint(others) is Taint.SYSTEM


def test_only_two_origins_contaminate() -> None:
    assert {origin for origin in Origin if is_contaminating(origin)} == {"Retrieved", "ExternalAPI"}
    assert is_contaminating("Retrieved")
    assert not is_contaminating(None)


def test_the_walk_is_bounded() -> None:
    knot: list[Any] = []
    knot.append(knot)
    with pytest.raises(AmbiguousJSON, match="deeper"):
        lowest_field_taint(knot)
    with pytest.raises(AmbiguousJSON, match="not JSON"):
        lowest_field_taint((1,))
