"""The fast reader of calls gives the same result as the strict one, or None."""

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subluminal.adapters.mcp import messages
from subluminal.adapters.mcp.messages import CallMessage, classify
from subluminal.adapters.mcp.plain_call import read_plain_call

PLAIN = (
    b'{"jsonrpc":"2.0","id":7,"method":"tools/call",'
    b'"params":{"name":"rm","arguments":{"b":[1,{"x":null}],"a":"\xc3\xbc"},"_meta":{"k":1}}}'
)
SCALARS = (
    st.none() | st.booleans() | st.integers(-(10**25), 10**25) | st.text(max_size=5) | st.floats()
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)


def written(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(
        "utf-8", "surrogatepass"
    )


def closely(line):
    return messages._read_closely(line.strip(b" \t\r\n"))


def test_a_plain_call_is_read_at_once():
    assert read_plain_call(PLAIN) is not None
    assert classify(PLAIN + b"\r\n") == closely(PLAIN)


@given(
    st.fixed_dictionaries(
        {"jsonrpc": st.just("2.0"), "id": SCALARS, "method": st.just("tools/call")},
        optional={"extra": VALUES},
    ),
    st.fixed_dictionaries(
        {"name": st.text(max_size=5), "arguments": st.dictionaries(st.text(max_size=3), VALUES)},
        optional={"_meta": VALUES, "requestState": st.text(max_size=3), "task": VALUES},
    ),
    st.booleans(),
)
def test_both_ways_read_the_same(message, params, indented):
    document = {**message, "params": params}
    line = json.dumps(document).encode() if indented else written(document)
    assert classify(line) == closely(line)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"id":7', b'"id":7,"id":7'),
        (b'"id":7', b'"id": 7'),
        (b'"id":7', b'"id":7.0'),
        (b'"id":7', b'"id":true'),
        (b'"id":7', b'"id":null'),
        (b'"id":7,', b""),
        (b'"rm"', b'"\\u0072m"'),
        (b'"name"', b'"\\u006eame"'),
        (b'"name":"rm"', b'"name":"ls","name":"rm"'),
        (b'"name":"rm"', b'"name":"rm","Name":"ls"'),
        (b'"arguments":', b'"arguments":{},"arguments":'),
        (b'"x":null', b'"x":null,"x":null'),
        (b'"k":1', b'"k":1,"k":1'),
        (b'"x":null', b'"x":1234567890123456789012'),
        (b'"x":null', b'"x":1e3'),
        (b'"x":null', b'"x":-0'),
        (b'"x":null', b'"x":"\\/"'),
        (b'"2.0"', b'"1.0"'),
        (b"tools/call", b"tools\\/call"),
        (b'"x":null', b'"x":' + b"[" * 600 + b"]" * 600),
        (b"\xc3\xbc", b"\xff"),
        (b"\xc3\xbc", b"\r"),
    ],
)
def test_what_is_not_plain_is_left_to_the_close_way(old, new):
    line = PLAIN.replace(old, new, 1)
    assert line != PLAIN
    assert read_plain_call(line) is None
    assert classify(line) == closely(line)


def test_damaged_calls_are_read_alike():
    """Bytes are removed, doubled, exchanged: if the fast reader answers, the strict one agrees."""
    dice = random.Random(4)
    quick = 0
    for _ in range(20_000):
        line = bytearray(PLAIN)
        for _ in range(dice.randrange(1, 3)):
            at, size = dice.randrange(len(line)), dice.randrange(1, 9)
            piece = bytes(line[at : at + size])
            line[at : at + size] = dice.choice([b"", piece * 2, piece[::-1], b'"', b" ", b"0"])
        text = bytes(line)
        found = read_plain_call(text)
        if found is not None:
            quick += 1
            close = closely(text)
            assert isinstance(close, CallMessage)
            assert classify(text) == close
    assert quick > 200
