"""Parses JSON and JSONC into a tree of spans.

Comments and trailing commas are allowed. Everything else follows RFC 8259 strictly, because two
parsers could read anything looser differently.
"""

import json
import re
from typing import Any, NamedTuple

from subluminal.importer.text.tree import MAX_DEPTH, Kind, Member, Node, wrong

_SPACE = re.compile(r"(?:[ \t\r\n]+|//[^\n]*|/\*(?s:.*?)\*/)*")
_PLAIN = r'[^"\\\x00-\x1f]*'
_STRING = re.compile(rf'"{_PLAIN}(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{{4}}){_PLAIN})*"')
_SCALAR = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null")
_WORD_GOES_ON = re.compile(r"[A-Za-z0-9_.+-]")


class Number(NamedTuple):
    """A number as written. It is not converted, because Python refuses very long numbers."""

    raw: str


def _read(raw: str) -> Any:
    return json.loads(raw) if raw[0] in '"tfn' else Number(raw)


def parse_json(text: str) -> Node:
    """Parses a document. Raises InvalidInput with line and column."""
    parser = _Parser(text)
    start = parser.skip(0)
    if start == len(text):
        raise wrong(
            text,
            start,
            "the file is empty" if not text.strip() else "the file has no value, only comments",
        )
    root = parser.value(start, 0)
    end = parser.skip(root.end)
    if end != len(text):
        raise wrong(text, end, "unexpected text after the end of the value")
    return root


class _Parser:
    """A recursive descent parser. Nodes point into the text; nothing is copied."""

    def __init__(self, text: str) -> None:
        self._text = text

    def skip(self, at: int) -> int:
        """Returns the offset after white space and comments."""
        match = _SPACE.match(self._text, at)
        end = match.end() if match else at
        if self._text.startswith("/*", end):
            raise wrong(self._text, end, "a comment is not closed")
        return end

    def value(self, at: int, depth: int) -> Node:
        if depth > MAX_DEPTH:
            raise wrong(self._text, at, "nested too deeply")
        char = self._text[at : at + 1]
        if char == "{":
            return self._table(at, depth)
        if char == "[":
            return self._list(at, depth)
        end = self._string(at) if char == '"' else self._word(at)
        return Node(Kind.SCALAR, self._text, at, end, _read)

    def _table(self, at: int, depth: int) -> Node:
        table = Node(Kind.TABLE, self._text, at)
        at = self.skip(at + 1)
        while self._text[at : at + 1] != "}":
            if self._text[at : at + 1] != '"':
                raise wrong(self._text, at, "expected a name in double quotes, or `}`")
            name_end = self._string(at)
            colon = self.skip(name_end)
            if self._text[colon : colon + 1] != ":":
                raise wrong(self._text, colon, "expected `:` after a name")
            node = self.value(self.skip(colon + 1), depth + 1)
            name = json.loads(self._text[at:name_end])
            table.members.append(Member(name, node, at, at, name_end, inline=True))
            at = self._separator(node.end, "}")
        table.end = at + 1
        return table

    def _list(self, at: int, depth: int) -> Node:
        found = Node(Kind.LIST, self._text, at)
        at = self.skip(at + 1)
        while self._text[at : at + 1] != "]":
            node = self.value(at, depth + 1)
            found.items.append(node)
            at = self._separator(node.end, "]")
        found.end = at + 1
        return found

    def _separator(self, at: int, closing: str) -> int:
        at = self.skip(at)
        char = self._text[at : at + 1]
        if char == ",":
            return self.skip(at + 1)
        if char != closing:
            raise wrong(self._text, at, f"expected `,` or `{closing}`")
        return at

    def _string(self, at: int) -> int:
        match = _STRING.match(self._text, at)
        if match is None:
            raise wrong(
                self._text,
                at,
                "a string is not closed, or contains a control character or an invalid escape",
            )
        return match.end()

    def _word(self, at: int) -> int:
        match = _SCALAR.match(self._text, at)
        if match is None or _WORD_GOES_ON.match(self._text, match.end()):
            raise wrong(self._text, at, "expected a value")
        return match.end()
