"""YAML text to plain values with their places, and mistakes in the text."""

import pytest
from yaml import YAMLError

from subluminal.contracts.limits import MAX_BUNDLE_DEPTH
from subluminal.errors import InvalidInput
from subluminal.policy.text import yaml_nodes
from subluminal.policy.text.yaml_nodes import MAX_PROBLEMS, read_yaml, syntax_problem


def value_of(text: str):
    documents, problems = read_yaml(text, "f")
    assert problems == []
    return documents[0].value


def problems_of(text: str) -> list[str]:
    try:
        _, problems = read_yaml(text, "f")
    except InvalidInput as error:
        problems = list(error.problems)
    return [str(problem) for problem in problems]


def test_plain_values_sequences_and_mappings_are_read():
    assert value_of('a: [1, x, "1", null]\nb:\n  c: |\n    text\n') == {
        "a": [1, "x", "1", None],
        "b": {"c": "text\n"},
    }


def test_quoted_scalars_are_strings():
    assert value_of("""[010, "010", '010', !!str 010, ! 010]""") == [10, "010", "010", "010", "010"]


def test_anchors_and_aliases_stand_for_whole_values():
    assert value_of("a: &x {k: [1]}\nb: *x\nc: &y 3\nd: *y") == {
        "a": {"k": [1]},
        "b": {"k": [1]},
        "c": 3,
        "d": 3,
    }


def test_an_alias_may_be_a_key_if_it_is_a_string():
    assert value_of("- &k name\n- {*k : 1}") == ["name", {"name": 1}]


def test_a_second_anchor_of_a_name_takes_its_place():
    assert value_of("[&a 1, *a, &a 2, *a]") == [1, 1, 2, 2]


def test_anchors_do_not_reach_into_the_next_document():
    assert problems_of("&a 1\n---\n*a\n") == ["f:3:1: unknown alias `*a`"]


def test_several_documents_are_read():
    documents, _ = read_yaml("a: 1\n---\nb: 2\n", "f")
    assert [document.value for document in documents] == [{"a": 1}, {"b": 2}]


def test_places_are_those_of_the_text():
    documents, _ = read_yaml("a:\n  - b: 1\n    c: 2\n", "f")
    node = documents[0].node
    assert node.find(("a", 0, "c")) == (3, 8)
    assert node.find(("a", 0, "c"), at_key=True) == (3, 5)


def test_a_problem_inside_an_alias_is_placed_at_its_anchor():
    documents, _ = read_yaml("a: &x\n  k: 1\nb: *x\n", "f")
    assert documents[0].node.find(("b", "k")) == (2, 6)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: 1\na: 2\n", "f:2:1: duplicate key `a`"),
        ('a: 1\n"a": 2\n', "f:2:1: duplicate key `a`"),
        ("1: a\n", "f:1:1: a key must be a string"),
        ("true: a\n", "f:1:1: a key must be a string"),
        ("? [a]\n: b\n", "f:1:3: a key must be a string"),
        ("- &a 1\n- {*a : 2}\n", "f:1:3: a key must be a string"),
        ("a: &x {k: 1}\nb: {<<: *x}\n", "f:2:5: merge keys (`<<`) are not supported"),
        ("a: !x 1\n", "f:1:4: tags such as `!x` are not supported"),
        (
            "a: !!python/object:os.system x\n",
            "f:1:4: tags such as `tag:yaml.org,2002:python/object:os.syste` are not supported",
        ),
        ("a: !!map {}\n", "f:1:4: tags such as `tag:yaml.org,2002:map` are not supported"),
        ("a: !!int 3\n", "f:1:4: tags such as `tag:yaml.org,2002:int` are not supported"),
        ("a: ! [1]\n", "f:1:4: tags such as `!` are not supported"),
        ("a: *nope\n", "f:1:4: unknown alias `*nope`"),
        ("a: &x [*x]\n", "f:1:8: the alias `*x` is inside its own anchor"),
        ("a: .inf\n", "f:1:4: JSON has no number `.inf`"),
        ("%YAML 1.1\n---\na: 1\n", "f:1:1: only YAML 1.2 is supported"),
    ],
)
def test_what_is_ambiguous_or_more_than_data_is_refused(text, problem):
    assert problem in problems_of(text)


def test_a_quoted_merge_key_is_an_ordinary_key():
    assert value_of('{"<<": 1}') == {"<<": 1}


def test_yaml_1_2_may_be_declared():
    assert value_of("%YAML 1.2\n---\na: 1\n") == {"a": 1}


def test_the_first_of_duplicate_keys_stays():
    documents, problems = read_yaml("a: 1\na: 2\n", "f")
    assert documents[0].value == {"a": 1}
    assert problems[0].hint == "remove one of the two: the first is on line 1"


def test_many_problems_are_told_at_once():
    assert len(problems_of("a: 1\na: 2\nb: !x y\nc: .nan\n")) == 3


def test_reading_stops_at_too_many_problems():
    assert len(problems_of("- .nan\n" * 500)) == MAX_PROBLEMS


def test_depth_is_bounded_before_anything_recurses():
    deep = "[" * 2_000_000
    assert problems_of(deep) == [f"f:1:{MAX_BUNDLE_DEPTH + 1}: nested deeper than 32 levels"]
    assert value_of("[" * MAX_BUNDLE_DEPTH + "]" * MAX_BUNDLE_DEPTH)


def test_aliases_cannot_deepen_past_the_bound():
    lines = ["- &a0 [1]"] + [f"- &a{n} [*a{n - 1}]" for n in range(1, 40)]
    assert "nested deeper" in problems_of("\n".join(lines))[0]


def test_an_alias_bomb_is_refused_by_what_it_stands_for():
    lines = ['- &a0 ["lol"]'] + [f"- &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    assert problems_of("\n".join(lines))[0].endswith(
        "750000 values, counting what aliases stand for"
    )


def test_the_number_of_values_is_bounded(monkeypatch):
    monkeypatch.setattr(yaml_nodes, "MAX_VALUES", 3)
    assert problems_of("[1, 2, 3, 4]") == [
        "f:1:11: more than 3 values, counting what aliases stand for"
    ]


@pytest.mark.parametrize(
    ("text", "place", "message", "hint"),
    [
        ("a: [*]\n", "f:1:6", "alphabetic", "a pattern that begins with `*` needs quotes"),
        ("a:\n\t- b\n", "f:2:1", "a line is indented with a tab", "indent with spaces"),
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


def test_an_error_without_a_place_is_reported_without_one():
    assert str(syntax_problem(YAMLError(), "", "f")) == "f: not YAML: the text cannot be read"
