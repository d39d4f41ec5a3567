"""Numbers as RFC 8785 writes them; a number that a double cannot hold keeps its exact digits.

Parsing uses `read_fraction`, encoding uses the `write_*` functions. Both reduce a number literal
to (sign, digits, point), which means 0.digits x 10^point without leading or trailing zeros.
"""

from decimal import Decimal
from math import isfinite

from subluminal.errors import AmbiguousJSON

# A double reaches 1.8e308. Larger integers are written with an exponent, so 1E999999 stays short.
_DOUBLE_POINT = 309
# decimal.Decimal reads exponents of 18 digits. The margin of three covers the digits before the
# point, so that every number that was read can be written.
_MAX_EXPONENT_DIGITS = 15
# ECMAScript writes integers below this without an exponent.
_PLAIN_INTEGER = 10**21


def read_fraction(literal: str) -> float | Decimal:
    """Reads a literal with a fraction or exponent: a float if that is exact, else a Decimal."""
    number = float(literal)
    if repr(number) == literal:
        return number
    if len(literal.lower().partition("e")[2].lstrip("+-")) > _MAX_EXPONENT_DIGITS:
        raise AmbiguousJSON(f"a number has an exponent of more than {_MAX_EXPONENT_DIGITS} digits")
    _, digits, point = _split(literal)
    return number if _is_shortest(number, digits, point) else Decimal(literal)


def write_int(value: int, *, exact: bool) -> str:
    """Writes an integer. One that a double cannot hold is kept if `exact`, else refused."""
    if -_PLAIN_INTEGER < value < _PLAIN_INTEGER:
        if not exact and not -(2**53) < value < 2**53:
            _require_double(str(value))
        return str(value)
    return _write_literal(_digits_of(value), exact=exact)


def write_fraction(value: float | Decimal, *, exact: bool) -> str:
    """Writes a float or Decimal in its shortest form."""
    # math.isfinite would take a Decimal beyond the range of a double for infinite.
    finite = isfinite(value) if isinstance(value, float) else value.is_finite()
    if not finite:
        raise AmbiguousJSON("NaN and Infinity are not JSON")
    if isinstance(value, float):
        return _write_double(value)
    if exact:
        return _write_literal(str(value), exact=True)
    number = float(value)
    if not isfinite(number):
        raise AmbiguousJSON("a number is outside the range of a double")
    return _write_double(number)


def _write_double(number: float) -> str:
    text = repr(number)
    if "e" in text:
        return _layout(*_split(text))
    # Without an exponent, Python and ECMAScript differ only in `1.0` and `-0`.
    text = text.removesuffix(".0")
    return "0" if text == "-0" else text


def _write_literal(literal: str, *, exact: bool) -> str:
    sign, digits, point = _split(literal)
    if _fits_double(literal, digits, point):
        return _layout(sign, digits, point)
    if not exact:
        _require_double(literal)
    if len(digits) <= point <= _DOUBLE_POINT:
        return sign + digits.ljust(point, "0")
    return _layout(sign, digits, point)


def _require_double(literal: str) -> None:
    _, digits, point = _split(literal)
    if not _fits_double(literal, digits, point):
        raise AmbiguousJSON(
            "an integer cannot be written as a double without changing it",
            hint="RFC 8785 only has doubles: write the number as a string, or use profile `pack`",
        )


def _fits_double(literal: str, digits: str, point: int) -> bool:
    return _is_shortest(float(literal), digits, point)


def _is_shortest(number: float, digits: str, point: int) -> bool:
    """Whether the shortest form of a double has exactly these digits."""
    return isfinite(number) and _split(repr(number))[1:] == (digits, point)


def _digits_of(value: int) -> str:
    try:
        return str(value)
    except ValueError:
        raise AmbiguousJSON("an integer has too many digits") from None


def _split(literal: str) -> tuple[str, str, int]:
    sign = "-" if literal.startswith("-") else ""
    mantissa, _, exponent = literal.removeprefix("-").lower().partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    point = len(whole) - (len(whole) + len(fraction) - len(digits)) + int(exponent or 0)
    digits = digits.rstrip("0")
    return (sign, digits, point) if digits else ("", "", 0)


def _layout(sign: str, digits: str, point: int) -> str:
    """Lays out digits as ECMAScript's Number::toString does, which RFC 8785 adopts."""
    count = len(digits)
    if not digits:
        return "0"
    if count <= point <= 21:
        return sign + digits.ljust(point, "0")
    if 0 < point <= 21:
        return f"{sign}{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    mantissa = digits[0] + ("." + digits[1:] if count > 1 else "")
    return f"{sign}{mantissa}e{point - 1:+d}"
