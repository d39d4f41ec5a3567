"""Reads the contents of a call for the rules that ask: one pass of RE2 over its canonical text.

The pass searches for the shapes that the redactor masks, for those of `shapes`, and for the texts
of the rules at once: a second pass would cost as much again. A text that is surely nowhere is
handed to the policy as absent, so that it need not look at every value.
"""

from typing import NamedTuple

from subluminal.contracts.vocabulary import DataClass
from subluminal.core.contents.shapes import DATA_SHAPES
from subluminal.core.records.redaction.matching import Matcher, Wanted
from subluminal.core.records.redaction.redactor import Redactor

_MAX_QUESTIONS = 64
"""Most sets of patterns that are kept: one for each set of rules that a tool meets."""
_PLAIN = frozenset(map(chr, range(0x20, 0x7F))) - frozenset('"\\')
"""Characters that JSON never escapes."""
_OF_NUMBERS = frozenset("0123456789.e+-infty")
"""Characters of numbers, which canonical JSON and JavaScript may write differently."""


class Found(NamedTuple):
    """What a text contains."""

    data: frozenset[DataClass] | None
    """classes of data; None if nobody asked"""
    absent: frozenset[str]
    """folded texts that are surely part of no value"""


class ContentReader:
    """Reads contents with one redactor. Compiled when first used."""

    def __init__(self, redactor: Redactor) -> None:
        self.redactor = redactor
        self._questions: dict[tuple[bool, frozenset[str]], _Question] = {}

    def read(self, text: bytes, *, wants_data: bool, words: frozenset[str]) -> Found:
        """Searches canonical JSON; `words` are folded texts that rules look for."""
        key = wants_data, words
        question = self._questions.get(key)
        if question is None:
            if len(self._questions) >= _MAX_QUESTIONS:
                self._questions.clear()
            question = self._questions[key] = _Question(self.redactor, *key)
        return question.answer(text)


class _Question:
    """The patterns of one pass: secrets, other data, texts. Each part may be empty."""

    def __init__(self, redactor: Redactor, wants_data: bool, words: frozenset[str]) -> None:
        self._redactor = redactor
        self._wants_data = wants_data
        self._secrets = redactor.wanted if wants_data else []
        shapes = [_wanted(each.prefilter, each.pattern) for each in DATA_SHAPES]
        self._data_from = len(self._secrets)
        self._words_from = self._data_from + (len(shapes) if wants_data else 0)
        self._words = [each for each in sorted(words) if _is_searchable(each)]
        self._foreign = frozenset(each for each in words if not each.isascii())
        literals = [_literal(each) for each in self._words]
        self._matcher = Matcher(
            [
                *self._secrets,
                *(shapes if wants_data else []),
                *(_wanted(each, each) for each in literals),
            ]
        )
        self._nothing = Found(frozenset() if wants_data else None, self._absent([]))
        self._has_own = wants_data and redactor.has_own

    def answer(self, text: bytes) -> Found:
        """Searches a text. Nearly always nothing is found."""
        hits = self._matcher.candidates(text)
        is_plain = text.isascii()
        if is_plain and not hits and not self._has_own:
            return self._nothing
        # Outside of ASCII, folding may turn one character into several.
        absent = self._absent(hits) if is_plain else frozenset[str]()
        return Found(self._data(text, hits) if self._wants_data else None, absent)

    def _absent(self, hits: list[int]) -> frozenset[str]:
        present = {self._words[hit - self._words_from] for hit in hits if hit >= self._words_from}
        return self._foreign.union(word for word in self._words if word not in present)

    def _data(self, text: bytes, hits: list[int]) -> frozenset[DataClass]:
        found: set[DataClass] = set()
        for hit in hits:
            if hit < self._data_from:
                if DataClass.SECRET not in found and self._has_secret(text, hit):
                    found.add(DataClass.SECRET)
            elif hit < self._words_from:
                shape = DATA_SHAPES[hit - self._data_from]
                spans = self._matcher.spans(text, hit)
                if any(shape.confirms(text, start, end) for start, end in spans):
                    found.add(shape.data_class)
        if DataClass.SECRET not in found and self._redactor.finds_own(text):
            found.add(DataClass.SECRET)
        return frozenset(found)

    def _has_secret(self, text: bytes, index: int) -> bool:
        spans = self._matcher.spans(text, index)
        return any(self._redactor.masks(text, start, end, index) for start, end in spans)


def _wanted(prefilter: bytes, pattern: bytes) -> Wanted:
    return Wanted(prefilter, lambda: pattern)


def _is_searchable(word: str) -> bool:
    """Returns True if a text stands in canonical JSON as it stands in a value."""
    return _PLAIN.issuperset(word) and not _OF_NUMBERS.issuperset(word)


def _literal(word: str) -> bytes:
    escaped = b"".join(
        b"%c" % byte if chr(byte).isalnum() else rb"\x%02x" % byte for byte in word.encode()
    )
    return b"(?i:" + escaped + b")"
