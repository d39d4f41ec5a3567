"""Hypothesis strategies for JSON: values, and the many texts that one value has."""

import json
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

# Keys on both sides of the surrogate gap are where the two key orders part.
characters = st.one_of(
    st.characters(codec="utf-8"),
    st.sampled_from('\x00\x1f"\\/\x7f\u0080\u2028\ud7ff\ue000\ufb33\uffff\U00010000\U0010ffff'),
)
texts = st.text(characters, max_size=12)
doubles = st.floats(allow_nan=False, allow_infinity=False)
safe_integers = st.integers(min_value=-(2**53) + 1, max_value=2**53 - 1)


def _containers(leaves: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=5) | st.dictionaries(texts, inner, max_size=5),
        max_leaves=20,
    )


double_values = _containers(st.none() | st.booleans() | texts | safe_integers | doubles)
"""What RFC 8785 can hold: integers of a double, and doubles."""

decimals = st.decimals(allow_nan=False, allow_infinity=False)
exact_values = _containers(st.none() | st.booleans() | texts | st.integers() | doubles | decimals)
"""What profile `pack` can hold: any number."""

plain_values = _containers(
    st.none() | st.booleans() | texts | st.integers(-(10**21) + 1, 10**21 - 1)
)
"""What the fast path can hold."""


@st.composite
def number_literals(draw: st.DrawFn) -> str:
    """Any number as JSON may spell it."""
    sign = draw(st.sampled_from(["", "-"]))
    whole = draw(st.from_regex(r"0|[1-9][0-9]{0,25}", fullmatch=True))
    fraction = draw(st.just("") | st.from_regex(r"\.[0-9]{1,25}", fullmatch=True))
    exponent = draw(st.just("") | st.from_regex(r"[eE][+-]?[0-9]{1,3}", fullmatch=True))
    return sign + whole + fraction + exponent


def value_of(literal: str) -> Decimal:
    """The exact value of a number literal; Python's decimal module is the judge."""
    return Decimal(literal).normalize() if Decimal(literal) else Decimal(0)


def as_text(value: Any, **options: Any) -> bytes:
    """JSON text by the standard library, which we share no writer with."""
    return json.dumps(value, **options).encode()
