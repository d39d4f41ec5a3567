"""Hidden arguments: one value for each combination of answers that predicates can give."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.differential import generated
from tests.policy.bundles import bundle, rule

from subluminal.canonical import args_hash
from subluminal.contracts.codec import bundle_of
from subluminal.contracts.identity import Identity
from subluminal.contracts.vocabulary import Layer
from subluminal.policy.compiling import compile_bundle
from subluminal.policy.counters import MemoryCounters
from subluminal.policy.evaluation import Call, Engine
from subluminal.policy.replay.known_args import PartialArgs
from subluminal.policy.replay.possible_args import MAX_TRIES, Possibilities, with_args
from subluminal.policy.replay.recorded import Said, said_by
from subluminal.policy.snapshot import Snapshot


class Asking:
    def __init__(self, snapshot: Snapshot) -> None:
        self.engine = Engine([(Layer.USER, snapshot)], Identity())
        self.possibilities = Possibilities([snapshot])

    def say(self, args: dict[str, Any]) -> Said:
        return said_by(self._evaluate(args))

    def possible(self, args: PartialArgs) -> set[Said] | None:
        found = self.possibilities.evaluations(self._evaluate, args)
        return None if found is None else {said_by(each) for each in found}

    def _evaluate(self, args: dict[str, Any]) -> Any:
        call = with_args(Call("git", "push", None, args_hash({})), args)
        return self.engine.evaluate(call, MemoryCounters(), wall_ms=0, mono_ms=0)


def denying(**clauses: Any) -> dict[str, Any]:
    return rule("deny", "-".join(clauses), match={"args": clauses})


def actions(found: set[Said] | None) -> set[str]:
    assert found is not None
    return {said.action.value for said in found}


def nothing_known(*present: str) -> PartialArgs:
    return PartialArgs({}, lambda _key: True, frozenset(present))


def test_each_kind_of_clause_can_go_either_way():
    for clauses in (
        {"has_keys": ["a"]},
        {"key_equals": {"a": "?"}},
        {"key_in": {"a": ["?", 1, [2], None]}},
        {"numeric_range": {"a": {"min": 1, "max": 1}}},
        {"numeric_range": {"a": {"max": -1e308}}},
    ):
        asking = Asking(compile_bundle(bundle(denying(**clauses))))
        assert actions(asking.possible(nothing_known())) == {"ALLOW", "BLOCK"}


def test_a_key_that_was_there_is_not_tried_as_absent():
    asking = Asking(compile_bundle(bundle(denying(has_keys=["a"]))))
    assert actions(asking.possible(nothing_known("a"))) == {"BLOCK"}


def test_two_rules_about_one_key_are_answered_together():
    """`env` is not both dev and prod, so one of the two always lets it pass."""
    both = denying(key_equals={"env": "dev"}, key_in={"env": ["prod"]})
    assert actions(Asking(compile_bundle(bundle(both))).possible(nothing_known())) == {"ALLOW"}


def test_numbers_between_two_bounds_are_tried():
    between = bundle(
        rule("allow", "low", match={"args": {"numeric_range": {"a": {"max": 1}}}}),
        rule("allow", "high", match={"args": {"numeric_range": {"a": {"min": 2}}}}),
        denying(numeric_range={"a": {"min": 0}}),
    )
    assert actions(Asking(compile_bundle(between)).possible(nothing_known())) == {"ALLOW", "BLOCK"}


def test_too_many_possibilities_are_none():
    keys = [f"k{number}" for number in range(MAX_TRIES.bit_length() + 1)]
    asking = Asking(
        compile_bundle(
            bundle(
                *[
                    rule("deny", key, match={"args": {"has_keys": [key]}}, enabled=True)
                    for key in keys
                ]
            )
        )
    )
    found = asking.possible(nothing_known())
    assert found is not None  # the first rule that matches settles it
    tagging = [rule("tag", key, match={"args": {"has_keys": [key]}}) for key in keys]
    assert Asking(compile_bundle(bundle(*tagging))).possible(nothing_known()) is None


@given(st.integers(0, 10**9))
def test_what_really_was_is_among_the_possible(seed: int):
    """For any policy and any arguments, whichever keys are hidden."""
    choose = generated.seeded(seed)
    asking = Asking(compile_bundle(bundle_of(generated.bundle(choose))))
    args = generated.args(choose) or {}
    gone = frozenset(choose.some(generated.KEYS, 1, 3))
    known = {key: value for key, value in args.items() if key not in gone}
    present = frozenset(args) & gone if choose.below(2) else frozenset()
    hides = (lambda key: key in present) if present else (lambda key: key in gone)
    if present:
        known = {key: value for key, value in args.items() if key not in present}
    found = asking.possible(PartialArgs(known, hides, present))
    assert found is None or asking.say(args) in found
