"""How a list or a table is changed in each notation, so that the change can be taken back exactly.

Insertions copy the style around them; removals take away what an insertion would have put there,
and leave comments that someone wrote in between.
"""

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence

from subluminal.importer.text.edits import Edit
from subluminal.importer.text.json_tree import parse_json
from subluminal.importer.text.toml_tree import parse_toml
from subluminal.importer.text.tree import Member, Node

_SPACES = " \t\r\n"


class Notation(ABC):
    """What JSON and TOML share: strings in double quotes, lists between brackets."""

    is_json = False

    @abstractmethod
    def parse(self, text: str) -> Node:
        """Returns the tree of a document."""

    def quote(self, value: str) -> str:
        """A string as both notations write it."""
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")

    def name_as_value(self, member: Member) -> str:
        """A member's name as a string value, in its own spelling where that is possible."""
        return self.quote(member.name)

    def comma(self, member: Member) -> str:
        """How items are separated where a member stands: minified text stays minified."""
        text = member.node.text
        return ", " if text[member.end : member.node.start].strip(":=") else ","

    def add_member(self, after: Member, name: str, raw: str) -> Edit:
        """Puts a new member behind another one."""
        if not after.inline:
            return _add_line(after, name, raw)
        text, end = after.node.text, after.node.end
        white = white_before(text, after.start)
        lead = white if "\n" in white else self.comma(after)[1:]
        between = text[after.end : after.node.start]
        name = self.quote(name) if self.is_json else name
        return Edit(end, end, f",{lead}{name}{between if _is_plain(between) else ': '}{raw}")

    def remove_members(self, table: Node, members: Sequence[Member]) -> list[Edit]:
        """Takes members away, with their commas or their lines."""
        edits = [_remove_line(member) for member in members if not member.inline]
        spans = [(m.start, m.node.end) for m in table.members]
        inline = [at for at, m in enumerate(table.members) if m in members and m.inline]
        for first, last in _rows(inline):
            edits += _remove_spans(table.members[first].node.text, spans, first, last)
        return edits


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
    """Puts items at the front of a list."""
    new = comma.join(raws)
    if not found.items:
        return Edit(found.start + 1, found.start + 1, new)
    first = found.items[0].start
    white = white_before(found.text, first)
    return Edit(first, first, f"{new},{white if chr(10) in white else comma[1:]}")


def append(found: Node, raws: Sequence[str], comma: str) -> Edit:
    """Puts items at the end of a list."""
    if not found.items:
        return prepend(found, raws, comma)
    end = found.items[-1].end
    return Edit(end, end, "".join(comma + raw for raw in raws))


def drop(found: Node, positions: Sequence[int]) -> list[Edit]:
    """Takes items out of a list."""
    spans = [(item.start, item.end) for item in found.items]
    inside = found.start + 1
    if len(positions) == len(spans) > 0 and spans[0][0] > inside:
        # We put nothing before the first item of an empty list. So the list was laid out anew by
        # its client, whose empty lists are plain.
        around = found.text[inside : spans[0][0]] + found.text[spans[-1][1] : found.end - 1]
        if not around.strip(_SPACES + ","):
            return [Edit(inside, found.end - 1, "")]
    edits: list[Edit] = []
    for first, last in _rows(positions):
        edits += _remove_spans(found.text, spans, first, last)
    return edits


def _rows(positions: Sequence[int]) -> list[tuple[int, int]]:
    """Neighbouring positions as half-open ranges."""
    rows: list[tuple[int, int]] = []
    for at in positions:
        if rows and rows[-1][1] == at:
            rows[-1] = (rows[-1][0], at + 1)
        else:
            rows.append((at, at + 1))
    return rows


def white_before(text: str, at: int) -> str:
    """The white space right before a place."""
    start = at
    while start and text[start - 1] in _SPACES:
        start -= 1
    return text[start:at]


_TRIVIA = re.compile(r"(?://[^\n]*|/\*(?s:.*?)\*/|#[^\n]*|[ \t\r\n]+)*")


def _comma_after(text: str, at: int) -> int:
    """Where the next comma is, past white space and comments; -1 if something else comes first."""
    passed = _TRIVIA.match(text, at)
    at = passed.end() if passed else at
    return at if text[at : at + 1] == "," else -1


def _remove_spans(text: str, spans: Sequence[tuple[int, int]], first: int, last: int) -> list[Edit]:
    """Removes neighbours from a comma-separated row, and the commas that went with them."""
    begin, end = spans[first][0], spans[last - 1][1]
    if first:
        # What is added behind something else brings its comma along.
        before = spans[first - 1][1]
        comma = _comma_after(text, before)
        if not text[before:comma].strip(_SPACES) and not text[comma + 1 : begin].strip(_SPACES):
            return [Edit(before, end, "")]
        return [Edit(comma, comma + 1, ""), Edit(begin, end, "")]
    if last < len(spans):
        return _remove_with_comma(text, begin, end, spans[last][0])
    comma = _comma_after(text, end)
    # A trailing comma with nothing before it is not valid.
    return [Edit(begin, end, "")] if comma < 0 else _remove_with_comma(text, begin, end, comma + 1)


def _remove_with_comma(text: str, begin: int, end: int, until: int) -> list[Edit]:
    comma = _comma_after(text, end)
    if not text[end:comma].strip(_SPACES) and not text[comma + 1 : until].strip(_SPACES):
        return [Edit(begin, until, "")]
    return [Edit(begin, end, ""), Edit(comma, comma + 1, "")]


def _is_plain(between: str) -> bool:
    return between.strip(" \t") in (":", "=")


def _add_line(after: Member, name: str, raw: str) -> Edit:
    """A new line below another, as far in, under the same dotted prefix."""
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
        return Edit(start, end, "")  # a comment behind the value stays
    line = text.rfind("\n", 0, start) + 1
    if line == 0:
        return Edit(0, min(line_end + 1, len(text)), "")
    newline = line - (2 if text[line - 2 : line] == "\r\n" else 1)
    return Edit(newline, line_end - (text[line_end - 1] == "\r"), "")
