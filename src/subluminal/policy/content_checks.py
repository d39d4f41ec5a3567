"""Finds values that no policy can mean in texts, sequences, windows and the end of a policy."""

import re
from collections.abc import Iterator

from subluminal.contracts.bundle import (
    AccessEffect,
    Bundle,
    NumericRange,
    RateLimit,
    Sequence,
    TextMatch,
)
from subluminal.contracts.limits import (
    MAX_PATTERN_CHARS,
    MAX_SEQUENCE_CALLS,
    MAX_TEXTS,
)
from subluminal.contracts.shape import Misfit, Path
from subluminal.contracts.vocabulary import Action
from subluminal.policy.bounds import amount_misfits, not_finite, range_misfits
from subluminal.policy.patterns import glob_problem, regex_problem
from subluminal.timestamps import parse_rfc3339

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", re.ASCII)
_BUCKET = ("capacity", "refill_tokens", "refill_period_ms")
_WINDOW = ("max_calls", "window_ms")


def expiry_misfits(bundle: Bundle) -> Iterator[Misfit]:
    """Checks the end of a policy."""
    if bundle.expires_at is not None and not _is_time(bundle.expires_at):
        hint = "write it in UTC, as in `2030-12-31T23:59:59Z`"
        yield Misfit(("expires_at",), "is not a time", hint)


def _is_time(text: str) -> bool:
    if not _TIME.fullmatch(text):
        return False
    try:
        parse_rfc3339(text)
    except ValueError:
        return False
    return True


def text_misfits(text: TextMatch, path: Path) -> Iterator[Misfit]:
    """Checks `match.text`. Paths begin at the rule."""
    if text == TextMatch():
        hint = "give `any_of`, `none_of` or `regex`"
        yield Misfit(path, "says nothing about texts", hint)
    for name in ("any_of", "none_of"):
        words: list[str] = getattr(text, name)
        if len(words) > MAX_TEXTS:
            yield Misfit((*path, name), f"has {len(words)} texts; the most is {MAX_TEXTS}")
        for index, word in enumerate(words):
            if not word:
                yield Misfit((*path, name, index), "an empty text is part of every value")
            elif len(word) > MAX_PATTERN_CHARS:
                yield Misfit((*path, name, index), f"longer than {MAX_PATTERN_CHARS} characters")
    if text.regex is not None:
        problem = "an empty regex is found everywhere" if not text.regex else None
        problem = problem or regex_problem(text.regex)
        if problem is not None:
            shown = f" `{text.regex[:40]}`" if text.regex else ""
            yield Misfit((*path, "regex"), f"invalid regex{shown}: {problem}")


def number_misfits(bounds: NumericRange, path: Path) -> Iterator[Misfit]:
    """Checks `numeric_range` of one argument."""
    if bounds.gt is None and bounds.lt is None:
        yield from range_misfits(bounds.min, bounds.max, ("min", "max"), path)
        return
    for name in ("min", "max", "gt", "lt"):
        yield from not_finite(getattr(bounds, name), (*path, name))
    pairs = [("min", "max", False), ("gt", "lt", True), ("min", "lt", True), ("gt", "max", True)]
    for low_name, high_name, is_open in pairs:
        low, high = getattr(bounds, low_name), getattr(bounds, high_name)
        if low is None or high is None:
            continue
        if low > high or (is_open and low == high):
            yield Misfit(path, f"no number is in it: `{low_name}` {low}, `{high_name}` {high}")


def constraint_misfits(effect: AccessEffect) -> Iterator[Misfit]:
    """Checks what a rule tells the agent to keep to."""
    yield from not_finite(effect.constraints, ("effect", "constraints"))


def rate_limit_misfits(limit: RateLimit) -> Iterator[Misfit]:
    """Checks a token bucket or a sliding window."""
    path: Path = ("effect", "rate_limit")
    for name in (*_BUCKET, *_WINDOW, "cost_tokens_per_call", "backoff_ms"):
        yield from amount_misfits(getattr(limit, name), 1, (*path, name))
    yield from _bucket_or_window(limit, path)
    if limit.on_limit == Action.THROTTLE and limit.backoff_ms is None:
        yield Misfit(path, "missing field `backoff_ms`", "`on_limit: THROTTLE` requires it")


def _bucket_or_window(limit: RateLimit, path: Path) -> Iterator[Misfit]:
    of_window = [name for name in _WINDOW if getattr(limit, name) is not None]
    wanted, other = (_WINDOW, _BUCKET) if of_window else (_BUCKET, ())
    for name in wanted:
        if getattr(limit, name) is None:
            hint = f"`{of_window[0]}` requires it" if of_window else _LIMIT_HINT
            yield Misfit(path, f"missing field `{name}`", hint)
    for name in other:
        if getattr(limit, name) is not None:
            hint = "remove it, or `max_calls` and `window_ms`"
            yield Misfit((*path, name), "a sliding window has no bucket", hint)
    if of_window and limit.cost_tokens_per_call != 1:
        hint = "remove it: every call counts once"
        yield Misfit((*path, "cost_tokens_per_call"), "a sliding window has no tokens", hint)


_LIMIT_HINT = "or give `max_calls` and `window_ms` for a sliding window"


def sequence_misfits(sequence: Sequence) -> Iterator[Misfit]:
    """Checks a pattern of calls."""
    path: Path = ("effect", "sequence")
    pattern = sequence.pattern
    if len(pattern) < 2:
        hint = "use a deny rule for a single call"
        yield Misfit((*path, "pattern"), f"needs at least 2 calls, got {len(pattern)}", hint)
    elif len(pattern) > MAX_SEQUENCE_CALLS:
        most = f"has {len(pattern)} calls; the most is {MAX_SEQUENCE_CALLS}"
        yield Misfit((*path, "pattern"), most)
    for index, glob in enumerate(pattern):
        problem = glob_problem(glob)
        if problem is not None:
            shown = f" `{glob[:40]}`" if glob else ""
            yield Misfit((*path, "pattern", index), f"invalid glob{shown}: {problem}")
    yield from amount_misfits(sequence.within_ms, 1, (*path, "within_ms"))
