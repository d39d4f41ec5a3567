"""Reads timestamps by hand: `datetime` costs a command more than the table it prints."""


def milliseconds(ts: str) -> int:
    """An RFC 3339 time in UTC, as shims write it, in milliseconds since 1970."""
    year, month, day = int(ts[:4]), int(ts[5:7]), int(ts[8:10])
    # Days from civil, by Howard Hinnant: years begin in March.
    y = year - (month <= 2)
    era, of_era = divmod(y, 400)
    of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    days = era * 146_097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719_468
    seconds = int(ts[11:13]) * 3600 + int(ts[14:16]) * 60 + int(ts[17:19])
    fraction = ts[20:23].rstrip("Z") if ts[19:20] == "." else ""
    return (days * 86_400 + seconds) * 1000 + int(fraction.ljust(3, "0"))
