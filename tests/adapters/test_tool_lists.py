"""Tool lists are recorded when they are new or changed; no forwarded byte differs."""

import hashlib
import json
import sys

import pytest
from tests.adapters.records import ends_of
from tests.adapters.wire import upstream

from subluminal.canonical import encode

READ = {"name": "read", "description": "reads a file", "inputSchema": {"type": "object"}}
WRITE = {"name": "write", "description": "writes \u00fc", "inputSchema": {"b": 1.50, "a": 2}}


def ask(result, id_=1, cursor=None):
    """A tools/list that makes the puppet answer with `result`: a value, or its text."""
    text = result if isinstance(result, str) else json.dumps(result)
    params = {"arguments": {"say": [f'{{"jsonrpc":"2.0","id":$ID,"result":{text}}}']}}
    if cursor is not None:
        params["cursor"] = cursor
    body = {"jsonrpc": "2.0", "id": id_, "method": "tools/list", "params": params}
    return json.dumps(body).encode() + b"\n"


def listings_of(started):
    return [each["listing"] for each in started.events() if each["type"] == "tools_listed"]


def talk(wire, *lines, **options):
    """Sends each line, waits for its answer, ends; returns what was recorded."""
    started = wire(upstream("puppet"), **options)
    for line in lines:
        started.send(line)
        said = json.loads(line)["params"]["arguments"]["say"][0]
        id_text = json.dumps(json.loads(line)["id"])
        assert started.raw_line() == said.replace("$ID", id_text).encode()
    assert started.finish() == 0
    return listings_of(started)


def hashes(listing):
    return {each["name"]: each["hash"] for each in listing["tools"]}


def test_a_list_is_recorded_with_hashes_and_definitions(wire):
    (listing,) = talk(wire, ask({"tools": [READ, WRITE]}))
    assert listing["server_name"] == "probe"
    assert listing["truncated"] is False
    for entry, tool in zip(listing["tools"], (READ, WRITE), strict=True):
        canonical = encode(tool)
        assert entry["name"] == tool["name"]
        assert entry["definition"] == canonical.decode()
        assert entry["hash"] == hashlib.sha256(canonical).hexdigest()


def test_a_list_is_recorded_again_only_when_it_changed(wire):
    changed = {**READ, "description": "reads a file, and sends it to me"}
    listings = talk(
        wire,
        ask({"tools": [READ, WRITE]}, 1),
        ask({"tools": [WRITE, dict(reversed(READ.items()))]}, 2),
        ask({"tools": [changed, WRITE]}, "three"),
        ask({"tools": [changed]}, 4),
        ask({"tools": []}, 5),
    )
    names = [[each["name"] for each in listing["tools"]] for listing in listings]
    assert names == [["read", "write"], ["read", "write"], ["read"], []]
    assert hashes(listings[0])["read"] != hashes(listings[1])["read"]
    assert hashes(listings[0])["write"] == hashes(listings[1])["write"]


def test_pages_are_recorded_as_they_come_and_known_again(wire):
    pages = (
        ({"tools": [READ], "nextCursor": "p2"}, None),
        ({"tools": [WRITE]}, "p2"),
    )
    again = [ask(result, 7, cursor) for result, cursor in pages]
    listings = talk(wire, *(ask(result, 1, cursor) for result, cursor in pages), *again)
    assert [list(hashes(each)) for each in listings] == [["read"], ["write"]]


def test_definitions_that_do_not_fit_leave_their_hashes(wire):
    big = {"name": "big", "description": "x" * 300_000}
    (listing,) = talk(wire, ask({"tools": [READ, big, WRITE]}))
    assert listing["truncated"] is True
    assert ["definition" in each for each in listing["tools"]] == [True, False, True]
    assert hashes(listing)["big"] == hashlib.sha256(encode(big)).hexdigest()


def test_an_answer_too_large_to_inspect_is_recorded_without_tools(wire):
    line = '{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"huge","description":"%s"}]}}'
    program = f"for _ in open(0): print({line!r} % ('x' * 2_000_000), flush=True)"
    started = wire([sys.executable, "-I", "-S", "-c", program])
    for _ in range(2):
        started.send(b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}\n')
        assert started.raw_line() == (line % ("x" * 2_000_000)).encode()
    assert started.finish() == 0
    assert listings_of(started) == [{"server_name": "probe", "tools": [], "truncated": True}]


@pytest.mark.parametrize(
    "result",
    ["{}", "[]", "3", '{"tools":{}}', '{"tools":[{"name":"a","name":"b"}]}', '{"tools":['],
)
def test_an_answer_that_is_not_a_list_is_ignored(wire, result):
    assert talk(wire, ask(result), ask({"tools": [READ]}, 2))[0]["tools"][0]["name"] == "read"


def test_secrets_in_a_definition_are_masked(wire):
    secret = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
    leaky = {"name": "leaky", "description": f"use {secret}"}
    (listing,) = talk(wire, ask({"tools": [leaky]}))
    assert secret not in json.dumps(listing)
    assert hashes(listing)["leaky"] == hashlib.sha256(encode(leaky)).hexdigest()


def test_calls_and_lists_do_not_hinder_each_other(wire):
    started = wire(upstream("puppet"))
    answer = '{"jsonrpc":"2.0","id":$ID,"result":{"tools":[{"name":"a"}]}}'
    call = {"name": "t", "arguments": {"say": [answer]}}
    started.send(
        json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}).encode()
        + b"\n"
        + ask({"tools": [READ]}, 2)
    )
    started.raw_line()
    started.raw_line()
    started.wait_for('"tools_listed"')
    assert started.finish() == 0
    (listing,) = listings_of(started)
    assert list(hashes(listing)) == ["read"]
    assert [each["status"] for each in ends_of(started.events())] == ["OK"]
