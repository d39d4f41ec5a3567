"""Finds where patterns hit in bytes. RE2 only: linear time, whatever the text is (linear-patterns).

One `re2.Set` of all prefilters tells in a single pass which patterns can hit at all; only those
are then made, compiled and searched for. Knows nothing of JSON, names or marks. No pattern is
ever printed, for it may hold a secret: RE2's own messages are off, its errors are not passed on.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from subluminal.errors import SubluminalError

MAX_SET_BYTES = 200_000
"""Pattern bytes in one set. Many secrets make several sets; each costs one pass."""

MAX_PATTERN_MEMORY = 64 << 20
"""RE2's bound on one set's automaton; used only as far as a text drives it there."""

MAX_HITS = 512
"""Hits located in one text. A text with more is masked whole: it is a dump, or an attack."""


class Hit(NamedTuple):
    """A place to mask, and the number of the pattern that found it."""

    start: int
    end: int
    pattern: int


_PROBE = b"\0subluminal probe\0"
"""Found by every set that works. RE2 says nothing when a set is too large for its memory."""


class TooManyHits(Exception):
    """More than MAX_HITS in one text."""


class Wanted(NamedTuple):
    """A pattern, made when its prefilter first hits; the prefilter is in all that it is in."""

    prefilter: bytes
    pattern: Callable[[], bytes]


class Matcher:
    """Patterns of one encoding, compiled when they are first used (re2 takes 20 ms to load)."""

    def __init__(self, wanted: Sequence[Wanted], *, utf8: bool = False) -> None:
        self._wanted = wanted
        self._utf8 = utf8
        self._sets: list[tuple[Any, int]] | None = None
        self._regexes: dict[int, Any] = {}

    def screens(self) -> list[Callable[[bytes], object]]:
        """What to ask of a text first: if all of them say nothing, nothing would be found."""
        sets = self._compile() if self._sets is None else self._sets
        # Set.Match in Python only calls the one below it, on each call of a tool.
        return [getattr(compiled, "_set", compiled).Match for compiled, _ in sets]

    def find(self, data: bytes) -> list[Hit]:
        """Returns the hits in order. Raises TooManyHits instead of more than MAX_HITS."""
        hits: list[Hit] = []
        for found, offset in self._compile() if self._sets is None else self._sets:
            for index in found.Match(data) or ():
                if index:
                    self._locate(data, offset + index - 1, hits)
        hits.sort()
        return hits

    def _locate(self, data: bytes, index: int, hits: list[Hit]) -> None:
        regex = self._regex(index)
        groups = range(1, regex.groups + 1)
        for match in regex.finditer(data):
            caught = (match.span(group) for group in groups)
            start, end = next((span for span in caught if span[0] >= 0), match.span())
            if start < end:
                hits.append(Hit(start, end, index))
            if len(hits) > MAX_HITS:
                raise TooManyHits

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
            # Its message would show the pattern, and so the secret.
            raise SubluminalError("a secret or shape cannot be looked for") from None
        if any(compiled.Match(_PROBE) is None for compiled, _ in sets):
            raise SubluminalError("too many secrets to look for at once")
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
    """Moves a cut behind the hits that lie across it."""
    for hit in hits:
        if hit.start < cut:
            cut = max(cut, hit.end)
    return cut


def check_pattern(name: str, pattern: str) -> None:
    """Refuses a pattern that RE2 cannot run, or that would mask nothing or everything."""
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        regex = re2.compile(pattern, options)
    except re2.error as error:
        raise SubluminalError(
            f"redact pattern `{name}`: {_reason(error)}",
            hint="patterns are RE2: no lookaround, no backreferences",
        ) from None
    if regex.search("") is not None:
        raise SubluminalError(f"redact pattern `{name}` matches empty text")


def _reason(error: Exception) -> str:
    detail = error.args[0] if error.args else "not a pattern"
    return detail.decode("utf-8", "replace") if isinstance(detail, bytes) else str(detail)
