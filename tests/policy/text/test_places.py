"""Where in a file things stand."""

from subluminal.policy.text.places import Node, Place


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
