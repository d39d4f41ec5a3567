"""A message too large to hold is scanned, and no lax reader finds another call in it."""

import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from subluminal.adapters.mcp.large import MAX_KEYS, MAX_WORD_BYTES, LargeScanner

PAD = "x" * 50


def scanned(text, size=None):
    scanner = LargeScanner()
    size = size or len(text) or 1
    for at in range(0, len(text), size):
        scanner.feed(text[at : at + size])
    return scanner.result()


ARGS = b'{"path": "/tmp/\\u00e9 \\" \\\\", "deep": [{"a": [1, -2.5e3, true, null, "\xe2\x82\xac"]}, {}]}'
CALL = (
    b' {"jsonrpc":"2.0", "id": "q\\n7" ,"method":"tools/call","params":{"_meta":{"callId":"c9"},"name":"write", "arguments": %b, "requestState":"s"}} \r\n'
    % ARGS
)


@pytest.mark.parametrize("size", range(1, len(CALL) + 1))
def test_a_call_is_the_same_wherever_chunks_are_cut(size):
    found = scanned(CALL, size)
    assert found.problem == ""
    assert (found.method, found.id, found.name) == ("tools/call", "q\n7", "write")
    assert found.args_hash == hashlib.sha256(ARGS).hexdigest()
    assert found.meta == {"callId": "c9"}
    assert found.request_state == "s"


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.text(), JSON, max_size=4), st.booleans(), st.integers(1, 64))
def test_any_arguments_that_json_can_say_are_hashed_as_they_stand(arguments, ascii_only, size):
    args = json.dumps(arguments, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    text = b'{"id":1,"method":"tools/call","params":{"name":"t","arguments":%b}}' % args
    found = scanned(text, size)
    assert found.problem == ""
    assert found.args_hash == hashlib.sha256(args).hexdigest()


@pytest.mark.parametrize(
    "arguments", [b"", b',"arguments":null', b',"arguments":{}', b',"arguments":{ }']
)
def test_missing_null_and_empty_arguments(arguments):
    found = scanned(b'{"id":1,"method":"tools/call","params":{"name":"t"%b}}' % arguments)
    assert found.problem == ""
    raw = b"{ }" if b" " in arguments else b"{}"
    assert found.args_hash == hashlib.sha256(raw).hexdigest()


@pytest.mark.parametrize(
    ("text", "method"),
    [
        (b'{"jsonrpc":"2.0","id":3,"result":{"content":[{"data":"AAAA"}]}}', UNSET),
        (b'{"method":"notifications/x","params":{"arguments":[1]}}', "notifications/x"),
        (b'{"method":"prompts/get","id":1,"params":{"name":"p","arguments":"s"}}', "prompts/get"),
        (b'{"method":"x","params":[1,2,{"a":"]}"}]}', "x"),
    ],
)
def test_other_large_messages_are_read_and_not_refused(text, method):
    for size in (1, 3, None):
        found = scanned(text, size)
        assert (found.problem, found.method) == ("", method)


CALL_RM = '{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"rm"}}'
REFUSED = {
    "comment hides a quote": '{"method":"x","params":{"a":[/*"*/],"b":1},"method":"tools/call"/*"*/}',
    "line comment": '{"method":"x","params":{"a":[1 //"\n]}}',
    "hash comment": '{"method":"x","params":{"a":[1 #"\n]}}',
    "single quotes hide a quote": '{"method":"x","params":{"a":[\'"\']},"id":1}',
    "single-quoted key": "{'method':'tools/call','params':{'name':'rm'}}",
    "bracket of the other kind": '{"method":"x","params":{"a":[}, "name":"rm"]}}',
    "raw control character": '{"method":"x","params":{"a":["\x01"]}}',
    "raw newline in a string": '{"method":"x","params":{"a":["\n"]}}',
    "escape that is none": '{"method":"x","params":{"a":["\\q"]}}',
    "escape of a newline": '{"method":"x","params":{"a":["\\\n"]}}',
    "short unicode escape": '{"method":"x","params":{"a":["\\u12"]}}',
    "NaN": '{"method":"x","params":{"a":[NaN]}}',
    "Infinity": '{"method":"x","params":{"a":[-Infinity]}}',
    "bare words": '{"method":"x","params":{"a":{key:1}}}',
    "carriage return before a call": '{"method":"x","params":{"a":[\r' + CALL_RM + "\r]}}",
    "carriage return outside": '{"method":"x",\r"params":{}}',
    "form feed": '{"method":"x",\x0c"params":{"a":[\x0c1]}}',
    "two objects": '{"method":"x"}' + CALL_RM,
    "after the end": '{"method":"x"} x',
    "batch": "[" + CALL_RM + "]",
    "scalar": '"' + PAD + '"',
    "byte order mark": "\ufeff" + CALL_RM,
    "duplicate method": '{"method":"x","method":"tools/call","params":{"name":"rm"}}',
    "duplicate escaped": '{"method":"x","\\u006dethod":"tools/call","params":{"name":"rm"}}',
    "duplicate params": '{"method":"tools/call","params":{"name":"a"},"params":{"name":"rm"}}',
    "duplicate name": '{"method":"tools/call","params":{"name":"a","na\\u006de":"rm"}}',
    "case of method": '{"method":"x","Method":"tools/call","params":{"name":"rm"}}',
    "case of name": '{"method":"tools/call","params":{"name":"a","Name":"rm"}}',
    "method not a string": '{"method":["tools/call"],"params":{"name":"rm"}}',
    "arguments string": '{"method":"tools/call","params":{"name":"rm","arguments":"{}"}}',
    "arguments long string": '{"method":"tools/call","params":{"name":"rm","arguments":"'
    + "y" * 9000
    + '"}}',
    "arguments list": '{"method":"tools/call","params":{"name":"rm","arguments":[]}}',
    "params string": '{"method":"tools/call","params":"rm"}',
    "trailing comma": '{"method":"x","params":{"a":1,}}',
    "trailing comma outside": '{"method":"x",}',
    "two commas": '{"method":"x",,"id":1}',
    "no colon": '{"method" "x"}',
    "lone surrogate in a key": '{"\\ud800":1,"method":"x"}',
    "too deep": '{"method":"x","params":{"a":' + "[" * 600 + "]" * 600 + "}}",
    "too many keys": "{" + ",".join(f'"k{n}":1' for n in range(MAX_KEYS + 1)) + "}",
    "long key": '{"' + "k" * (MAX_WORD_BYTES + 1) + '":1}',
    "long number": '{"id":' + "1" * (MAX_WORD_BYTES + 50) + "}",
    "does not end": '{"method":"x","params":{"a":[1,2',
    "string does not end": '{"method":"x","params":{"a":["1,2',
    "nothing": "   ",
}


@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED.keys())
@pytest.mark.parametrize("size", [1, 5, None])
def test_a_form_that_others_may_read_differently_is_refused(text, size):
    assert scanned(text.encode("utf-8", "surrogatepass"), size).problem


@pytest.mark.parametrize(
    "text",
    [
        b'{"meth\xffod":"tools/call"}',
        b'{"method":"x","params":{"a":["\xff"]}}',
        b'{"method":"x","params":{"a":["\xc3"]}}',
        b'{"method":"x","params":{"a":["\xed\xa0\x80"]}}',
        b'{"method":"x","params":{"a":["\\\xff"]}}',
    ],
)
@pytest.mark.parametrize("size", [1, None])
def test_what_is_not_utf8_is_refused(text, size):
    assert scanned(text, size).problem


def test_the_id_of_a_refused_message_is_told_where_it_was_seen():
    found = scanned(b'{"id":5,"method":"x","method":"y"}')
    assert (found.id, found.problem) == (5, "duplicate key 'method'")


def test_a_meta_that_is_too_large_is_not_kept():
    meta = json.dumps({"x": "y" * 50_000}).encode()
    found = scanned(b'{"method":"tools/call","params":{"_meta":%b,"name":"a"}}' % meta, 997)
    assert (found.problem, found.meta) == ("", {})
