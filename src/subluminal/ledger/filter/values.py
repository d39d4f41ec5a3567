"""Parses and formats the values of filter terms: names, words, numbers with units, times."""

import re

from subluminal.clock import rfc3339
from subluminal.errors import SubluminalError
from subluminal.ledger.filter.fields import CALL_FIELDS, RUN_FIELDS, Field, Kind

_NUMBER = r"(\d{1,15})(?:\.(\d{1,3}))?\s*([a-zA-Z]*)"
_AGE = r"(\d{1,9})([smhdw])"
_UNITS = {
    "ms": {"": 1, "ms": 1, "s": 1_000, "m": 60_000},
    "bytes": {"": 1, "b": 1, "k": 1_024, "kib": 1_024, "kb": 1_000, "m": 1 << 20, "mib": 1 << 20},
    "": {"": 1},
}
_AGES_MS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_PLAIN = r'[^\s",\\]+'


class InvalidValue(SubluminalError):
    """A value that the field does not take."""


def read_value(field: Field, raw: str, now_ms: int) -> str | int:
    """Turns the text of a value into the value to compare with."""
    match field.kind:
        case Kind.WORD:
            return _word(field, raw)
        case Kind.NUMBER:
            return _number(field, raw)
        case Kind.TIME:
            return _time(field, raw, now_ms)
        case _:
            if not raw.strip() or "\0" in raw:
                raise InvalidValue(f"`{field.name}` needs a value", hint=field.example)
            return raw


def written(value: str | int, field: str) -> str:
    """A value as text: quoted where necessary, times in full."""
    if isinstance(value, int):
        known = CALL_FIELDS.get(field) or RUN_FIELDS[field]
        return rfc3339(value) if known.kind is Kind.TIME else str(value)
    if re.fullmatch(_PLAIN, value):
        return value
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _word(field: Field, raw: str) -> str:
    for word in field.words:
        if word.lower() == raw.lower():
            return word
    from subluminal.contracts.shape import did_you_mean

    hint = did_you_mean(raw, list(field.words)) or f"one of {', '.join(field.words)}"
    raise InvalidValue(f"unknown {field.name} `{raw[:40]}`", hint=hint)


def _number(field: Field, raw: str) -> int:
    found = re.fullmatch(_NUMBER, raw)
    factor = _UNITS[field.unit].get(found[3].lower()) if found else None
    if found is None or factor is None:
        raise InvalidValue(f"`{raw[:40]}` is not a number", hint=field.example)
    thousandths = int((found[2] or "").ljust(3, "0"))
    return int(found[1]) * factor + thousandths * factor // 1000


def _time(field: Field, raw: str, now_ms: int) -> int:
    """Reads an age such as `2h`, or a date or time. Without a zone, a time is local."""
    age = re.fullmatch(_AGE, raw)
    if age is not None:
        return max(0, now_ms - int(age[1]) * _AGES_MS[age[2]])
    from datetime import datetime

    try:
        at_ms = round(datetime.fromisoformat(raw).astimezone().timestamp() * 1000)
    except (ValueError, OverflowError):
        raise InvalidValue(f"`{raw[:40]}` is not a time", hint=field.example) from None
    if at_ms < 0:
        raise InvalidValue(f"`{raw[:40]}` is before 1970", hint=field.example)
    return at_ms
