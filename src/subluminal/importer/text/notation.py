"""Edits of lists and tables in JSON and TOML that can be undone exactly.

An edit replaces a span of the text; all other bytes are kept. Insertions copy the style around
them. Removals take out what an insertion would have put there, and keep comments in between.
"""

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from subluminal.importer.text.json_tree import parse_json
from subluminal.importer.text.toml_tree import parse_toml
from subluminal.importer.text.tree import Member, Node

_SPACES = " \t\r\n"


class Edit(NamedTuple):
    """Replaces `text[start:end]` by `new`. Edits at the same place apply in the given order."""

    start: int
    end: int
    new: str


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """Returns the text with edits applied. They must not overlap."""
    pieces: list[str] = []
    at = 0
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end)):
        assert edit.start >= at, "edits overlap"
        pieces += [text[at : edit.start], edit.new]
        at = edit.end
    return "".join([*pieces, text[at:]])


class Notation(ABC):
    """The edits that JSON and TOML share: both quote strings and bracket lists in the same way."""

    is_json = False

    @abstractmethod
    def parse(self, text: str) -> Node:
        """Parses a document into a tree."""

    def quote(self, value: str) -> str:
        """Returns a string literal that is valid in both notations."""
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")

    def name_as_value(self, member: Member) -> str:
        """Returns a member's name as a string literal, as the file spells it where possible."""
        return self.quote(member.name)

    def comma(self, member: Member) -> str:
        """Returns the separator of items near a member. Minified text stays minified."""
        text = member.node.text
        return ", " if text[member.end : member.node.start].strip(":=") else ","

    def add_member(self, after: Member, name: str, raw: str) -> Edit:
        """Adds a member after another one."""
        if not after.inline:
            return _add_line(after, name, raw)
        text, end = after.node.text, after.node.end
        white = white_before(text, after.start)
        lead = white if "\n" in white else self.comma(after)[1:]
        between = text[after.end : after.node.start]
        name = self.quote(name) if self.is_json else name
        return Edit(end, end, f",{lead}{name}{between if _is_plain(between) else ': '}{raw}")

    def remove_members(self, table: Node, members: Sequence[Member]) -> list[Edit]:
        """Removes members together with their commas or lines."""
        edits = [_remove_line(member) for member in members if not member.inline]
        spans = [(m.start, m.node.end) for m in table.members]
        inline = [at for at, m in enumerate(table.members) if m in members and m.inline]
        return edits + _remove_items(table, spans, inline)


class Json(Notation):
    """JSON, with or without comments."""

    is_json = True

    def parse(self, text: str) -> Node:
        return parse_json(text)

    def name_as_value(self, member: Member) -> str:
        return member.raw_name()


class Toml(Notation):
    """TOML 1.0."""

    def parse(self, text: str) -> Node:
        return parse_toml(text)


JSON = Json()
TOML = Toml()


def prepend(found: Node, raws: Sequence[str], comma: str) -> Edit:
    """Adds items at the front of a list."""
    new = comma.join(raws)
    if not found.items:
        return Edit(found.start + 1, found.start + 1, new)
    first = found.items[0].start
    white = white_before(found.text, first)
    return Edit(first, first, f"{new},{white if chr(10) in white else comma[1:]}")


def append(found: Node, raws: Sequence[str], comma: str) -> Edit:
    """Adds items at the end of a list."""
    if not found.items:
        return prepend(found, raws, comma)
    end = found.items[-1].end
    return Edit(end, end, "".join(comma + raw for raw in raws))


def drop(found: Node, positions: Sequence[int]) -> list[Edit]:
    """Removes items from a list."""
    return _remove_items(found, [(item.start, item.end) for item in found.items], positions)


def _remove_items(
    found: Node, spans: Sequence[tuple[int, int]], positions: Sequence[int]
) -> list[Edit]:
    """Removes items from between the brackets of a list or table."""
    inside = found.start + 1
    if len(positions) == len(spans) > 0 and spans[0][0] > inside:
        # An insertion between empty brackets leaves no space before the first item. So the client
        # has reformatted this, and clients write empty lists and tables without space inside.
        around = found.text[inside : spans[0][0]] + found.text[spans[-1][1] : found.end - 1]
        if not around.strip(_SPACES + ","):
            return [Edit(inside, found.end - 1, "")]
    edits: list[Edit] = []
    for first, last in _rows(positions):
        edits += _remove_spans(found.text, spans, first, last)
    return edits


def _rows(positions: Sequence[int]) -> list[tuple[int, int]]:
    """Groups neighbouring positions into half-open ranges."""
    rows: list[tuple[int, int]] = []
    for at in positions:
        if rows and rows[-1][1] == at:
            rows[-1] = (rows[-1][0], at + 1)
        else:
            rows.append((at, at + 1))
    return rows


def white_before(text: str, at: int) -> str:
    """Returns the white space directly before an offset."""
    start = at
    while start and text[start - 1] in _SPACES:
        start -= 1
    return text[start:at]


_TRIVIA = re.compile(r"(?://[^\n]*|/\*(?s:.*?)\*/|#[^\n]*|[ \t\r\n]+)*")


def _comma_after(text: str, at: int) -> int:
    """Returns the offset of the next comma after white space and comments; -1 if there is none."""
    passed = _TRIVIA.match(text, at)
    at = passed.end() if passed else at
    return at if text[at : at + 1] == "," else -1


def _remove_spans(text: str, spans: Sequence[tuple[int, int]], first: int, last: int) -> list[Edit]:
    """Removes neighbouring items and the commas that belong to them."""
    begin, end = spans[first][0], spans[last - 1][1]
    if first:
        # An item that was added after another one brought the comma before it.
        before = spans[first - 1][1]
        comma = _comma_after(text, before)
        if not text[before:comma].strip(_SPACES) and not text[comma + 1 : begin].strip(_SPACES):
            return [Edit(before, end, "")]
        return [Edit(comma, comma + 1, ""), Edit(begin, end, "")]
    if last < len(spans):
        return _remove_with_comma(text, begin, end, spans[last][0])
    comma = _comma_after(text, end)
    # When no item is left, a trailing comma would be invalid.
    return [Edit(begin, end, "")] if comma < 0 else _remove_with_comma(text, begin, end, comma + 1)


def _remove_with_comma(text: str, begin: int, end: int, until: int) -> list[Edit]:
    comma = _comma_after(text, end)
    if not text[end:comma].strip(_SPACES) and not text[comma + 1 : until].strip(_SPACES):
        return [Edit(begin, until, "")]
    return [Edit(begin, end, ""), Edit(comma, comma + 1, "")]


def _is_plain(between: str) -> bool:
    return between.strip(" \t") in (":", "=")


def _add_line(after: Member, name: str, raw: str) -> Edit:
    """Adds a line below another one, with the same indentation and dotted prefix."""
    text = after.node.text
    end = text.find("\n", after.node.end)
    end = len(text) if end < 0 else end
    if end and text[end - 1] == "\r":
        end -= 1
    line = text.rfind("\n", 0, after.start) + 1
    newline = "\r\n" if text[end : end + 2] == "\r\n" or text[line - 2 : line] == "\r\n" else "\n"
    indent = text[line : after.start]
    prefix = text[after.start : after.last]
    return Edit(end, end, f"{newline}{indent}{prefix}{name} = {raw}")


def _remove_line(member: Member) -> Edit:
    text, start, end = member.node.text, member.start, member.node.end
    line_end = text.find("\n", end)
    line_end = len(text) if line_end < 0 else line_end
    if text[end:line_end].strip(" \t\r"):
        return Edit(start, end, "")  # keep the comment after the value
    line = text.rfind("\n", 0, start) + 1
    if line == 0:
        return Edit(0, min(line_end + 1, len(text)), "")
    newline = line - (2 if text[line - 2 : line] == "\r\n" else 1)
    return Edit(newline, line_end - (text[line_end - 1] == "\r"), "")
