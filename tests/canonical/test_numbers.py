"""Numbers: the value survives, the form is minimal, and equal values have one form."""

from decimal import Decimal

import pytest
import rfc8785
from hypothesis import example, given
from hypothesis import strategies as st
from tests.canonical.values import doubles, number_literals, value_of
from tests.requirements import requirement

from subluminal.canonical import AmbiguousJSON, Profile, encode, parse
from subluminal.canonical.numbers import read_fraction, write_fraction, write_int


def written(literal: str) -> str:
    document = parse(literal.encode())
    return encode(document.value, plain=document.plain).decode()


@given(number_literals())
@example("0.10")
@example("-0")
@example("1E400")
@example("1e-400")
@example("9007199254740993")
@example("9007199254740993.000")
@requirement("1.9.1:numbers")
def test_pack_keeps_the_exact_value_of_every_literal(literal: str) -> None:
    """Pack 1.9.1: minimal decimal form. Minimal must not mean another number (canonical-profiles)."""
    assert value_of(written(literal)) == value_of(literal)


@given(number_literals(), st.integers(0, 5))
@requirement("1.9.1:numbers")
def test_two_spellings_of_one_value_are_written_alike(literal: str, zeros: int) -> None:
    mantissa, _, exponent = literal.lower().partition("e")
    point = "" if "." in mantissa else "."
    other = f"{mantissa}{point}{'0' * (zeros + 1)}e{int(exponent or 0) - zeros}"
    shifted = f"{Decimal(mantissa).scaleb(zeros):f}e{int(exponent or 0) - zeros}"
    assert written(f"{mantissa}{point}{'0' * (zeros + 1)}e{exponent or 0}") == written(literal)
    assert written(shifted) == written(literal)
    assert (written(other) == written(literal)) == (value_of(other) == value_of(literal))


@given(number_literals())
@requirement("1.9.1:numbers")
def test_the_form_has_no_needless_zero(literal: str) -> None:
    mantissa = written(literal).lstrip("-").partition("e")[0]
    assert mantissa == "0" or not mantissa.startswith("0") or mantissa.startswith("0.")
    assert "." not in mantissa or not mantissa.endswith(("0", "."))


@given(doubles)
def test_a_double_is_written_as_ecmascript_writes_it(number: float) -> None:
    assert write_fraction(number, exact=True).encode() == rfc8785.dumps(number)
    assert write_fraction(number, exact=False).encode() == rfc8785.dumps(number)


@given(doubles)
def test_a_double_reads_back_as_itself(number: float) -> None:
    literal = repr(number)
    assert "." in literal or "e" in literal
    assert read_fraction(literal) == number


@given(st.integers())
@example(10**21)
@example(10**308)
@example(-(10**309))
def test_an_integer_and_the_same_number_with_a_fraction_are_written_alike(number: int) -> None:
    assert write_int(number, exact=True) == written(f"{number}.0")


@pytest.mark.parametrize(
    ("literal", "expected"),
    [("1e21", float), ("0.10", float), ("1e400", Decimal), ("0.1000000000000000055", Decimal)],
)
def test_a_literal_is_a_float_if_that_is_exact(literal: str, expected: type) -> None:
    assert type(read_fraction(literal)) is expected


def test_jcs_writes_the_double_of_a_decimal() -> None:
    """RFC 8785 only has doubles, so a fraction is the double nearest to it."""
    assert encode(Decimal("0.1000000000000000055"), Profile.JCS) == b"0.1"
    with pytest.raises(AmbiguousJSON, match="outside the range of a double"):
        encode(Decimal("1e400"), Profile.JCS)


def test_jcs_writes_an_integer_that_is_a_double() -> None:
    assert encode(2**53, Profile.JCS) == b"9007199254740992"
    assert encode(10**22, Profile.JCS) == b"1e+22"
