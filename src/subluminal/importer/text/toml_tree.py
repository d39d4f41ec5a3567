"""Parses TOML into a tree of spans.

tomllib decides what is valid. The scanner here only finds where things are, and can be simple
because it sees only valid text. A table that a header or a dotted name opens has no span of its
own, but the values assigned in it do.
"""

import re
import tomllib
from typing import Any

from subluminal.errors import InvalidInput, Problem
from subluminal.importer.text.tree import MAX_DEPTH, Kind, Member, Node, place_of, wrong

_SPACE = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*")
_BLANK = re.compile(r"[ \t]*")
_LONG = re.compile(r'"""(?s:(?:[^\\]|\\.)*?)"""+|' + r"'''(?s:.*?)'''+")
_SHORT = re.compile(r'"(?:[^"\\\n]|\\.)*"|' + r"'[^'\n]*'")
_BARE_NAME = re.compile(r"[A-Za-z0-9_-]+")
_WORD = re.compile(r"\d{4}-\d\d-\d\d \d\d:[^\s,\]}#]*|[^\s,\]}#]+")


def parse_toml(text: str) -> Node:
    """Parses a document. Raises InvalidInput with line and column."""
    try:
        tomllib.loads(text)
    except RecursionError:
        raise InvalidInput([Problem("nested too deeply")]) from None
    except ValueError as error:  # TOMLDecodeError, or a number too long for Python
        raise InvalidInput([_problem(error, text)]) from None
    return _Scanner(text).document()


def _problem(error: Exception, text: str) -> Problem:
    # Before Python 3.14 the place is only found at the end of the message.
    found = re.search(r" \(at (?:line (\d+), column (\d+)|end of document)\)$", str(error))
    message = str(error)[: found.start()] if found else str(error)
    line, column = place_of(text, len(text))
    if found and found[1]:
        line, column = int(found[1]), int(found[2])
    return Problem(message[:1].lower() + message[1:], line=line, column=column)


def _read(raw: str) -> Any:
    return tomllib.loads(f"v = {raw}")["v"]


class _Name:
    """A key, which may have several parts separated by dots."""

    def __init__(self, start: int) -> None:
        self.start = start
        self.parts: list[str] = []
        self.last = start
        self.end = start


class _Scanner:
    def __init__(self, text: str) -> None:
        self._text = text
        self._root = Node(Kind.TABLE, text)

    def document(self) -> Node:
        table = self._root
        at = self._skip(0)
        while at < len(self._text):
            if self._text[at] == "[":
                table, at = self._header(at)
            else:
                at = self._assignment(table, at, 0, inline=False)
            at = self._skip(at)
        return self._root

    def _skip(self, at: int) -> int:
        match = _SPACE.match(self._text, at)
        return match.end() if match else at

    def _blank(self, at: int) -> int:
        match = _BLANK.match(self._text, at)
        return match.end() if match else at

    def _header(self, at: int) -> tuple[Node, int]:
        is_list = self._text.startswith("[[", at)
        width = 2 if is_list else 1
        name = self._name(self._blank(at + width))
        end = self._blank(name.end) + width
        if not is_list:
            return self._descend(self._root, name, name.parts), end
        owner = self._descend(self._root, name, name.parts[:-1])
        tables = owner.get(name.parts[-1])
        if tables is None:
            tables = Node(Kind.LIST, self._text)
            owner.members.append(self._implied(name.parts[-1], tables, name))
        tables.items.append(Node(Kind.TABLE, self._text))
        return tables.items[-1], end

    def _assignment(self, table: Node, at: int, depth: int, *, inline: bool) -> int:
        name = self._name(at)
        start = self._blank(self._blank(name.end) + 1)
        node = self._value(start, depth)
        owner = self._descend(table, name, name.parts[:-1])
        member = Member(name.parts[-1], node, name.start, name.last, name.end, inline=inline)
        owner.members.append(member)
        return node.end

    def _descend(self, table: Node, name: _Name, parts: list[str]) -> Node:
        for part in parts:
            found = table.get(part)
            if found is None:
                found = Node(Kind.TABLE, self._text)
                table.members.append(self._implied(part, found, name))
            # A header below an array of tables refers to its last element.
            table = found.items[-1] if found.kind is Kind.LIST else found
        return table

    @staticmethod
    def _implied(part: str, node: Node, name: _Name) -> Member:
        return Member(part, node, name.start, name.last, name.end, inline=False)

    def _name(self, at: int) -> _Name:
        name = _Name(at)
        while True:
            match = _BARE_NAME.match(self._text, at) or _SHORT.match(self._text, at)
            if match is None:
                raise wrong(self._text, at, "expected a name")
            raw = match.group()
            name.parts.append(_read(raw) if raw[0] in "\"'" else raw)
            name.last, name.end = at, match.end()
            dot = self._blank(match.end())
            if self._text[dot : dot + 1] != ".":
                return name
            at = self._blank(dot + 1)

    def _value(self, at: int, depth: int) -> Node:
        if depth > MAX_DEPTH:
            raise wrong(self._text, at, "nested too deeply")
        char = self._text[at]
        if char == "[":
            return self._list(at, depth)
        if char == "{":
            return self._table(at, depth)
        match = _LONG.match(self._text, at) or _SHORT.match(self._text, at)
        match = match or _WORD.match(self._text, at)
        if match is None:
            raise wrong(self._text, at, "expected a value")
        return Node(Kind.SCALAR, self._text, at, match.end(), _read)

    def _list(self, at: int, depth: int) -> Node:
        found = Node(Kind.LIST, self._text, at)
        at = self._skip(at + 1)
        while self._text[at] != "]":
            found.items.append(self._value(at, depth + 1))
            at = self._comma(found.items[-1].end)
        found.end = at + 1
        return found

    def _table(self, at: int, depth: int) -> Node:
        table = Node(Kind.TABLE, self._text, at)
        at = self._skip(at + 1)
        while self._text[at] != "}":
            at = self._comma(self._assignment(table, at, depth + 1, inline=True))
        table.end = at + 1
        return table

    def _comma(self, at: int) -> int:
        at = self._skip(at)
        return self._skip(at + 1) if self._text[at] == "," else at
