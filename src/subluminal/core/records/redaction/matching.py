"""Finds where patterns hit in bytes, with RE2: linear time, whatever the text (linear-patterns).

One `re2.Set` of all prefilters finds in a single pass the patterns that can hit; only those are
made, compiled and searched for. INVARIANT: no pattern is ever printed, because it may contain a
secret. RE2's own messages are off, and its errors are not passed on.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from subluminal.errors import SubluminalError

MAX_SET_BYTES = 200_000
"""Most pattern bytes in one set. Many secrets make several sets; each costs one pass."""

MAX_PATTERN_MEMORY = 64 << 20
"""RE2's memory limit for one set, in bytes; allocated only as far as a text needs it."""

MAX_HITS = 512
"""Most hits that are located in one text. A text with more is a dump or an attack: it is masked
whole."""


class Hit(NamedTuple):
    """A place to mask, and the index of the pattern that found it."""

    start: int
    end: int
    pattern: int


_PROBE = b"\0subluminal probe\0"
"""A text that every working set must find: RE2 reports no error if a set exceeds its memory."""


class TooManyHits(Exception):
    """A text has more than MAX_HITS hits."""


class Wanted(NamedTuple):
    """A pattern and its prefilter, which hits every text that the pattern hits.

    The pattern is made when the prefilter first hits.
    """

    prefilter: bytes
    pattern: Callable[[], bytes]


class Matcher:
    """Patterns of one encoding, compiled when first used, because re2 takes 20 ms to load."""

    def __init__(self, wanted: Sequence[Wanted], *, utf8: bool = False) -> None:
        self._wanted = wanted
        self._utf8 = utf8
        self._sets: list[tuple[Any, int]] | None = None
        self._regexes: dict[int, Any] = {}

    def screens(self) -> list[Callable[[bytes], object]]:
        """Returns functions that screen a text: if all return nothing, `find` finds nothing."""
        sets = self._compile() if self._sets is None else self._sets
        # Set.Match is a Python wrapper; every tool call would pay for its frame.
        return [getattr(compiled, "_set", compiled).Match for compiled, _ in sets]

    def candidates(self, data: bytes) -> list[int]:
        """Returns the indexes of the patterns whose prefilter hits: no other pattern does."""
        hits: list[int] = []
        for found, offset in self._compile() if self._sets is None else self._sets:
            for index in found.Match(data) or ():
                if index:
                    hits.append(offset + index - 1)
        return hits

    def spans(self, data: bytes, index: int) -> Iterator[tuple[int, int]]:
        """Yields the places that one pattern hits: its first group with text, else all of it."""
        regex = self._regex(index)
        groups = range(1, regex.groups + 1)
        for match in regex.finditer(data):
            caught = (match.span(group) for group in groups)
            start, end = next((span for span in caught if span[0] >= 0), match.span())
            if start < end:
                yield start, end

    def find(self, data: bytes) -> list[Hit]:
        """Returns the hits in order. Raises TooManyHits if there are more than MAX_HITS."""
        hits: list[Hit] = []
        for index in self.candidates(data):
            for start, end in self.spans(data, index):
                hits.append(Hit(start, end, index))
                if len(hits) > MAX_HITS:
                    raise TooManyHits
        hits.sort()
        return hits

    def _compile(self) -> list[tuple[Any, int]]:
        import re2

        sets: list[tuple[Any, int]] = []
        size = MAX_SET_BYTES
        try:
            for index, (prefilter, _) in enumerate(self._wanted):
                if size + len(prefilter) > MAX_SET_BYTES:
                    sets.append((re2.Set.SearchSet(self._options(never_capture=True)), index))
                    sets[-1][0].Add(_PROBE)
                    size = 0
                size += len(prefilter)
                sets[-1][0].Add(prefilter)
            for compiled, _ in sets:
                compiled.Compile()
        except re2.error:
            # RE2's message would show the pattern, and so the secret.
            raise SubluminalError("the pattern of a secret or shape cannot be compiled") from None
        if any(compiled.Match(_PROBE) is None for compiled, _ in sets):
            raise SubluminalError("there are too many secrets to search for at once")
        self._sets = sets
        return sets

    def _regex(self, index: int) -> Any:
        if index not in self._regexes:
            import re2

            self._regexes[index] = re2.compile(self._wanted[index].pattern(), self._options())
        return self._regexes[index]

    def _options(self, *, never_capture: bool = False) -> Any:
        import re2

        options = re2.Options()
        options.log_errors = False
        options.max_mem = MAX_PATTERN_MEMORY
        options.never_capture = never_capture
        if not self._utf8:
            options.encoding = re2.Options.Encoding.LATIN1
        return options


def after_open_hits(hits: Sequence[Hit], cut: int) -> int:
    """Returns a cut that is moved to the end of the hits that lie across it."""
    for hit in hits:
        if hit.start < cut:
            cut = max(cut, hit.end)
    return cut


def check_pattern(name: str, pattern: str) -> None:
    """Raises SubluminalError if RE2 cannot run a pattern, or if the pattern matches empty text."""
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        regex = re2.compile(pattern, options)
    except re2.error as error:
        raise SubluminalError(
            f"redact pattern `{name}`: {_reason(error)}",
            hint="patterns use RE2's syntax, without lookaround and backreferences",
        ) from None
    if regex.search("") is not None:
        raise SubluminalError(f"redact pattern `{name}` matches empty text")


def _reason(error: Exception) -> str:
    detail = error.args[0] if error.args else "not a pattern"
    return detail.decode("utf-8", "replace") if isinstance(detail, bytes) else str(detail)
