"""Tests of what the arguments of a call say: the matchers `text` and `data_any`.

Texts are compared after full Unicode case folding, so `STRASSE` is part of `Straße`; a regex folds
simple cases only, as RE2 does. Numbers are written as JavaScript's String() writes them. Keys never
count. `core.contents` finds classes of data, and says which texts are surely not there; without it,
the arguments are searched here. All of that is linear in the arguments.
"""

from collections.abc import Iterable
from decimal import Decimal
from math import isfinite
from typing import Any

from subluminal.canonical import encode
from subluminal.canonical.numbers import write_fraction
from subluminal.contracts.vocabulary import DataClass
from subluminal.policy.patterns import regex_finders

_EXACT = 2**53
_APART = "\0"
"""Stands between values. A text that contains it is compared with each value by itself."""
_PERSONAL = (DataClass.PII_SSN, DataClass.PII_EMAIL, DataClass.PII_PHONE)


def number_text(number: float | Decimal) -> str:
    """Writes a number as JavaScript's String() does, which reads every number as a double."""
    try:
        double = float(number)
    except OverflowError:
        double = float("inf") if number > 0 else float("-inf")
    if not isfinite(double):
        return "Infinity" if double > 0 else "-Infinity"
    return write_fraction(double, exact=False)


def values_of(args: dict[str, Any]) -> list[str]:
    """Returns every text, number and boolean in arguments, in their order and at any depth."""
    found: list[str] = []
    waiting: list[Any] = [args]
    while waiting:
        value = waiting.pop()
        kind = type(value)
        if kind is str:
            found.append(value)
        elif kind is int and -_EXACT <= value <= _EXACT:
            found.append(str(value))
        elif kind is list:
            waiting.extend(reversed(value))
        elif kind is bool:
            found.append("true" if value else "false")
        elif isinstance(value, dict):
            waiting.extend(reversed(value.values()))
        elif value is not None:
            found.append(number_text(value))
    return found


class Texts:
    """The values of one call, read when a rule first asks, and what was found in them."""

    __slots__ = ("_absent", "_answers", "_args", "_folded", "_user_input", "_values")

    def __init__(
        self,
        args: dict[str, Any],
        user_input: str | None = None,
        absent: frozenset[str] = frozenset(),
    ) -> None:
        """`absent` are folded texts that are surely part of no value."""
        self._args = args
        self._user_input = user_input
        self._absent = absent
        self._values: list[str] | None = None
        self._folded: str | None = None
        self._answers: dict[bytes, bool] = {}

    def holds(self, test: "TextTest") -> bool:
        """Whether a test holds. The answer is remembered for the other rules that ask."""
        answer = self._answers.get(test.key)
        if answer is None:
            answer = self._answers[test.key] = test.search(self)
        return answer

    def has_any(self, words: Iterable[str]) -> bool:
        """Whether one of several folded texts is part of a value."""
        return any(word not in self._absent and self._has(word) for word in words)

    def _has(self, word: str) -> bool:
        if self._folded is None:
            self._folded = _APART.join(self._all()).casefold()
        if word not in self._folded:
            return False
        return _APART not in word or any(word in value.casefold() for value in self._all())

    @property
    def joined(self) -> str:
        """All values in one text, with a space between."""
        return " ".join(self._all())

    def _all(self) -> list[str]:
        if self._values is None:
            given = [self._user_input] if self._user_input else []
            self._values = [*given, *values_of(self._args)]
        return self._values


class TextTest:
    """The test of one rule: `match.text` of a snapshot."""

    __slots__ = ("_any_of", "_finders", "_none_of", "key")

    def __init__(self, spec: dict[str, Any]) -> None:
        self._any_of = tuple(word.casefold() for word in spec["any_of"])
        self._none_of = tuple(word.casefold() for word in spec["none_of"])
        regex = spec["regex"]
        self._finders = regex_finders([] if regex is None else [f"(?i:{regex})"])
        self.key = encode(spec)
        """the same for tests that always give the same answer"""

    @property
    def words(self) -> tuple[str, ...]:
        """The folded texts that the test searches for."""
        return self._any_of + self._none_of

    def search(self, texts: Texts) -> bool:
        """Whether the texts match; asked once for each call, see `Texts.holds`."""
        if self._any_of and not texts.has_any(self._any_of):
            return False
        if self._none_of and texts.has_any(self._none_of):
            return False
        if not self._finders:
            return True
        # A lone surrogate has no UTF-8: no regex can ask for it.
        joined = texts.joined.encode("utf-8", "replace").decode()
        return any(find(joined) for _, find in self._finders)


class Hidden:
    """Contents that are not known: each test gets a chosen answer. For replay."""

    __slots__ = ("asked", "chosen")

    def __init__(self, chosen: dict[bytes, bool]) -> None:
        self.chosen = chosen
        """key of a test to its answer"""
        self.asked: set[bytes] = set()
        """keys of the tests that have no chosen answer"""

    def answer(self, key: bytes) -> bool:
        """Returns the chosen answer of a test; False if there is none yet."""
        if key not in self.chosen:
            self.asked.add(key)
        return self.chosen.get(key, False)


class HiddenTexts(Texts):
    """Values that are not known."""

    __slots__ = ("_hidden",)

    def __init__(self, hidden: Hidden) -> None:
        super().__init__({})
        self._hidden = hidden

    def holds(self, test: "TextTest") -> bool:
        """Returns the chosen answer."""
        return self._hidden.answer(test.key)


class HiddenData(frozenset[DataClass]):
    """Classes of data that are not known."""

    hidden: Hidden

    @classmethod
    def of(cls, hidden: Hidden) -> "HiddenData":
        """Returns classes whose tests get the chosen answers."""
        made = cls()
        made.hidden = hidden
        return made


class DataTest:
    """The test of one rule: `match.data_any` of a snapshot."""

    __slots__ = ("_favours", "_wanted", "key")

    def __init__(self, classes: list[str], *, favours: bool) -> None:
        """`favours` says that a match is good for the call, as that of an allow is."""
        self._favours = favours
        self._wanted = data_classes(DataClass(each) for each in classes)
        self.key = encode(sorted(self._wanted))
        """the same for tests that always give the same answer"""

    def __call__(self, data: frozenset[DataClass] | None) -> bool:
        """Whether one of the classes was found. What nobody looked for counts against the call."""
        if data is None:
            return not self._favours
        if isinstance(data, HiddenData):
            return data.hidden.answer(self.key)
        return not self._wanted.isdisjoint(data)


def data_classes(classes: Iterable[DataClass]) -> frozenset[DataClass]:
    """Returns classes of data with those that PII stands for."""
    wanted = frozenset(classes)
    return wanted.union(_PERSONAL) if DataClass.PII in wanted else wanted


def text_test(spec: dict[str, Any] | None) -> TextTest | None:
    """Builds the test of what values say from `match.text` of a snapshot."""
    return None if spec is None else TextTest(spec)


def data_test(classes: list[str] | None, *, favours: bool) -> DataTest | None:
    """Builds the test of classes of data from `match.data_any` of a snapshot."""
    return None if not classes else DataTest(classes, favours=favours)
