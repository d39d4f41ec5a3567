"""Every way in which hidden arguments could make a difference to a policy.

Predicates look at one top-level key each. So for a hidden key it is enough to try one value for
each combination of answers that the policies' predicates on that key can give.
"""

from collections.abc import Callable, Iterable
from decimal import Decimal
from itertools import pairwise
from typing import Any

from subluminal.policy.evaluation import Call, Evaluation
from subluminal.policy.predicates import ArgsPredicate, args_predicate, is_number
from subluminal.policy.replay.known_args import PartialArgs
from subluminal.policy.snapshot import Snapshot

MAX_TRIES = 64
"""Past so many combinations nobody can say what the policy would have done."""

_ABSENT = object()
_NOTHING: dict[str, Any] = {"has_keys": [], "key_equals": {}, "key_in": {}, "numeric_range": {}}

Evaluate = Callable[[dict[str, Any]], Evaluation]


class Possibilities:
    """The values that are worth trying, for the policies of one engine."""

    def __init__(self, snapshots: Iterable[Snapshot]) -> None:
        self._specs = [
            rule["match"]["args"]
            for snapshot in snapshots
            for rule in snapshot.data["rules"]
            if rule["match"]["args"] is not None
        ]
        self._values: dict[str, list[Any]] = {}

    def evaluations(self, evaluate: Evaluate, args: PartialArgs) -> list[Evaluation] | None:
        """The evaluation for every possibility that matters; None if there are too many."""
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
            # No test tells apart what is there from what is not where no rule asks for the key.
            values = self._values[key] = list(by_answers.values())
        return values

    def _candidates(self, key: str) -> list[Any]:
        """One value of every kind, every literal that a rule names, and what lies between."""
        literals: list[Any] = []
        numbers: list[Decimal] = []
        for spec in self._specs:
            literals += [spec["key_equals"][key]] if key in spec["key_equals"] else []
            literals += spec["key_in"].get(key, [])
            bounds = spec["numeric_range"].get(key, {})
            numbers += [Decimal(bound) for bound in bounds.values() if bound is not None]
        numbers += [Decimal(each) for each in literals if is_number(each)]
        other = "?"
        while other in literals:
            other += "?"
        # Something is there by preference: a key that was hidden was most often there.
        return [other, *literals, None, True, False, *_around(sorted(numbers)), _ABSENT]


def _around(numbers: list[Decimal]) -> list[Decimal]:
    if not numbers:
        return [Decimal(0)]
    between = [(low + high) / 2 for low, high in pairwise(numbers)]
    low, high = numbers[0], numbers[-1]
    return [*numbers, *between, low - 1 - abs(low), high + 1 + abs(high)]


def _tests(spec: dict[str, Any], key: str) -> list[ArgsPredicate]:
    """The clauses of a rule that look at this key."""
    found = []
    if key in spec["has_keys"]:
        found.append(args_predicate({**_NOTHING, "has_keys": [key]}))
    for clause in ("key_equals", "key_in", "numeric_range"):
        if key in spec[clause]:
            found.append(args_predicate({**_NOTHING, clause: {key: spec[clause][key]}}))
    return [test for test in found if test is not None]


def _chosen(args: PartialArgs, chosen: dict[str, Any]) -> PartialArgs:
    hides = args.hides
    given = {key: value for key, value in chosen.items() if value is not _ABSENT}
    return PartialArgs({**args, **given}, lambda key: key not in chosen and hides(key))


def with_args(call: Call, args: dict[str, Any]) -> Call:
    """The same call with other arguments; its hash is that of the real ones."""
    return Call(call.server_name, call.tool_name, args, call.args_hash)
