"""RFC 3339 text to milliseconds and back. Quick for the form that shims write."""

from datetime import UTC, datetime
from functools import lru_cache


def to_ms(ts: str) -> int:
    """Milliseconds since 1970 UTC. Raises ValueError if the text is no timestamp."""
    if len(ts) == 24 and ts[19::4] == ".Z":
        return _second(ts[:19]) + int(ts[20:23])
    moment = datetime.fromisoformat(ts)
    if moment.tzinfo is None:
        raise ValueError(f"no time zone in `{ts[:40]}`")
    return _not_before_1970(int(moment.timestamp() * 1000))


@lru_cache(maxsize=4096)
def _second(text: str) -> int:
    moment = datetime.fromisoformat(text).replace(tzinfo=UTC)
    return _not_before_1970(int(moment.timestamp()) * 1000)


def _not_before_1970(at_ms: int) -> int:
    if at_ms < 0:
        raise ValueError("the time is before 1970")
    return at_ms


def readable_ms(text: str, otherwise: str) -> int:
    """A time that an event names; the event's own if that cannot be read."""
    try:
        return to_ms(text)
    except (ValueError, OverflowError):
        return to_ms(otherwise)
