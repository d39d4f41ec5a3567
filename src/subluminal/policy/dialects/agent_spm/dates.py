"""The dates of a bundle: ISO 8601 as JavaScript reads it, written as RFC 3339.

A date without a time is midnight in UTC, as in JavaScript. A time without a zone is refused: there
it would be local time, so one bundle would expire at another moment on every machine.
"""

import re

from subluminal.timestamps import parse_rfc3339

_FORM = re.compile(
    r"(\d{4})(?:-(\d\d)(?:-(\d\d))?)?(?:T(\d\d:\d\d)(:\d\d(?:\.\d+)?)?(Z|[+-]\d\d:\d\d))?", re.ASCII
)


def rfc3339_of(text: str) -> str | None:
    """Returns the same moment in RFC 3339; None if the text is not such a date."""
    found = _FORM.fullmatch(text)
    if found is None:
        return None
    year, month, day, minute, second, zone = found.groups()
    date = f"{year}-{month or '01'}-{day or '01'}"
    written = f"{date}T{minute or '00:00'}{second or ':00'}{zone or 'Z'}"
    try:
        parse_rfc3339(written)
    except ValueError:
        return None
    return written
