"""Replies are found in a server's messages in any formatting, of any size, cut anywhere."""

import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subluminal.adapters.mcp.replies import Reply, ServerMessage, replies_in
from subluminal.adapters.mcp_stdio.server_lines import LineKeeper


def reply(text):
    found = replies_in(ServerMessage(len(text), text))
    assert len(found) == 1
    return found[0]


@pytest.mark.parametrize(
    ("text", "id_", "result"),
    [
        (b'{"jsonrpc":"2.0","id":1,"result":{"a":1}}', 1, b'{"a":1}'),
        (b'{"jsonrpc":"2.0","id":"x-1","result":[]}', "x-1", b"[]"),
        (b'{"result":{"a":1},"jsonrpc":"2.0","id":7}', 7, b'{"a":1}'),
        (b'{"result":{"a":1},"jsonrpc":"2.0","id":7}\r', 7, b'{"a":1}'),
        (b'{"jsonrpc": "2.0", "id": 1, "result": {"a": 1}}', 1, b'{"a": 1}'),
        (b' {"id":1,"result":null}', 1, b"null"),
        (b'{"id":1,"result":{},"error":null}', 1, b"{}"),
        (b'{"id":1.5,"result":{}}', 1.5, b"{}"),
        (b'{"id":null,"result":{}}', None, b"{}"),
        (b'{"id":123456789012345678901234567890,"result":1}', 123456789012345678901234567890, b"1"),
        (b'{"id":"\\u0061","result":1}', "a", b"1"),
    ],
)
def test_a_result_is_found_in_any_order_and_spacing(text, id_, result):
    assert reply(text) == Reply(id_, len(text), result)


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        (b'{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"bad"}}', -32602, "bad"),
        (b'{"id":1,"error":{"code":"E1","message":"m"},"jsonrpc":"2.0"}', "E1", "m"),
        (b'{"id":1,"result":null,"error":{"code":1,"message":"m"}}', 1, "m"),
        (b'{"jsonrpc":"2.0","id":1,"error":"boom"}', None, ""),
        (b'{"jsonrpc":"2.0","id":1,"error":{"code":1.5,"message":["x"]}}', None, ""),
        (b'{"jsonrpc":"2.0","id":1,"error":{"code":true,"message":"\xff"}}', None, ""),
        (b'{"jsonrpc":"2.0","id":1,"error":{"code":%d,"message":"m"}}' % 10**40, None, "m"),
        (b'{"jsonrpc":"2.0","id":1,"error":{"message":"\\ud800"}}', None, ""),
    ],
)
def test_a_json_rpc_error_is_an_error_with_its_code(text, code, message):
    found = reply(text)
    assert found.is_error
    assert (found.error_code, found.error_message) == (code, message)


@pytest.mark.parametrize(
    ("text", "is_error"),
    [
        (b'{"jsonrpc":"2.0","id":1,"result":{"content":[],"isError":true}}', True),
        (b'{"jsonrpc":"2.0","id":1,"result":{"isError" : \t true,"content":[]}}', True),
        (b'{"result":{"content":[],"isError":\ttrue},"jsonrpc":"2.0","id":1}', True),
        (b'{"jsonrpc":"2.0","id":1,"result":{"isError":false}}', False),
        (b'{"jsonrpc":"2.0","id":1,"result":{"structuredContent":{"isError":true}}}', False),
        (b'{"jsonrpc":"2.0","id":1,"result":{"text":"\\"isError\\":true"}}', False),
        (b'{"jsonrpc":"2.0","id":1,"result":{"isError":true,"x":"\xff"}}', True),
    ],
)
def test_a_tool_error_is_told_from_text_that_speaks_of_one(text, is_error):
    assert reply(text).is_error is is_error


@pytest.mark.parametrize(
    ("result", "state"),
    [
        ('{"resultType":"input_required","requestState":"s"}', "s"),
        ('{"resultType":"input_required","inputRequests":{}}', ""),
        ('{"resultType":"complete","text":"input_required"}', None),
    ],
)
def test_a_result_that_asks_for_input_is_not_an_end(result, state):
    text = f'{{"jsonrpc":"2.0","id":1,"result":{result}}}'.encode()
    assert reply(text).request_state == state


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"Server listening",
        b'{"jsonrpc":"2.0","id":0,"method":"roots/list"}',
        b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1}}',
        b'{"jsonrpc":"2.0","id":1,"method":"x","result":{}}',
        b'{"result":{}}',
        b'{"id":1}',
        b'{"jsonrpc":"2.0","id":007,"result":{}}',
        b'{"jsonrpc":"2.0","id":"\xff","result":{}}',
        b'{"jsonrpc":"2.0","id":"\x01","result":{}}',
        b'{"id":1,"result":}',
        b"[1,2]",
        b"{" * 2000,
        b"[" * 2000,
    ],
)
def test_messages_that_are_not_answers_have_no_replies(text):
    assert replies_in(ServerMessage(len(text), text)) == []


def test_every_answer_of_a_batch_is_found():
    text = b'[{"id":1,"result":1},{"id":2,"error":{"code":5,"message":"m"}},{"method":"x"}]'
    assert [(each.id, each.is_error) for each in replies_in(ServerMessage(len(text), text))] == [
        (1, False),
        (2, True),
    ]


def kept(max_bytes, chunks, wanted=True):
    keeper = LineKeeper(max_bytes)
    return [line for chunk in chunks for line in keeper.feed(chunk, wanted=wanted)]


def chunked(data, size):
    return [data[at : at + size] for at in range(0, len(data), size)]


ORDERS = {
    "python": b'{"jsonrpc":"2.0","id":5,"result":{"content":[{"t":"%b"}],"isError":%b}}',
    "typescript": b'{"result":{"content":[{"t":"%b"}],"isError":%b},"jsonrpc":"2.0","id":5}',
    "json.dumps": b'{"jsonrpc": "2.0", "id": 5, "result": {"c": [{"t": "%b"}], "isError" : %b}}',
    "id first": b'{"id":5,"jsonrpc":"2.0","result":{"c":"%b","isError":%b}}',
    "id last": b'{"jsonrpc":"2.0","result":{"c":"%b","isError":%b},"id":5}\r',
    "version last": b'{"id":5,"result":{"c":"%b","isError":%b}, "jsonrpc":"2.0" }',
}


@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS.keys())
@pytest.mark.parametrize("is_error", [True, False])
@pytest.mark.parametrize("size", [1, 7, 4096])
def test_a_large_answer_is_matched_by_its_edges(order, is_error, size):
    text = order % (b"y" * 5_000, b"true" if is_error else b"false")
    (line,) = kept(1_000, chunked(text + b"\n", size))
    assert line.text is None
    assert line.size == len(text)
    (found,) = replies_in(line)
    assert (found.id, found.is_error, found.result) == (5, is_error, None)
    assert found.stream_hash == hashlib.sha256(text).hexdigest()


@pytest.mark.parametrize(
    "text",
    [
        b'{"jsonrpc":"2.0","id":5,"method":"sampling/createMessage","params":"%b"}',
        b'{"jsonrpc":"2.0","method":"notifications/message","params":"%b"}',
        b'"%b"',
    ],
)
def test_a_large_line_that_is_not_an_answer_has_no_replies(text):
    (line,) = kept(1_000, [text % (b"y" * 5_000) + b"\n"])
    assert replies_in(line) == []


def test_a_line_that_began_when_no_call_was_open_is_not_kept():
    keeper = LineKeeper(1_000)
    assert list(keeper.feed(b'{"notification":', wanted=False)) == []
    assert list(keeper.feed(b"1}\n", wanted=True)) == []
    assert [line.text for line in keeper.feed(b"next\n", wanted=True)] == [b"next"]


@given(
    st.lists(st.binary(max_size=40).map(lambda b: b.replace(b"\n", b" ")), max_size=8),
    st.integers(1, 50),
    st.integers(1, 30),
)
def test_lines_are_the_same_wherever_chunks_are_cut(lines, size, max_bytes):
    data = b"".join(line + b"\n" for line in lines)
    found = kept(max_bytes, chunked(data, size))
    assert [line.size for line in found] == [len(line) for line in lines]
    for line, text in zip(found, lines, strict=True):
        if len(text) <= max_bytes:
            assert line.text == text
        else:
            assert (line.text, line.stream_hash) == (None, hashlib.sha256(text).hexdigest())


def test_the_kept_part_of_a_large_line_does_not_leak_into_the_next():
    big = json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"isError": True, "x": "y" * 3000}})
    small = json.dumps({"jsonrpc": "2.0", "id": 2, "result": {"x": "y" * 3000}})
    lines = kept(1_000, [big.encode() + b"\n" + small.encode() + b"\n"])
    assert [replies_in(line)[0].is_error for line in lines] == [True, False]


@pytest.mark.parametrize(
    ("result", "is_error"),
    [
        (b'{"isError":true,"isError":false}', False),
        (b'{"structuredContent":{"isError":true},"isError":false}', False),
        (b'{"isError":true,"text":",\\"isError\\":false}"}', True),
        (b'{"isError":true,"structuredContent":{"a":1,"isError":false}}', True),
    ],
)
@pytest.mark.parametrize(
    "line", [b'{"jsonrpc":"2.0","id":1,"result":%b}', b'{"result":%b,"jsonrpc":"2.0","id":1}']
)
def test_the_last_is_error_of_a_result_counts(line, result, is_error):
    assert reply(line % result).is_error is is_error


@pytest.mark.parametrize(
    "text",
    [
        b'{"result":{"a":{},"jsonrpc":"2.0","id":7}}',
        b'{"result":{},"jsonrpc":"2.0","id":007}',
        b'{"result":{"x":1234567890123}',
    ],
)
def test_an_id_that_only_seems_to_be_the_answers_is_none(text):
    assert replies_in(ServerMessage(len(text), text)) == []


@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS.keys())
@pytest.mark.parametrize("is_error", [True, False])
def test_no_more_of_a_result_is_kept_than_asked_for(order, is_error):
    text = order % (b"y" * 5_000, b"true" if is_error else b"false")
    whole = reply(text)
    (found,) = replies_in(ServerMessage(len(text), text), 100)
    assert (len(found.result), found.result) == (100, whole.result[:100])
    assert (found.id, found.size, found.is_error) == (5, len(text), is_error)
    assert replies_in(ServerMessage(len(text), text), len(whole.result)) == [whole]
