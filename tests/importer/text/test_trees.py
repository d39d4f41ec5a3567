"""The trees say what other parsers say, and every value's span is its text."""

import json
import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.importer.generated import json_configs, toml_configs

from subluminal.errors import InvalidInput
from subluminal.importer.text.json_tree import Number, parse_json
from subluminal.importer.text.toml_tree import parse_toml
from subluminal.importer.text.tree import Kind, Node

TOML = """\
title = "x" # c
"quoted key" = 'lit # "'
a.b . "c d" = [ 1, [ "x,]", ], { y = "}" } ] # end
odt = 1979-05-27 07:32:00Z
float = 6.626e-34
multi = \"\"\"
[not.a.table] \\\"\"\" x = 1
\"\"\"\"
lit = '''
''two'' # no comment''''
empty = ""
[ t . 'u.v' ] # header
k = { m.n = true, o = [] }
[[arr]]
x = 1
[arr.sub]
y = 2
[[arr]]
x = 3
[[arr.deep]]
z = 4
"""


def plain(value: Any) -> Any:
    """A tree's value with numbers as Python reads them."""
    if isinstance(value, Number):
        return json.loads(value.raw)
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list) else value


def spans(node: Node) -> list[Node]:
    below = [m.node for m in node.members] + node.items
    return [node, *(deeper for child in below for deeper in spans(child))]


@given(json_configs(comments=False))
def test_json_is_read_as_the_standard_library_reads_it(data: bytes) -> None:
    text = data.decode("utf-8-sig")
    root = parse_json(text)
    assert repr(plain(root.value())) == repr(json.loads(text))
    for node in spans(root):
        assert repr(json.loads(node.raw)) == repr(plain(node.value()))


@given(st.text(st.sampled_from("{}[]\",:/*\\ \n01.-eEtruefalsnul'#x"), max_size=24))
def test_json_is_refused_where_the_standard_library_refuses_it(text: str) -> None:
    """Our own extras are comments and trailing commas; without them there is no difference."""
    try:
        wanted: Any = json.loads(text)
    except ValueError:
        wanted = None
    try:
        got = plain(parse_json(text).value())
    except InvalidInput:
        assert wanted is None
        return
    if wanted is None and got is not None:
        assert "/" in text or "," in text
    else:
        assert got == wanted


@given(toml_configs())
def test_toml_is_read_as_tomllib_reads_it(data: bytes) -> None:
    text = data.decode("utf-8-sig")
    assert repr(sorted_(parse_toml(text).value())) == repr(sorted_(tomllib.loads(text)))


def test_every_form_of_toml() -> None:
    root = parse_toml(TOML)
    assert sorted_(root.value()) == sorted_(tomllib.loads(TOML))
    crlf = TOML.replace("\n", "\r\n")
    assert sorted_(parse_toml(crlf).value()) == sorted_(tomllib.loads(crlf))
    for node in spans(root):
        if node.start >= 0:
            assert tomllib.loads(f"v = {node.raw}")["v"] == node.value()
        else:
            assert node.kind is not Kind.SCALAR


def sorted_(value: Any) -> Any:
    """Tables without their order: TOML may name them in any."""
    if isinstance(value, dict):
        return {key: sorted_(value[key]) for key in sorted(value)}
    return [sorted_(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("text", ["", " ", "{", '{"a"', '{"a":}', "[1,,2]", "[,]", "{,}", '"\x1f"'])
def test_broken_json_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        parse_json(text)
