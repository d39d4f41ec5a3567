"""No variant of a denied call that a lax reader would execute gets past a policy."""

import json
import random

import pytest
from tests.adapters.policies import bundle, deny, snapshot
from tests.adapters.readers import executed, executed_by_node
from tests.adapters.records import calls_of
from tests.adapters.streams import mutated
from tests.adapters.wire import upstream
from tests.requirements import requirement

from subluminal.adapters.mcp.large import LargeScanner

RM = '{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"rm","arguments":{}}}'
ASK = '"jsonrpc":"2.0","id":9'
TO_RM = '"params":{"name":"rm"}'

# Written with `@` where a large variant has its padding: a member of the top object.
VARIANTS: dict[str, str | bytes] = {
    "plain": f'{{{ASK},@"method":"tools/call",{TO_RM}}}',
    "notification": f'{{"jsonrpc":"2.0",@"method":"tools/call",{TO_RM}}}',
    "no version": f'{{@"method":"tools/call",{TO_RM}}}',
    "slash escaped": f'{{{ASK},@"method":"tools\\/call",{TO_RM}}}',
    "method escaped": f'{{{ASK},@"method":"\\u0074ools\\u002fcall",{TO_RM}}}',
    "key escaped": f'{{{ASK},@"m\\u0065thod":"tools/call",{TO_RM}}}',
    "name escaped": f'{{{ASK},@"method":"tools/call","params":{{"name":"\\u0072m"}}}}',
    "name key escaped": f'{{{ASK},@"method":"tools/call","params":{{"n\\u0061me":"rm"}}}}',
    "spaces": f' \t {{ {ASK} ,@ "method" : "tools/call" , {TO_RM} }} \t',
    "duplicate method, last": f'{{{ASK},@"method":"ping","method":"tools/call",{TO_RM}}}',
    "duplicate method, first": f'{{{ASK},@"method":"tools/call","method":"ping",{TO_RM}}}',
    "duplicate method, escaped": f'{{{ASK},@"method":"ping","\\u006dethod":"tools/call",{TO_RM}}}',
    "duplicate params": f'{{{ASK},@"method":"tools/call","params":{{"name":"ls"}},{TO_RM}}}',
    "duplicate name, last": f'{{{ASK},@"method":"tools/call","params":{{"name":"ls","name":"rm"}}}}',
    "duplicate name, first": f'{{{ASK},@"method":"tools/call","params":{{"name":"rm","name":"ls"}}}}',
    "duplicate name, escaped": f'{{{ASK},@"method":"tools/call","params":{{"name":"ls","\\u006eame":"rm"}}}}',
    "Method": f'{{{ASK},@"Method":"tools/call",{TO_RM}}}',
    "METHOD after method": f'{{{ASK},@"method":"ping","METHOD":"tools/call",{TO_RM}}}',
    "Params": f'{{{ASK},@"method":"tools/call","params":{{"name":"ls"}},"Params":{{"name":"rm"}}}}',
    "Name": f'{{{ASK},@"method":"tools/call","params":{{"name":"ls","Name":"rm"}}}}',
    "long s": f'{{{ASK},@"method":"tools/call","params":{{"name":"ls"}},"paramſ":{{"name":"rm"}}}}',
    "method in a list": f'{{{ASK},@"method":["tools/call"],{TO_RM}}}',
    "NaN": f'{{{ASK},@"method":"tools/call","params":{{"name":"rm","arguments":{{"x":NaN}}}}}}',
    "Infinity": f'{{{ASK},@"method":"tools/call","params":{{"name":"rm","arguments":{{"x":-Infinity}}}}}}',
    "lone surrogate": f'{{{ASK},@"method":"tools/call","params":{{"name":"rm","arguments":{{"x":"\\ud800"}}}}}}',
    "surrogate in a key": f'{{{ASK},@"\\udfff":1,"method":"tools/call",{TO_RM}}}',
    "comment": f'{{{ASK},@/* hi */"method":"tools/call",{TO_RM}}}',
    "comment with a quote": f'{{{ASK},@"x":[/*"*/],"method":"tools/call",{TO_RM}/*"*/}}',
    "line comment": f'{{{ASK},@"method":"tools/call",{TO_RM}}} // bye',
    "single quotes": "{'id':9,@'method':'tools/call','params':{'name':'rm'}}",
    "quote in single quotes": f'{{{ASK},@"x":[\'"\'],"method":"tools/call",{TO_RM},"y":[\'"\']}}',
    "bare keys": '{id:9,@method:"tools/call",params:{name:"rm"}}',
    "trailing comma": f'{{{ASK},@"method":"tools/call",{TO_RM},}}',
    "byte order mark": f'\ufeff{{{ASK},@"method":"tools/call",{TO_RM}}}',
    "record separator": f'\x1e{{{ASK},@"method":"tools/call",{TO_RM}}}',
    "NUL": f'\x00{{{ASK},@"method":"tools/call",{TO_RM}}}',
    "vertical tab": f'\x0b{{{ASK},@"method":"tools/call",{TO_RM}}}',
    "form feed": f'{{{ASK},@"method":"tools/call",{TO_RM}}}\x0c',
    "no-break space": f'\xa0{{{ASK},@"method":"tools/call",{TO_RM}}}',
    "em space": f'\u2003{{{ASK},@"method":"tools/call",{TO_RM}}}',
    "line separator": f'{{{ASK},@"method":"ping"}}\u2028{RM}',
    "next line": f'{{{ASK},@"method":"ping"}}\x85{RM}',
    "CR between two": f'{{{ASK},@"method":"ping"}}\r{RM}',
    "CR hides a line": f'{{"jsonrpc":"2.0",@"method":"x","params":{{"a":[\r{RM}\r]}}}}',
    "CR hides, first line whole": f'{{"jsonrpc":"2.0",@"method":"x","params":[1,\r{RM}\r]}}',
    "FF hides a line": f'{{"jsonrpc":"2.0",@"method":"x","params":{{"a":[\x0c{RM}\x0c]}}}}',
    "two objects": f'{{"jsonrpc":"2.0",@"method":"ping"}}{RM}',
    "two objects, comma": f'{{"jsonrpc":"2.0",@"method":"ping"}},{RM}',
    "scalar, then object": f'1 {{{ASK},@"method":"tools/call",{TO_RM}}}',
    "batch": f'[{{{ASK},@"method":"tools/call",{TO_RM}}}]',
    "batch with others": f'[{{"id":1,@"method":"ping"}},{RM}]',
    "nested batch": f'[[{{{ASK},@"method":"tools/call",{TO_RM}}}]]',
    "deeply nested batch": "[" * 30 + f'{{{ASK},@"method":"tools/call",{TO_RM}}}' + "]" * 30,
    "batch with a number": f'[1,{{{ASK},@"method":"tools/call",{TO_RM}}}]',
    "arguments null": f'{{{ASK},@"method":"tools/call","params":{{"name":"rm","arguments":null}}}}',
    "arguments list": f'{{{ASK},@"method":"tools/call","params":{{"name":"rm","arguments":[1]}}}}',
    "arguments string": f'{{{ASK},@"method":"tools/call","params":{{"name":"rm","arguments":"x"}}}}',
    "id list": f'{{"id":[9],@"method":"tools/call",{TO_RM}}}',
    "id huge": f'{{"id":{"9" * 4000},@"method":"tools/call",{TO_RM}}}',
    "huge nesting": f'{{{ASK},@"x":{"[" * 700}{"]" * 700},"method":"tools/call",{TO_RM}}}',
    "result beside method": f'{{{ASK},@"result":{{}},"method":"tools/call",{TO_RM}}}',
    "bad byte in a key": f'{{{ASK},@"meth'.encode()
    + b"\xff"
    + f'od":"tools/call",{TO_RM}}}'.encode(),
    "UTF-16": f'{{{ASK},@"method":"tools/call",{TO_RM}}}'.encode("utf-16-le"),
    "UTF-32": f'{{{ASK},@"method":"tools/call",{TO_RM}}}'.encode("utf-32-be"),
    "control character in a string": f'{{{ASK},@"x":"\x01","method":"tools/call",{TO_RM}}}',
    "over two lines": f'{{{ASK},@"method":"tools/call",\n{TO_RM}}}',
    "in four lines": f'{{\n{ASK},@"method":"tools/call",\n{TO_RM}\n}}',
}
PADDING = b'"pad":{"x":["' + b"y" * 3_000 + b'",1,{"z":null}]},'


def small(variant: str | bytes) -> bytes:
    data = variant if isinstance(variant, bytes) else variant.encode("utf-8", "surrogatepass")
    return (
        data.replace(b"@\0\0\0", b"")
        .replace(b"\0\0\0@", b"")
        .replace(b"@\0", b"")
        .replace(b"@", b"")
    )


def large(variant: str | bytes) -> bytes:
    data = variant if isinstance(variant, bytes) else variant.encode("utf-8", "surrogatepass")
    if b"\0@" in data or b"@\0" in data:
        encoding = "utf-32-be" if b"\0\0\0@" in data else "utf-16-le"
        return data.replace("@".encode(encoding), PADDING.decode().encode(encoding))
    return data.replace(b"@", PADDING)


@pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS.keys())
def test_each_variant_is_a_danger(variant):
    """Otherwise this suite would prove nothing."""
    assert executed(small(variant) + b"\n")


@requirement("7.4:no-decisions")
@pytest.mark.parametrize("form", [small, large], ids=["small", "large"])
def test_none_of_them_reaches_the_server(wire, tmp_path, form):
    """All through one shim; between them, pings that must arrive."""
    log, playback = tmp_path / "log", tmp_path / "playback"
    playback.write_bytes(b"")
    config = "[limits]\nmax_inspect_bytes = 2048\n" if form is large else ""
    started = wire(upstream("recorder", log, playback), policy=bundle(deny("rm")), config=config)
    pings = []
    for number, variant in enumerate(VARIANTS.values()):
        pings.append(b'{"jsonrpc":"2.0","id":"p%d","method":"ping"}\n' % number)
        started.send(form(variant) + b"\n" + pings[-1])
    assert started.finish() == 0
    reached = log.read_bytes()
    assert executed(reached) == []
    assert executed_by_node(reached) == 0
    for ping in pings:
        assert ping in reached
    reasons = {call[1]["decision"]["explain"]["reason_code"] for call in calls_of(started.events())}
    assert reasons == {"DENYLIST_MATCH", "AMBIGUOUS_MESSAGE"}
    assert all(
        b"\n" not in line or json.loads(line) for line in started.received.split(b"\n") if line
    )


def test_the_same_variants_do_arrive_where_nothing_is_enforced(wire, tmp_path):
    log, playback = tmp_path / "log", tmp_path / "playback"
    playback.write_bytes(b"")
    sent = b"".join(small(variant) + b"\n" for variant in VARIANTS.values())
    started = wire(upstream("recorder", log, playback), policy=bundle(deny("rm"), mode="observe"))
    started.wait_for_policy()  # until then calls are held, and what is none goes ahead (fast-start)
    started.send(sent)
    assert started.finish() == 0
    assert log.read_bytes() == sent
    started.events()


def forwarded(desk, line: bytes, *, as_large: bool) -> bool:
    if not as_large:
        return desk.client(line)
    scanner = LargeScanner()
    scanner.feed(line)
    return desk.calls.decide_large(scanner.result(), len(line))


@pytest.mark.parametrize("as_large", [False, True], ids=["small", "large"])
@pytest.mark.parametrize("seed", range(4))
def test_mutations_of_denied_calls_do_not_get_past_either(desk, seed, as_large):
    desk = desk(snapshot(deny("rm")))
    rng = random.Random(seed)
    lines = [small(variant) for name, variant in VARIANTS.items() if "nesting" not in name]
    passed = 0
    for _ in range(1_500):
        line = mutated(rng, mutated(rng, rng.choice(lines)))
        if forwarded(desk, line, as_large=as_large):
            passed += 1
            assert executed(line) == [], line
    assert passed, "some mutations are harmless; else nothing was tried"
