"""Arguments that the record hides: what is still known of them, and what they could have been.

A recorded preview is redacted first, then cut. Its keys are in canonical order, so every key before
the cut is known, and so is the absence of other keys there. What comes after may be anything.

Each predicate looks at one top-level key. So for a hidden key it is enough to try one value for
each combination of results that the predicates about that key can give.
"""

from collections.abc import Callable, Iterable
from decimal import Decimal
from itertools import pairwise
from typing import Any

from msgspec.structs import replace

from subluminal.canonical import AmbiguousJSON, parse
from subluminal.contracts.limits import REDACTED, TRUNCATED
from subluminal.policy.evaluation import Call, Evaluation
from subluminal.policy.predicates import ArgsPredicate, args_predicate, is_number
from subluminal.policy.snapshot import Snapshot

Hides = Callable[[str], bool]


class PartialArgs(dict[str, Any]):
    """Arguments with hidden keys. Remembers which hidden keys a policy has read."""

    __slots__ = ("asked", "hides", "present")

    def __init__(
        self, known: dict[str, Any], hides: Hides, present: frozenset[str] = frozenset()
    ) -> None:
        super().__init__(known)
        self.hides = hides
        self.present = present
        """hidden keys that were present, with an unknown value"""
        self.asked: set[str] = set()

    def get(self, key: str, default: Any = None, /) -> Any:
        self._note(key)
        return super().get(key, default)

    def __contains__(self, key: object) -> bool:
        self._note(str(key))
        return super().__contains__(key)

    def _note(self, key: str) -> None:
        if self.hides(key):
            self.asked.add(key)


def known_args(
    text: str | None, *, truncated: bool, redacted: bool
) -> dict[str, Any] | PartialArgs | None:
    """Reads a preview. Returns None if the shim did not inspect the arguments (Pack 1.10)."""
    if text is None:
        return nothing_known()
    if truncated:
        return None if text == TRUNCATED else _before_the_cut(text.partition(REDACTED)[0])
    try:
        value = parse(text.encode("utf-8", "surrogatepass")).value
    except AmbiguousJSON:
        return nothing_known()
    if not isinstance(value, dict):
        return nothing_known()  # one mark replaces all arguments
    return _without_marks(value) if redacted else value


def nothing_known() -> PartialArgs:
    """Returns arguments of which the record has nothing."""
    return PartialArgs({}, lambda _key: True)


def _without_marks(value: dict[str, Any]) -> PartialArgs:
    known = {key: each for key, each in value.items() if not _is_marked([key, each])}
    marked = frozenset(key for key in value if key not in known)
    if any(REDACTED in key for key in marked):
        return PartialArgs(known, lambda key: key not in known)
    return PartialArgs(known, marked.__contains__, marked)


def _is_marked(value: Any) -> bool:
    if isinstance(value, str):
        return REDACTED in value
    if isinstance(value, list):
        return any(map(_is_marked, value))
    if isinstance(value, dict):
        return any(_is_marked(key) or _is_marked(each) for key, each in value.items())
    return False


def _before_the_cut(text: str) -> PartialArgs:
    known = _whole_members(text)
    keys = list(known)
    if not keys or keys != sorted(
        keys
    ):  # another producer may write previews that are not canonical
        return PartialArgs(known, lambda key: key not in known)
    return PartialArgs(known, lambda key: key > keys[-1])


def _whole_members(text: str) -> dict[str, Any]:
    """Returns the members of a cut object that are complete."""
    try:
        found: dict[str, Any] = parse(f"{{{text[1 : _end_of_whole(text)]}}}".encode()).value
    except AmbiguousJSON:
        return {}
    return found


def _end_of_whole(text: str) -> int:
    from json import JSONDecoder  # takes 13 ms to load, as in canonical.parsing

    read, at, end = JSONDecoder().raw_decode, 1, 1
    try:
        while True:
            at = read(text, at)[1]  # the key
            at = read(text, at + 1)[1]  # the value, behind a colon
            if text[at : at + 1] != ",":
                return end
            end, at = at, at + 1
    except (ValueError, RecursionError):
        return end


MAX_TRIES = 64
"""Most combinations that are tried. Beyond, the call is undetermined."""

_ABSENT = object()
_NOTHING: dict[str, Any] = {"has_keys": [], "key_equals": {}, "key_in": {}, "numeric_range": {}}

Evaluate = Callable[[dict[str, Any]], Evaluation]


class Possibilities:
    """Finds the values of hidden arguments that can change a decision of one engine."""

    def __init__(self, snapshots: Iterable[Snapshot]) -> None:
        self._specs = [
            rule["match"]["args"]
            for snapshot in snapshots
            for rule in snapshot.data["rules"]
            if rule["match"]["args"] is not None
        ]
        self._values: dict[str, list[Any]] = {}

    def evaluations(self, evaluate: Evaluate, args: PartialArgs) -> list[Evaluation] | None:
        """Evaluates every possibility that matters; None if there are more than MAX_TRIES."""
        found: list[Evaluation] = []
        waiting: list[dict[str, Any]] = [{}]
        while waiting:
            if len(found) + len(waiting) > MAX_TRIES:
                return None
            chosen = waiting.pop()
            tried = _chosen(args, chosen)
            evaluation = evaluate(tried)
            if not tried.asked:
                found.append(evaluation)
                continue
            key = min(tried.asked)
            values = self._of(key)
            waiting += [
                {**chosen, key: value}
                for value in values
                if value is not _ABSENT or key not in args.present
            ]
        return found

    def _of(self, key: str) -> list[Any]:
        values = self._values.get(key)
        if values is None:
            tests = [test for spec in self._specs for test in _tests(spec, key)]
            by_answers: dict[tuple[bool, ...], Any] = {}
            for value in self._candidates(key):
                args = {} if value is _ABSENT else {key: value}
                by_answers.setdefault(tuple(test(args) for test in tests), value)
            values = self._values[key] = list(by_answers.values())
        return values

    def _candidates(self, key: str) -> list[Any]:
        """Returns one value of each type, the literals of all rules, and numbers between these."""
        literals: list[Any] = []
        numbers: list[Decimal] = []
        for spec in self._specs:
            literals += [spec["key_equals"][key]] if key in spec["key_equals"] else []
            others = spec.get("key_not_equals", {})
            literals += [others[key]] if key in others else []
            literals += spec["key_in"].get(key, [])
            bounds = spec["numeric_range"].get(key, {})
            numbers += [Decimal(bound) for bound in bounds.values() if bound is not None]
        numbers += [Decimal(each) for each in literals if is_number(each)]
        other = "?"
        while other in literals:
            other += "?"
        # A present value comes first: a hidden key was usually present.
        return [other, *literals, None, True, False, *_around(sorted(numbers)), _ABSENT]


def _around(numbers: list[Decimal]) -> list[Decimal]:
    if not numbers:
        return [Decimal(0)]
    between = [(low + high) / 2 for low, high in pairwise(numbers)]
    low, high = numbers[0], numbers[-1]
    return [*numbers, *between, low - 1 - abs(low), high + 1 + abs(high)]


def _tests(spec: dict[str, Any], key: str) -> list[ArgsPredicate]:
    """Returns the predicates of a rule about this key."""
    found = []
    if key in spec["has_keys"]:
        found.append(args_predicate({**_NOTHING, "has_keys": [key]}))
    for clause in ("key_equals", "key_not_equals", "key_in", "numeric_range"):
        if key in spec.get(clause, {}):
            found.append(args_predicate({**_NOTHING, clause: {key: spec[clause][key]}}))
    return [test for test in found if test is not None]


def _chosen(args: PartialArgs, chosen: dict[str, Any]) -> PartialArgs:
    hides = args.hides
    given = {key: value for key, value in chosen.items() if value is not _ABSENT}
    return PartialArgs({**args, **given}, lambda key: key not in chosen and hides(key))


def with_args(call: Call, args: dict[str, Any]) -> Call:
    """Returns the call with other arguments, and with the hash of the real ones."""
    return replace(call, args=args)
