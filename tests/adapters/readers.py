"""Deliberately lax servers: every way in which one of them may read bytes as a call.

`executed(data)` names the readers that would execute a denied tool. A shim is talked past if that
is not empty for what it forwarded (byte-transparent).
"""

import json
import re
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

DENIED = "rm"


def _is_denied(message: Any) -> bool:
    if isinstance(message, list):
        return any(_is_denied(each) for each in message)  # batches, also nested ones
    if not isinstance(message, dict):
        return False
    method, params = message.get("method"), message.get("params")
    if isinstance(method, list) and len(method) == 1:
        method = method[0]  # what `handlers[message.method]` does in JavaScript
    return method == "tools/call" and isinstance(params, dict) and params.get("name") == DENIED


def _lines(text: str) -> Iterator[str]:
    yield from text.split("\n")


def _loads(**options: Any) -> Callable[[str], Any]:
    return lambda text: json.loads(text.strip(), strict=False, **options)


def _first_wins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    return dict(reversed(pairs))


def _folded(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    return {key.casefold(): value for key, value in pairs}


def _json5(text: str) -> Any:
    """Comments, single quotes, bare keys, trailing commas: enough of JSON5 to be dangerous."""
    out, quoted = [], ""
    tokens = re.finditer(
        r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'|/\*.*?\*/|//[^\r\n]*|#[^\r\n]*|[A-Za-z_$][\w$]*|.',
        text.strip().lstrip("\ufeff"),
        re.DOTALL,
    )
    for token in tokens:
        quoted = token.group()
        if quoted.startswith(("/*", "//", "#")):
            continue
        if quoted.startswith("'"):
            quoted = json.dumps(quoted[1:-1])
        elif quoted[0].isalpha() and quoted not in ("true", "false", "null", "NaN", "Infinity"):
            quoted = json.dumps(quoted)
        out.append(quoted)
    return json.loads(re.sub(r",\s*([}\]])", r"\1", "".join(out)), strict=False)


def _by_line(
    split: Callable[[str], Any], load: Callable[[str], Any], errors: str = "replace"
) -> Callable[[bytes], bool]:
    def reads(data: bytes) -> bool:
        for line in split(data.decode("utf-8", errors)):
            try:
                if _is_denied(load(line)):
                    return True
            except (ValueError, RecursionError):
                continue
        return False

    return reads


def _bytes_lines(data: bytes) -> bool:
    """json.loads of bytes, which knows byte order marks, UTF-16 and UTF-32."""
    for line in data.split(b"\n"):
        for text in (line, line.strip(), line.strip(b"\x00")):
            try:
                if _is_denied(json.loads(text)):
                    return True
            except (ValueError, RecursionError):
                continue
    return False


def _stream(data: bytes) -> bool:
    """A decoder that ignores newlines: one value after the other, as in Go and jq."""
    text, at = data.decode("utf-8", "replace"), 0
    decoder = json.JSONDecoder(strict=False)
    while at < len(text):
        try:
            value, at = decoder.raw_decode(text, at)
        except ValueError:
            at += 1
            while at < len(text) and not (text[at] in "{[" and text[at - 1] in "\n\r\x1e\x00 }]"):
                at += 1
            continue
        except RecursionError:
            return False
        if _is_denied(value):
            return True
        while at < len(text) and text[at] in " \t\r\n\x1e\x00,":
            at += 1
    return False


READERS: dict[str, Callable[[bytes], bool]] = {
    "json.loads(line)": _by_line(_lines, _loads()),
    "first key wins": _by_line(_lines, _loads(object_pairs_hook=_first_wins)),
    "keys in any case": _by_line(_lines, _loads(object_pairs_hook=_folded)),
    "bad bytes ignored": _by_line(_lines, _loads(), errors="ignore"),
    "splitlines()": _by_line(str.splitlines, _loads()),
    "universal newlines": _by_line(lambda text: re.split(r"\r\n|\r|\n", text), _loads()),
    "universal, any case": _by_line(
        lambda text: re.split(r"[\r\n]", text), _loads(object_pairs_hook=_folded)
    ),
    "splitlines(), first": _by_line(str.splitlines, _loads(object_pairs_hook=_first_wins)),
    "json5": _by_line(_lines, _json5),
    "json5, splitlines()": _by_line(
        lambda text: re.split(r"[\r\n\x0b\x0c\x1c-\x1e]", text), _json5
    ),
    "bytes": _bytes_lines,
    "stream": _stream,
}


def executed(data: bytes) -> list[str]:
    """The readers that find the denied call in what reached them."""
    return [name for name, reads in READERS.items() if reads(data)]


NODE = """
const rl = require('readline').createInterface({input: process.stdin, crlfDelay: Infinity});
let denied = 0;
const look = m => {
  if (Array.isArray(m)) return m.forEach(look);
  const handlers = {'tools/call': p => { if (p && p.name == 'rm') denied += 1; }};
  if (m && typeof m === 'object' && handlers[m.method]) handlers[m.method](m.params);
};
rl.on('line', line => { try { look(JSON.parse(line)); } catch (e) {} });
rl.on('close', () => console.log(denied));
"""


def executed_by_node(data: bytes) -> int:
    """How often Node's readline and JSON.parse find the denied call."""
    done = subprocess.run(
        ["node", "-e", NODE], input=data, capture_output=True, timeout=60, check=True
    )
    return int(done.stdout)
