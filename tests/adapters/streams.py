"""Seeded streams of JSON-RPC and other lines: valid, odd, broken, tiny and huge."""

import json
import random

METHODS = (
    "initialize",
    "server/discover",
    "tools/list",
    "tools/call",
    "subscriptions/listen",
    "notifications/cancelled",
    "notifications/progress",
    "sampling/createMessage",
    "x/unknown",
)
ODD_LINES = (
    b"",
    b" \t ",
    b"\r",
    b"not JSON at all",
    b"{",
    b"[",
    b"}{",
    b"\xff\xfe\x00",
    b"\xef\xbb\xbf{}",
    b'{"method":"tools/call","method":"ping"}',
    b"{'single':1}",
    b'{"x":NaN}',
    b"[1,2,[3]]",
    b'"just a string"',
    b"\x1e{}",
    b'{"a":1}{"b":2}',
    b"\x00\x01\x02",
    b'{"jsonrpc":"2.0","id":"\\ud800","method":"tools/call","params":{"name":"x"}}',
)


def message(rng: random.Random) -> bytes:
    """One JSON-RPC message, request, notification, answer or batch, in some formatting."""
    kind = rng.random()
    id_ = rng.choice([rng.randrange(50), f"id-{rng.randrange(9)}", None, 1.5])
    body: dict[str, object] = {"jsonrpc": "2.0"}
    if kind < 0.6:
        body |= {"id": id_, "method": rng.choice(METHODS)}
        body["params"] = {
            "name": rng.choice(["read", "écrire", "rm"]),
            "arguments": {"text": "y" * rng.randrange(200), "n": rng.random()},
            "requestId": id_,
        }
    elif kind < 0.8:
        body |= {"id": id_, "result": {"content": [], "isError": rng.random() < 0.3}}
    else:
        body |= {"method": rng.choice(METHODS), "params": [1, {"é": None}]}
    value = [body, body] if rng.random() < 0.1 else body
    spacing = rng.choice([(",", ":"), (", ", ": "), (" ,\t", " : ")])
    return json.dumps(value, ensure_ascii=rng.random() < 0.5, separators=spacing).encode()


def mutated(rng: random.Random, line: bytes) -> bytes:
    """The line with a few bytes changed, dropped or doubled; it stays one line."""
    data = bytearray(line)
    for _ in range(rng.randrange(1, 4)):
        if not data:
            break
        at = rng.randrange(len(data))
        what = rng.randrange(3)
        if what == 0:
            data[at] = rng.randrange(256)
        elif what == 1:
            del data[at]
        else:
            data[at:at] = data[at : at + 5]
    return bytes(data).replace(b"\n", b" ")


def stream(seed: int, lines: int, *, huge: bool = False) -> bytes:
    """Many lines; the last one may lack its newline."""
    rng = random.Random(seed)
    parts = []
    for _ in range(lines):
        kind = rng.random()
        if kind < 0.2:
            line = rng.choice(ODD_LINES)
        elif kind < 0.45:
            line = mutated(rng, message(rng))
        else:
            line = message(rng)
        parts.append(line + rng.choice([b"\n", b"\n", b"\n", b"\r\n"]))
    if huge:
        big = json.dumps({"jsonrpc": "2.0", "id": 7, "method": "x", "params": {"a": "é" * 900_000}})
        for line in (big.encode(), b"z" * 1_500_000, big.encode()[:-5]):
            parts.insert(rng.randrange(len(parts)), line + b"\n")
    return b"".join(parts) + rng.choice([b"", b'{"jsonrpc":"2.0","id":1', b"half"])


def cut(seed: int, data: bytes) -> list[bytes]:
    """The same bytes in pieces of random sizes, from one byte to many lines."""
    rng = random.Random(seed)
    pieces = []
    at = 0
    while at < len(data):
        size = rng.choice([1, 2, 7, 100, 4_096, 70_000])
        pieces.append(data[at : at + size])
        at += size
    return pieces
