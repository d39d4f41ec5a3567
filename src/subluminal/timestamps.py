"""Reads RFC 3339 timestamps: the one parser of the product. `clock.rfc3339` writes them.

Pure, and so apart from the clock: deciding code may import it. The form that our own events have is
read by hand, because importing `datetime` takes a command longer than printing its table.
"""

from functools import lru_cache

_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def parse_rfc3339(text: str) -> int:
    """Reads a timestamp with a zone, as milliseconds since 1970 UTC. Truncates finer fractions.

    Raises ValueError if the text is not a time, has no zone, or is before 1970.
    """
    if len(text) == 24 and text[19::4] == ".Z" and text[20:23].isdecimal():
        return _second_ms(text[:19]) + int(text[20:23])
    if len(text) == 20 and text[19] == "Z":
        return _second_ms(text[:19])
    return _any_form_ms(text)


@lru_cache(maxsize=4096)
def _second_ms(text: str) -> int:
    """Reads `YYYY-MM-DDTHH:MM:SS` in UTC."""
    digits = text[:4] + text[5:7] + text[8:10] + text[11:13] + text[14:16] + text[17:]
    if text[4::3] != "--T::" or not (digits.isascii() and digits.isdecimal()):
        return _any_form_ms(text + "Z")
    year, month, day = int(text[:4]), int(text[5:7]), int(text[8:10])
    hour, minute, second = int(text[11:13]), int(text[14:16]), int(text[17:])
    if not 1 <= month <= 12 or not 1 <= day <= _days_in(year, month):
        raise ValueError(f"`{text}` is not a date")
    if hour > 23 or minute > 59 or second > 59:
        raise ValueError(f"`{text}` is not a time of day")
    seconds = _days_since_1970(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second
    return _not_before_1970(seconds * 1000)


def _days_in(year: int, month: int) -> int:
    is_leap_year = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return 29 if month == 2 and is_leap_year else _DAYS[month - 1]


def _days_since_1970(year: int, month: int, day: int) -> int:
    """Howard Hinnant's `days_from_civil`. Its years begin in March, so a leap day is the last."""
    year -= month <= 2
    era, year_of_era = divmod(year, 400)
    day_of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    day_of_era = year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year
    return era * 146_097 + day_of_era - 719_468


def _any_form_ms(text: str) -> int:
    from datetime import datetime

    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"no time zone in `{text[:40]}`")
    return _not_before_1970(int(moment.timestamp() * 1000))


def _not_before_1970(at_ms: int) -> int:
    if at_ms < 0:
        raise ValueError("the time is before 1970")
    return at_ms
