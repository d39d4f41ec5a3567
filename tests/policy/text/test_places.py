"""Where values stand in a file, and problems reported at those places."""

import pytest

from subluminal.contracts.shape import Misfit
from subluminal.policy.text.places import Node, Place, path_text, problem_of


def tree() -> Node:
    root, child = Node(Place(1, 1)), Node(Place(2, 5))
    root.children["a"] = child
    root.keys["a"] = Place(2, 1)
    return root


def test_a_value_and_its_key_have_places_of_their_own():
    assert tree().find(("a",)) == (2, 5)
    assert tree().find(("a",), at_key=True) == (2, 1)


def test_what_is_not_known_has_the_place_of_what_contains_it():
    assert tree().find(("a", "b", 3)) == (2, 5)
    assert tree().find(("x",), at_key=True) == (1, 1)


def test_below_steps_into_a_value_as_far_as_it_is_known():
    assert tree().below("a").place == (2, 5)
    assert tree().below("x").place == (1, 1)


def told(misfit: Misfit) -> tuple[str, str | None]:
    problem = problem_of(misfit, Node(Place(3, 1)), "f", lambda path: ("it: ", path))
    return problem.message, problem.hint


@pytest.mark.parametrize(
    ("misfit", "message"),
    [
        (Misfit(("a", "b"), "wrong"), "it: `a.b`: wrong"),
        (Misfit((), "wrong"), "it: wrong"),
        (Misfit(("a", "b"), "unknown field `b`", at_key=True), "it: unknown field `b` in `a`"),
        (Misfit(("b",), "unknown field `b`", at_key=True), "it: unknown field `b`"),
        (Misfit(("a", 2), "missing field `b`"), "it: missing field `b` in `a[2]`"),
        (Misfit((), "missing field `b`"), "it: missing field `b`"),
        (Misfit(("kind",), "unknown rule kind `x`"), "it: unknown rule kind `x`"),
    ],
)
def test_a_misfit_is_told_with_its_field(misfit, message):
    assert told(misfit)[0] == message


def test_words_that_were_booleans_once_get_a_hint():
    wrong = "expected true or false, got a string `yes`"
    assert (
        told(Misfit(("a",), wrong))[1] == "in YAML 1.2 `yes` is a string: write `true` or `false`"
    )
    assert told(Misfit(("a",), wrong.replace("yes", "perhaps")))[1] is None
    assert told(Misfit(("a",), "expected true or false, got nothing"))[1] is None


def test_paths_read_as_people_write_them():
    assert path_text(("rules", 2, "effect", "suggest")) == "rules[2].effect.suggest"
