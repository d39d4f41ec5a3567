r"""Personal and payment data that is recognised by its shape: patterns, and a closer look at a hit.

Patterns are byte patterns in RE2's syntax for canonical JSON text, where `\n` is two characters. A
pattern has one group, the data itself. What a pattern cannot say is checked in Python: a check
digit, numbers that are never given out, the text around. Precision first: a rule that refuses
harmless calls is switched off. Hits and near misses are in tests/core/contents/data_examples.py.
"""

from collections.abc import Callable
from typing import NamedTuple

from subluminal.contracts.vocabulary import DataClass


class DataShape(NamedTuple):
    """How one class of data is written."""

    data_class: DataClass
    pattern: bytes
    prefilter: bytes
    """a cheap pattern that hits every text that `pattern` hits"""
    confirms: Callable[[bytes, int, int], bool]
    """whether data[start:end], which the pattern hit, is such data"""


_EDGE = rb"(?:^|[^0-9A-Za-z._+-]|\\[nrtbf]|\\u[0-9a-f]{4})"
"""Where a number can begin: not in a word, nor behind a point or a sign."""
_CARD = (
    rb"(?:4\d{3}|5[1-5]\d\d|2[2-7]\d\d|6(?:011|4[4-9]\d|5\d\d|2\d\d)|35\d\d)"
    rb"[ -]?\d{4}[ -]?\d{4}[ -]?\d{4}(?:[ -]?\d{3})?"
    rb"|3[47]\d\d[ -]?\d{6}[ -]?\d{5}"
    rb"|3(?:0[0-5]|[68]\d)\d[ -]?\d{6}[ -]?\d{4}"
)
"""The ranges of the card schemes, in the groups in which cards show them."""
_NEVER_AREAS = (0, 666)
_LOOK_BACK = 256
_MAX_LOCAL = 64


def _is_number(data: bytes, end: int) -> bool:
    """Returns True if a number ends here, and no fraction or further group follows."""
    after = data[end : end + 2]
    return not (after[:1] in (b".", b"-") and after[1:].isdigit())


def _is_card(data: bytes, start: int, end: int) -> bool:
    digits = [byte - 48 for byte in data[start:end] if 48 <= byte <= 57]
    doubled = [sum(divmod(2 * each, 10)) for each in digits[-2::-2]]
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0 and _is_number(data, end)


def _is_ssn(data: bytes, start: int, end: int) -> bool:
    area, group, serial = map(int, data[start:end].split(b"-"))
    given = area not in _NEVER_AREAS and area < 900 and group > 0 and serial > 0
    return given and _is_number(data, end)


def _is_email(data: bytes, start: int, end: int) -> bool:
    local, _, domain = data[start:end].partition(b"@")
    if len(local) > _MAX_LOCAL or local[:1] == b"." or local[-1:] == b"." or b".." in local:
        return False
    label = domain.partition(b".")[0]
    if label[-1:] == b"x" and label[:-1].isdigit():  # icon@2x.png
        return False
    if data[end : end + 1] == b":" and data[end + 1 : end + 2].isalnum():  # git@host.org:a/b
        return False
    before = data[max(0, start - _LOOK_BACK) : start].replace(b'"', b" ").split()
    is_glued = bool(before) and data[start - 1 : start] not in (b" ", b'"')
    return not (is_glued and b"://" in before[-1])  # https://user@host.org/


def _is_phone(data: bytes, start: int, end: int) -> bool:
    number = data[start:end]
    digits = sum(48 <= byte <= 57 for byte in number)
    if number[:1] == b"+" and not 8 <= digits <= 15:
        return False
    return _is_number(data, end)


DATA_SHAPES: tuple[DataShape, ...] = (
    DataShape(
        DataClass.PCI,
        _EDGE + b"(" + _CARD + rb")\b",
        rb"[2-6]\d{3}[ -]?\d{4}(?:\d\d[ -]?\d|[ -]?\d{4})",
        _is_card,
    ),
    DataShape(
        DataClass.PII_SSN,
        _EDGE + rb"(\d{3}-\d\d-\d{4})\b",
        rb"\d{3}-\d\d-\d{4}",
        _is_ssn,
    ),
    DataShape(
        DataClass.PII_EMAIL,
        rb"([A-Za-z0-9._%+-]+@(?:[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?\.)+[A-Za-z]{2,24})\b",
        rb"@[A-Za-z0-9-]+\.",
        _is_email,
    ),
    DataShape(
        DataClass.PII_PHONE,
        _EDGE + rb"((?:1[ .-])?(?:\([2-9]\d\d\) ?\d{3}[ .-]|[2-9]\d\d-\d{3}-|[2-9]\d\d\.\d{3}\.)"
        rb"\d{4})\b",
        rb"\d{3}[.-]\d{3}[.-]\d{4}|\d{3}\) ?\d{3}[ .-]\d{4}",
        _is_phone,
    ),
    DataShape(
        DataClass.PII_PHONE,
        # A line of a patch begins with a plus too, so nothing begins at a line end here.
        rb"""(?:^|[ "':=(,;<>|\[])(\+[1-9](?:[ ./()-]{0,2}\d){7,14})\b""",
        rb"\+[1-9]",
        _is_phone,
    ),
)
