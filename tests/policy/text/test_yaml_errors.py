"""Text that is not YAML: each usual mistake gets its place and what helps."""

import pytest
from yaml import YAMLError

from subluminal.errors import InvalidInput
from subluminal.policy.text.yaml_errors import syntax_problem
from subluminal.policy.text.yaml_nodes import read_yaml


@pytest.mark.parametrize(
    ("text", "place", "message", "hint"),
    [
        ("a: [*]\n", "f:1:6", "alphabetic", "a pattern that begins with `*` needs quotes"),
        ("a:\n\t- b\n", "f:2:1", "a tab cannot indent", "indent with spaces"),
        ("a: @x\n", "f:1:4", "unexpected `@`", "a value that begins with `@` needs quotes"),
        ("a: b: c\n", "f:1:5", "mapping values", "a value that contains `: ` needs quotes"),
        ("a: 'x\n", "f:2:1", "end of stream", "a quote is not closed"),
        ("a: [1, 2\nb: 3\n", "f:2:2", "expected ',' or ']'", "a `]` or a comma is missing"),
        ("a: {b: 1\nc: 3\n", "f:2:2", "expected ',' or '}'", "a `}` or a comma is missing"),
        ("- a\nb: c", "f:2:1", "'-' indicator", "check the indentation of this line"),
        ('a: "\\d"\n', "f:1:5", "escape", "use single quotes"),
        ("[[", "f:2:1", "node content", "a bracket is not closed"),
        ("%YAML 3.0\n---\na", "f:1:1", "incompatible", None),
    ],
)
def test_a_mistake_is_told_with_its_place_and_a_hint(text, place, message, hint):
    with pytest.raises(InvalidInput) as raised:
        read_yaml(text, "f")
    problem = raised.value.problems[-1]
    assert problem.place == place
    assert problem.message.startswith("not YAML: ")
    assert message in problem.message
    assert (hint or "") in (problem.hint or "")


def test_an_error_without_a_place_is_told_without_one():
    assert str(syntax_problem(YAMLError(), "", "f")) == "f: not YAML: it cannot be read"
