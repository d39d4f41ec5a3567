"""Plain scalars of the YAML 1.2 core schema: `NO` is a string, `010` is ten, `1:30` is a string.

PyYAML implements YAML 1.1, in which these are false, eight and ninety. So PyYAML delivers only the
text, and this module gives it a value. Values are those of JSON: a number that JSON or a double
cannot hold is refused.
"""

import re
from typing import Any

from subluminal.canonical.numbers import read_fraction
from subluminal.errors import AmbiguousJSON, SubluminalError

_CONSTANTS: dict[str, bool | None] = {
    "": None,
    "~": None,
    **dict.fromkeys(("null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_DECIMAL = re.compile(r"[-+]?[0-9]+\Z")
_OCTAL = re.compile(r"0o[0-7]+\Z")
_HEXADECIMAL = re.compile(r"0x[0-9a-fA-F]+\Z")
_FRACTION = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z")
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)\Z|\.(?:nan|NaN|NAN)\Z")
# Only these characters can begin a number. Most scalars are names, and are returned at once.
_MAY_START_NUMBER = frozenset("0123456789+-.")
_MAX_NUMBER_CHARS = 400


def resolve(text: str) -> Any:
    """Returns the value of a plain scalar. Raises SubluminalError if JSON cannot hold it."""
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if text[0] not in _MAY_START_NUMBER:
        return text
    if _NOT_FINITE.match(text):
        raise SubluminalError(
            f"JSON has no number `{text}`", hint="put it in quotes to make it a string"
        )
    if _DECIMAL.match(text):
        return int(_bounded(text))
    if _OCTAL.match(text):
        return int(_bounded(text)[2:], 8)
    if _HEXADECIMAL.match(text):
        return int(_bounded(text)[2:], 16)
    return _fraction(_bounded(text)) if _FRACTION.match(text) else text


def _bounded(text: str) -> str:
    if len(text) > _MAX_NUMBER_CHARS:
        raise SubluminalError(
            f"a number has more than {_MAX_NUMBER_CHARS} digits",
            hint="put it in quotes to make it a string",
        )
    return text


def _fraction(text: str) -> float:
    try:
        number = read_fraction(text.removeprefix("+"))
    except AmbiguousJSON:
        number = None
    if not isinstance(number, float):
        raise not_a_double(text)
    return number


def not_a_double(literal: object) -> SubluminalError:
    """Returns the error for a number that a double cannot hold exactly."""
    return SubluminalError(
        f"the number `{str(literal)[:40]}` has too many digits to be compared exactly",
        hint="write fewer digits, or put it in quotes to make it a string",
    )
