"""The redactor: takes text, returns it with secrets masked, and the names of what was masked.

Each hit becomes `[REDACTED:name]`. JSON stays JSON. bench/bench_redaction.py measures the cost. The
redactor does not know where text comes from or goes to (unprintable-secrets, Pack 4).
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from subluminal.config.settings import RedactPattern, RedactSettings
from subluminal.contracts.limits import REDACTED
from subluminal.core.records.redaction import json_text
from subluminal.core.records.redaction.forms import EXPANSION, forms_of
from subluminal.core.records.redaction.matching import (
    Hit,
    Matcher,
    TooManyHits,
    Wanted,
    after_open_hits,
    check_pattern,
)
from subluminal.core.records.redaction.shapes import SHAPES, Shape
from subluminal.secrets.value import SecretValue

MARK = REDACTED.encode()
TOO_MANY = "too_many"
"""Name of the mark that replaces a whole text with more than MAX_HITS hits."""

MIN_HOLD_BACK_BYTES = 4096
"""No token of a known shape is longer than this, except private keys."""

_VIEW_MARGIN = 64

_NO_SECRETS = frozenset(
    b"null none true false undefined required optional string password secret hidden".split()
)
"""Words that stand where a value could be, and are not secret."""


class Preview(NamedTuple):
    """A text that was redacted, then cut."""

    text: str
    truncated: bool
    flags: tuple[str, ...]


class Redactor:
    """Masks known values and known shapes. Compiled when first used; threads may share it."""

    def __init__(
        self,
        values: Iterable[SecretValue] = (),
        shapes: Sequence[Shape] = SHAPES,
        patterns: Sequence[RedactPattern] = (),
    ) -> None:
        names: list[str] = []
        wanted: list[Wanted] = []
        unmaskable = []
        longest = 0
        for value in values:
            if not value.redact:
                continue
            found = forms_of(value.reveal())
            if not found:
                unmaskable.append(value.name)
            longest = max(longest, len(value.reveal()))
            names += [_safe(value.name)] * len(found)
            wanted += [Wanted(*form) for form in found]
        self._values = len(wanted)
        names += [_safe(shape.name) for shape in shapes]
        wanted += [_shape_wanted(shape.prefilter, shape.pattern) for shape in shapes]
        self._names = names + [_safe(pattern.name) for pattern in patterns]
        self.wanted: Sequence[Wanted] = wanted
        """patterns of the known values, then those of the shapes"""
        self._own = Matcher(wanted)
        self._users = Matcher(
            [_shape_wanted(*[p.pattern.encode()] * 2) for p in patterns], utf8=True
        )
        self._users_from = len(names)
        self.unmaskable: tuple[str, ...] = tuple(unmaskable)
        """names of values that are too short to be masked (`forms.MIN_ALONE_CHARS`)"""
        self.hold_back_bytes = max(MIN_HOLD_BACK_BYTES, EXPANSION * longest)
        """size of the longest form of a known value; text before a cut is read this much further"""
        self.screen: Callable[[bytes], object] = self._first_screen
        """Returns something falsy if a text has nothing to mask, as nearly all texts.

        Every call uses it, so it becomes RE2's own method as soon as the patterns are compiled.
        """

    def redact(self, text: str) -> tuple[str, tuple[str, ...]]:
        """Returns the text with every secret masked, and the names of the secrets found."""
        masked, names = self.redact_bytes(text.encode("utf-8", "surrogatepass"))
        return (masked.decode("utf-8", "surrogatepass"), names) if names else (text, names)

    def redact_bytes(self, data: bytes) -> tuple[bytes, tuple[str, ...]]:
        """Does what `redact` does, for bytes in UTF-8 or in an unknown encoding."""
        try:
            hits = self.find(data)
        except TooManyHits:
            mark = self._mark(TOO_MANY)
            return (b'"%b"' % mark if json_text.looks_like_json(data) else mark), (TOO_MANY,)
        if not hits:
            return data, ()
        return self.mask(data, hits), self.names_of(hits)

    def preview(self, text: str, max_bytes: int) -> Preview:
        """Redacts, then cuts to at most `max_bytes`; shows no part of a secret across the cut."""
        bound = max_bytes + self.hold_back_bytes
        window = text[:bound].encode("utf-8", "surrogatepass")
        if len(window) <= max_bytes and len(text) <= bound:
            masked, names = self.redact_bytes(window)
            return Preview(_cut(masked, max_bytes), len(masked) > max_bytes, names)
        try:
            hits = self.find(window)
        except TooManyHits:
            return Preview(self._mark(TOO_MANY).decode(), True, (TOO_MANY,))
        # A secret may begin near the end of the window, so that part is not shown.
        end = after_open_hits(hits, max_bytes)
        hits = [hit for hit in hits if hit.end <= end]
        return Preview(_cut(self.mask(window[:end], hits), max_bytes), True, self.names_of(hits))

    def find(self, data: bytes) -> list[Hit]:
        """Returns every hit, in order of place."""
        hits = self._own.find(data)
        if self._users_from < len(self._names):
            offset = self._users_from
            hits += [Hit(h.start, h.end, h.pattern + offset) for h in self._users.find(data)]
            hits.sort()
        return [hit for hit in hits if self.masks(data, *hit)]

    def masks(self, data: bytes, start: int, end: int, pattern: int) -> bool:
        """Returns True if a place that a pattern hits is a secret."""
        return pattern < self._values or not _harmless(data, Hit(start, end, pattern))

    @property
    def has_own(self) -> bool:
        """Whether there are patterns of the user's own."""
        return self._users_from < len(self._names)

    def finds_own(self, data: bytes) -> bool:
        """Returns True if a pattern of the user's own hits a text."""
        return self.has_own and bool(self._users.candidates(data))

    def names_of(self, hits: Iterable[Hit]) -> tuple[str, ...]:
        """Returns the names of the secrets that were hit, each once, sorted."""
        return tuple(sorted({self._names[hit.pattern] for hit in hits}))

    def mask(self, data: bytes, hits: Sequence[Hit]) -> bytes:
        """Replaces hits by marks. Hits that touch share one mark; a known value names it first."""
        is_json = json_text.looks_like_json(data)
        # After the last hit, only the rest of an escape matters.
        view = json_text.view_of(data[: hits[-1].end + _VIEW_MARGIN]) if is_json and hits else None
        parts = []
        at = 0
        for start, end, index in _merged(data, hits, view):
            for (begin, stop), needs_quotes in _content(data, view, (start, end)):
                if stop <= at:
                    continue
                mark = self._mark(self._names[index])
                parts.append(data[at:begin])
                parts.append(b'"%b"' % mark if needs_quotes else mark)
                at = stop
        parts.append(data[at:])
        return b"".join(parts)

    def warm(self) -> None:
        """Compiles the patterns now, instead of at the first call. Optional."""
        self.screen(b"")

    def _first_screen(self, data: bytes) -> object:
        screens = self._own.screens()
        if self._users_from < len(self._names):
            screens += self._users.screens()
        if len(screens) == 1:
            self.screen = screens[0]
        else:
            self.screen = lambda text: any(screen(text) for screen in screens)
        return self.screen(data)

    @staticmethod
    def _mark(name: str) -> bytes:
        return b"%b%b]" % (MARK, name.encode())


def redactor_for(settings: RedactSettings, values: Iterable[SecretValue] = ()) -> Redactor:
    """Builds the redactor for some settings. Raises SubluminalError if a pattern is not usable."""
    for pattern in settings.patterns:
        check_pattern(pattern.name, pattern.pattern)
    ignored = frozenset(settings.ignore)
    shapes = [shape for shape in SHAPES if shape.name not in ignored]
    return Redactor(values, shapes, settings.patterns)


def _shape_wanted(prefilter: bytes, pattern: bytes) -> Wanted:
    return Wanted(prefilter, lambda: pattern)


def _merged(data: bytes, hits: Sequence[Hit], view: bytes | None) -> list[Hit]:
    merged: list[Hit] = []
    for hit in hits:
        span = hit.start, hit.end
        if view is not None:
            span = json_text.whole_escapes(view, span)
        start, end = json_text.whole_chars(data, span)
        if merged and start <= merged[-1].end:
            last = merged.pop()
            # Values come before shapes in the table; their names are more exact.
            hit = Hit(last.start, max(last.end, end), min(last.pattern, hit.pattern))
        else:
            hit = Hit(start, end, hit.pattern)
        merged.append(hit)
    return merged


def _content(
    data: bytes, view: bytes | None, span: tuple[int, int]
) -> Iterable[tuple[tuple[int, int], bool]]:
    if view is None or json_text.inside_one_string(view, span) or not _is_json(data):
        return ((span, False),)
    return json_text.split_at_structure(json_text.view_of(data), span)


def _is_json(data: bytes) -> bool:
    import msgspec  # rare: a mask over a number, or over the end of a string

    try:
        msgspec.json.decode(data, type=msgspec.Raw)
    except msgspec.MsgspecError:
        return False
    return True


def _harmless(data: bytes, hit: Hit) -> bool:
    """Returns True if a shape has hit one of our own marks, or a word such as `null`."""
    caught = data[hit.start : hit.end]
    if caught.startswith(MARK):
        return caught.find(b"]") in (-1, len(caught) - 1)
    return len(caught) <= 9 and caught.lower() in _NO_SECRETS


def _cut(data: bytes, max_bytes: int) -> str:
    """Returns at most `max_bytes` of a text, without half a character at its end."""
    data = data[:max_bytes]
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte & 0xC0 != 0x80:
            length = 1 if byte < 0xC0 else 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            data = data if length <= back else data[:-back]
            break
    return data.decode("utf-8", "surrogatepass")


def _safe(name: str) -> str:
    """Returns a name that can stand in JSON, in a line of text and in a mark."""
    return "".join(c if c.isascii() and (c.isalnum() or c in "-_.") else "_" for c in name)[:64]
