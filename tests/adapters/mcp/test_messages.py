"""What a client's message means, and which messages two readers may read differently."""

import json

import pytest
from msgspec import UNSET
from tests.requirements import requirement

from subluminal.adapters.mcp.messages import (
    Ambiguous,
    Batch,
    CallMessage,
    Cancellation,
    ListRequest,
    Other,
    classify,
    id_key,
)
from subluminal.canonical import args_hash, parse

CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "rm"}}


def call_text(**changes):
    return json.dumps({**CALL, **changes}).encode()


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"\n",
        b"\r\n",
        b"  \t \n",
        b"hello",
        b"42",
        b'"tools/call"',
        b"null\n",
        b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}\n',
        b'{"jsonrpc":"2.0","id":"d","method":"server/discover"}\r\n',
        b'{"jsonrpc":"2.0","id":0,"result":{"roots":[]}}',
        b'{"jsonrpc":"2.0","id":7,"error":{"code":-1,"message":"no"}}',
        b'{"jsonrpc":"2.0","method":"notifications/initialized"}',
        b'{"jsonrpc":"2.0","method":"notifications/cancelled"}',
        b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"reason":"x"}}',
        b"[]",
        b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]',
        b'{"weird":true}',
        b"\xff\xfe\xfd",
    ],
)
def test_other_messages_are_passed_on_without_inspection(line):
    assert isinstance(classify(line), Other)


@requirement("7.4:shared-hash")
def test_a_call_is_read_with_its_name_arguments_and_canonical_text():
    message = classify(
        b' {"id":"a","method":"tools\\/call","params":{"arguments":{"b":1.50,"a":[]},'
        b'"name":"r\\u006d","_meta":{"callId":"c"}},"jsonrpc":"2.0"} \r\n'
    )
    assert isinstance(message, CallMessage)
    assert (message.id, message.name, message.meta) == ("a", "rm", {"callId": "c"})
    assert message.args_text == b'{"a":[],"b":1.5}'
    assert message.request_state is None
    assert args_hash(message.args) == args_hash({"b": 1.5, "a": []})


@requirement("6.1:key-order")
def test_key_order_and_spacing_do_not_change_what_is_hashed():
    one = classify(call_text(params={"name": "t", "arguments": {"a": 1, "b": {"c": 2, "d": 3}}}))
    two = classify(
        b'{"method":"tools/call","id":1,"params":{"arguments":'
        b'{ "b":{"d":3.0, "c":2e0},"a":1 },"name":"t"},"jsonrpc":"2.0"}'
    )
    assert isinstance(one, CallMessage)
    assert isinstance(two, CallMessage)
    assert one.args_text == two.args_text


@pytest.mark.parametrize("params", [{"name": "t"}, {"name": "t", "arguments": None}])
def test_missing_and_null_arguments_are_an_empty_object(params):
    message = classify(call_text(params=params))
    assert isinstance(message, CallMessage)
    assert message.args_text == b"{}"


def test_a_call_without_an_id_is_a_call_all_the_same():
    message = classify(b'{"jsonrpc":"2.0","method":"tools/call","params":{"name":"rm"}}')
    assert isinstance(message, CallMessage)
    assert message.id is UNSET


@pytest.mark.parametrize(
    ("params", "state"),
    [
        ({"requestState": "s"}, "s"),
        ({"requestState": "s", "inputResponses": {}}, "s"),
        ({"inputResponses": {}}, ""),
        ({"requestState": 5}, None),
    ],
)
def test_the_next_round_of_a_call_is_known_by_its_state_or_its_answers(params, state):
    message = classify(call_text(params={"name": "t", **params}))
    assert isinstance(message, CallMessage)
    assert message.request_state == state


@pytest.mark.parametrize(
    ("reason", "is_timeout"),
    [
        ("SdkError: Request timed out", True),
        ("timeout", True),
        ("AbortError: user-cancel", False),
        ("MCP response future dropped", False),
        (None, False),
        (5, False),
    ],
)
def test_a_cancellation_says_whether_time_ran_out(reason, is_timeout):
    text = json.dumps(
        {"method": "notifications/cancelled", "params": {"requestId": 2, "reason": reason}}
    )
    assert classify(text.encode()) == Cancellation(2, is_timeout)


AMBIGUOUS = {
    "duplicate method": b'{"method":"ping","method":"tools/call","id":1,"params":{"name":"rm"}}',
    "duplicate escaped": b'{"method":"ping","\\u006dethod":"tools/call","id":1}',
    "duplicate name": b'{"method":"tools/call","id":1,"params":{"name":"a","name":"rm"}}',
    "duplicate deep": b'{"method":"tools/call","id":1,"params":{"name":"a","arguments":{"x":{"y":1,"y":2}}}}',
    "lone surrogate": b'{"method":"tools/call","id":1,"params":{"name":"a","arguments":{"x":"\\ud800"}}}',
    "NaN": b'{"method":"tools/call","id":1,"params":{"name":"a","arguments":{"x":NaN}}}',
    "comment": b'{"method":"tools/call",/* */"id":1,"params":{"name":"a"}}',
    "single quotes": b"{'method':'tools/call','id':1,'params':{'name':'rm'}}",
    "trailing comma": b'{"method":"tools/call","id":1,"params":{"name":"rm"},}',
    "bare word": b"{method:tools/call}",
    "byte order mark": b'\xef\xbb\xbf{"method":"tools/call","id":1,"params":{"name":"rm"}}',
    "record separator": b'\x1e{"method":"tools/call","id":1,"params":{"name":"rm"}}',
    "vertical tab": b'\x0b{"method":"tools/call","id":1,"params":{"name":"rm"}}',
    "no-break space": b'\xc2\xa0{"method":"tools/call","id":1,"params":{"name":"rm"}}',
    "two objects": b'{"method":"ping","id":1}{"method":"tools/call","id":2,"params":{"name":"rm"}}',
    "two objects, CR": b'{"method":"ping","id":1}\r{"method":"tools/call","id":2,"params":{"name":"rm"}}',
    "CR inside": b'{"method":"x","params":[\r{"method":"tools/call","id":2,"params":{"name":"rm"}}\r]}',
    "invalid UTF-8": b'{"method":"tools/call","id":1,"params":{"name":"r\xffm"}}',
    "UTF-16": '{"method":"tools/call","id":1,"params":{"name":"rm"}}'.encode("utf-16-le"),
    "too deep": b'{"method":"x","params":' + b"[" * 600 + b"]" * 600 + b"}",
    "case of method": b'{"Method":"tools/call","id":1,"params":{"name":"rm"}}',
    "long s in params": '{"method":"tools/call","id":1,"paramſ":{"name":"rm"},"params":{"name":"a"}}'.encode(),
    "case of name": b'{"method":"tools/call","id":1,"params":{"name":"a","NAME":"rm"}}',
    "case of arguments": b'{"method":"tools/call","id":1,"params":{"name":"a","Arguments":{}}}',
    "method in a list": b'{"method":["tools/call"],"id":1,"params":{"name":"rm"}}',
    "no params": b'{"method":"tools/call","id":1}',
    "params list": b'{"method":"tools/call","id":1,"params":["rm"]}',
    "name not a string": b'{"method":"tools/call","id":1,"params":{"name":["rm"]}}',
    "arguments list": b'{"method":"tools/call","id":1,"params":{"name":"rm","arguments":[1]}}',
    "arguments string": b'{"method":"tools/call","id":1,"params":{"name":"rm","arguments":"{}"}}',
    "batch in a batch": b'[[{"method":"tools/call","id":1,"params":{"name":"rm"}}]]',
    "batch with a number": b'[1,{"method":"tools/call","id":1,"params":{"name":"rm"}}]',
    "batch with a bad call": b'[{"method":"ping","id":7},{"method":"tools/call","id":1}]',
    "half a line": b'{"method":"tools/call","id":1,',
    "other half": b'"params":{"name":"rm"}}',
}


@pytest.mark.parametrize("line", AMBIGUOUS.values(), ids=AMBIGUOUS.keys())
def test_a_line_that_two_readers_may_read_differently_is_ambiguous(line):
    assert isinstance(classify(line), Ambiguous)


@pytest.mark.parametrize(
    ("name", "ids"),
    [
        ("duplicate method", [1]),
        ("lone surrogate", [1]),
        ("NaN", [1]),
        ("case of method", []),
        ("case of name", [1]),
        ("arguments list", [1]),
        ("batch with a bad call", [7, 1]),
        ("two objects", []),
        ("single quotes", []),
    ],
)
def test_an_ambiguous_line_still_tells_whom_to_answer_where_it_can(name, ids):
    message = classify(AMBIGUOUS[name])
    assert isinstance(message, Ambiguous)
    assert message.ids == ids


def test_an_ambiguous_answer_of_the_client_is_not_answered():
    """Its id belongs to the server: an error with that id would end another request of the client."""
    message = classify(b'{"jsonrpc":"2.0","id":3,"result":{"x":"\\ud800"}}')
    assert isinstance(message, Ambiguous)
    assert message.ids == []


def test_a_carriage_return_at_the_end_of_a_line_is_nothing_special():
    assert isinstance(classify(call_text() + b"\r\n"), CallMessage)


def test_a_batch_is_read_call_by_call():
    message = classify(
        b'[{"id":1,"method":"tools/call","params":{"name":"a"}},{"id":2,"method":"ping"},'
        b'{"method":"tools/call","params":{"name":"b"}},{"id":9,"result":{}},'
        b'{"method":"notifications/cancelled","params":{"requestId":1}}]'
    )
    assert isinstance(message, Batch)
    assert [call.name for call in message.calls] == ["a", "b"]
    assert message.cancellations == [Cancellation(1, False)]
    assert message.ids == [1, 2]


@pytest.mark.parametrize(
    ("request_text", "reply_text", "same"),
    [
        ("1", "1", True),
        ("1", "1.0", True),
        ("1", '"1"', False),
        ("1", "true", False),
        ("0", "false", False),
        ("null", "null", True),
        ('"a"', '"a"', True),
        ("1.5", "1.5", True),
        ("0.1", "0.1", True),
        ("12345678901234567890123", "12345678901234567890123", True),
        ("[1]", "[1]", True),
        ('{"a":1}', '{ "a": 1 }', True),
    ],
)
def test_request_and_answer_meet_under_one_key(request_text, reply_text, same):
    keys = [id_key(parse(text.encode()).value) for text in (request_text, reply_text)]
    assert (keys[0] == keys[1]) is same


@pytest.mark.parametrize(
    ("more", "meant"),
    [
        ({"id": 1}, ListRequest(1, "")),
        ({"id": "a", "params": {"cursor": "p2"}}, ListRequest("a", "p2")),
        ({"id": 1, "params": {"cursor": 3}}, ListRequest(1, "")),
        ({"id": 1, "params": []}, ListRequest(1, "")),
        ({}, Other()),
        ({"id": None}, Other()),
        ({"id": True}, Other()),
    ],
)
def test_a_question_for_the_tools_is_noted_and_passes(more, meant):
    line = json.dumps({"jsonrpc": "2.0", "method": "tools/list", **more}).encode()
    assert classify(line) == meant
    assert isinstance(classify(line), Other)
    assert classify(b"[" + line + b"]") == Other()
