"""Bytes to documents: encodings, JSON, and bytes that are not text."""

import pytest

from subluminal.contracts.limits import MAX_BUNDLE_BYTES
from subluminal.errors import InvalidInput
from subluminal.policy.text.reading import read_document, read_documents


def read(data: bytes, file: str = "f"):
    document, problems = read_document(data, file)
    assert problems == []
    return document.value


def first_problem(data: bytes, file: str = "f"):
    try:
        _, problems = read_document(data, file)
    except InvalidInput as error:
        problems = list(error.problems)
    return problems[0]


def test_json_and_yaml_give_the_same_value():
    assert read(b'{"a": [1, 1.5, "x", null, true]}') == read(b"a: [1, 1.5, x, null, true]")


def test_a_byte_order_mark_is_passed_over():
    assert read(b"\xef\xbb\xbfa: 1") == {"a": 1}
    assert read(b'\xef\xbb\xbf{"a": 1}') == {"a": 1}


def test_json_with_surrogate_pairs_is_read_although_libyaml_cannot():
    document, _ = read_document(b'{"a": "\\ud83d\\ude00", "b": 1}', "f")
    assert document.value == {"a": "\U0001f600", "b": 1}
    assert document.node.find(("b",)) == (0, 0)


def test_json_has_places():
    document, _ = read_document(b'{\n  "a": {"b": 1}\n}', "f")
    assert document.node.find(("a", "b")) == (2, 14)


def test_yaml_may_begin_with_a_brace():
    assert read(b"{a: 1, b: [x]}") == {"a": 1, "b": ["x"]}


def test_a_json_file_must_be_json():
    problem = first_problem(b'{"a": 1,}', "x.json")
    assert "not JSON" in problem.message


def test_duplicate_keys_in_json_are_told_with_their_place():
    assert str(first_problem(b'{"a": 1,\n "a": 2}', "x.json")) == "x.json:2:2: duplicate key `a`"


def test_a_json_number_that_would_change_is_refused():
    problem = first_problem(b'{"a": [1.0000000000000000001]}')
    assert problem.place == "f:1:8"
    assert "too many digits" in problem.message


def test_json_depth_is_bounded():
    problem = first_problem(b'{"a":' + b"[" * 40 + b"]" * 40 + b"}")
    assert "nested deeper than 32" in problem.message


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"", "f: the file is empty"),
        (b"# nothing but a comment\n", "f: the file is empty"),
        (b"a: 1\n---\nb: 1\n", "f:3:1: a second document (`---`) begins here"),
        (b"a: 1\nb: \xff\n", "f:2:4: not UTF-8"),
        (b"\xff\xfea\x00", "f:1:1: not UTF-8"),
        (b"a: 1\nb: x\x00y\n", "f:2:5: the character U+0000 is not allowed"),
        (b"{a: x\x00y}\n", "f:1:6: the character U+0000 is not allowed"),
        (b"a: \x1b[31m\n", "f:1:4: the character U+001B is not allowed"),
        ("a: x\u2028y\n".encode(), "f:1:5: the character U+2028 is not allowed"),
        ("a: x\x85y\n".encode(), "f:1:5: the character U+0085 is not allowed"),
        ("a: x\ufeffy\n".encode(), "f:1:5: the character U+FEFF is not allowed"),
        (b"x" * (MAX_BUNDLE_BYTES + 1), "f: larger than 4194304 bytes"),
    ],
)
def test_text_that_cannot_be_read_is_refused(data, told):
    assert str(first_problem(data)) == told


def test_several_documents_are_read_by_read_documents_only():
    documents, problems = read_documents(b"a: 1\n---\nb: 1\n", "f")
    assert [document.value for document in documents] == [{"a": 1}, {"b": 1}]
    assert problems == []
