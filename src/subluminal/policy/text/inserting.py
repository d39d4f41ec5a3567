"""Inserts a rule into the text of a policy, and leaves every other byte as it is.

Comments, order, quotes, anchors and line ends stay. The text is only added to. The result is read
again: it must be the same policy with one more rule, otherwise the insertion is refused.
Pure: bytes in, bytes out. First the insertion, then the search for the list of rules, then the
writing of a rule as YAML or JSON.
"""

import json
import re
from typing import Any, NamedTuple

import yaml

from subluminal.canonical import AmbiguousJSON, encode, parse
from subluminal.errors import InvalidInput, SubluminalError
from subluminal.policy.text.reading import BOM, UNPRINTABLE, read_document
from subluminal.policy.text.yaml_nodes import LOADER

_LINE_END = re.compile(r"\r\n|\r|\n")
_MAX_GAP = 8
"""Spaces after a dash that are copied. More than these are taken for an accident."""
_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{4}|.)", re.DOTALL)
_CONTROL = re.compile(r"[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_REORDERS = re.compile("[\u061c\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufff9-\ufffb]")
"""Invisible characters, and those that make an editor show text in another order."""
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_NO_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
"""Words that some YAML parser does not read as a string."""


class RuleList(NamedTuple):
    """The list under `rules`, as offsets into the text."""

    is_flow: bool
    """whether the list is in brackets, not after dashes"""
    starts: list[int]
    """offset of each rule's dash, or of its first character"""
    bodies: list[int]
    """offset of each rule's value"""


class Addition(NamedTuple):
    """Text to insert, and its offset in the old text."""

    at: int
    text: str


def insert_rule(data: bytes, index: int, rule: dict[str, Any]) -> bytes:
    """Returns a policy file with a rule before its rule `index`. Raises SubluminalError."""
    bom = BOM if data.startswith(BOM) else b""
    text = data[len(bom) :].decode("utf-8")
    is_json = reads_as_json(text)
    found = find_rules(text, is_json=is_json)
    wanted = _with_rule(data, index, rule)
    for each in _additions(text, found, index, rule, is_json=is_json) if found else []:
        made = bom + (text[: each.at] + each.text + text[each.at :]).encode()
        if canonical_value(made) == wanted:
            return made
    raise SubluminalError(
        "the list of rules is written in a way that cannot be edited safely",
        hint=f"add this rule by hand: {as_flow(rule)}",
    )


def reads_as_json(text: str) -> bool:
    """Whether a policy is written in JSON."""
    try:
        parse(text.strip(" \t\r\n").encode())
    except AmbiguousJSON:
        return False
    return True


def _with_rule(data: bytes, index: int, rule: dict[str, Any]) -> bytes:
    value = read_document(data, "")[0].value
    rules = value["rules"]
    return encode({**value, "rules": [*rules[:index], rule, *rules[index:]]})


def canonical_value(data: bytes) -> bytes | None:
    """Returns what a file says, in canonical form; None if it cannot be read."""
    try:
        document, problems = read_document(data, "")
    except InvalidInput:
        return None
    return None if problems else encode(document.value)


def _additions(
    text: str, found: RuleList, index: int, rule: dict[str, Any], *, is_json: bool
) -> list[Addition]:
    """Returns the possible insertions, the best looking first."""
    if found.is_flow:
        return [_in_flow(text, found, index, rule, is_json=is_json)]
    lines = _block_lines(text, found, index, rule) + _blank_line(text, found, index)
    # A comment above a rule belongs to that rule, so the new rule goes above the comment. If the
    # comment is really part of a multi-line string, the first insertion gives another policy.
    dash_line = _line_start(text, found.starts[index])
    return [Addition(at, lines) for at in (_top(text, found, index), dash_line)]


def _in_flow(
    text: str, found: RuleList, index: int, rule: dict[str, Any], *, is_json: bool
) -> Addition:
    at = found.starts[index]
    lead = text[_line_start(text, at) : at]
    stands_alone = not lead.strip(" \t") and at > 0
    if not is_json:
        written = as_flow(rule)
    else:
        depth = _indent_inside(text, at, lead) if stands_alone else None
        written = as_json(rule, depth).replace("\n", _line_end(text) + lead)
    behind = _line_end(text) + lead if stands_alone else " "
    return Addition(at, f"{written},{behind}")


def _indent_inside(text: str, at: int, lead: str) -> int | None:
    """Returns how far the members of a rule are indented, if each is on its own line."""
    inside = re.compile(r"\{[ \t]*\r?\n( +)").match(text, at)
    depth = len(inside.group(1)) - len(lead) if inside else 0
    return depth if depth > 0 else None


def _block_lines(text: str, found: RuleList, index: int, rule: dict[str, Any]) -> str:
    dash, body = found.starts[index], found.bodies[index]
    margin = text[_line_start(text, dash) : dash]
    gap = text[dash + 1 : body]
    inner = gap if gap.strip(" ") == "" and len(gap) <= _MAX_GAP else " "
    first, *rest = as_block(rule)
    lines = [f"{margin}-{inner}{first}", *(f"{margin} {inner}{line}" for line in rest)]
    return "".join(line + _line_end(text) for line in lines)


def _blank_line(text: str, found: RuleList, index: int) -> str:
    """Returns an empty line after the new rule, if the other rules are separated by one."""
    second = max(index, 1)
    if second == len(found.starts):
        return ""
    line_above = text[: _top(text, found, second)].splitlines()[-1]
    return "" if line_above.strip() else _line_end(text)


def _top(text: str, found: RuleList, index: int) -> int:
    """Returns the offset of a rule together with the comments directly above it."""
    dash = found.starts[index]
    line = _line_start(text, dash)
    mark = text[line:dash] + "#"
    while True:
        above = _line_start(text, line - (2 if text[line - 2 : line] == "\r\n" else 1))
        if not text.startswith(mark, above):
            return line
        line = above


def _line_start(text: str, at: int) -> int:
    return max(text.rfind("\n", 0, at), text.rfind("\r", 0, at)) + 1


def _line_end(text: str) -> str:
    """Returns the line end that this file uses."""
    found = _LINE_END.search(text)
    return found.group() if found else "\n"


def find_rules(text: str, *, is_json: bool) -> RuleList | None:
    """Finds the list of rules; None if an alias stands in its place."""
    readable = without_escapes(text) if is_json else text
    start, bodies = _items(readable)
    if start is None or not bodies:
        return None
    if start.flow_style:
        return RuleList(True, bodies, bodies)
    dashes = _dashes(readable, _offset(start))
    return RuleList(False, dashes[: len(bodies)], bodies)


def without_escapes(text: str) -> str:
    """Masks what JSON allows and libyaml refuses. All offsets stay the same."""
    masked = _ESCAPE.sub(lambda found: "x" * len(found.group()), text)
    return _CONTROL.sub("x", masked)


def _items(text: str) -> tuple[Any, list[int]]:
    """Returns the event that opens the list of rules, and the offsets of its items."""
    start: Any = None
    bodies: list[int] = []
    depth, inside = 0, False
    key: str | None = None
    for event in yaml.parse(text, Loader=LOADER):
        if isinstance(event, yaml.NodeEvent):
            if depth == 1 and key is None:
                key = getattr(event, "value", "")
            elif depth == 1:
                inside = key == "rules" and isinstance(event, yaml.SequenceStartEvent)
                start = event if inside else start
                key = None
            elif depth == 2 and inside:
                bodies.append(_offset(event))
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
    return start, bodies


def _offset(event: Any) -> int:
    return int(event.start_mark.index)


def _dashes(text: str, start: int) -> list[int]:
    """Returns the offsets of the dashes of the list that begins at `start`.

    All are in the same column. The dashes of lists inside it are further right.
    """
    marks = [
        token.start_mark
        for token in yaml.scan(text, Loader=LOADER)
        if isinstance(token, yaml.BlockEntryToken) and token.start_mark.index >= start
    ]
    return [mark.index for mark in marks if mark.column == marks[0].column]


def as_json(value: Any, indent: int | None = None) -> str:
    """Writes JSON that is also valid YAML, with every invisible character escaped."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    for hidden in (UNPRINTABLE, _REORDERS):
        text = hidden.sub(lambda found: f"\\u{ord(found.group()):04x}", text)
    return text


def as_flow(value: Any) -> str:
    """Writes YAML on one line, with quotes only if they are needed."""
    if isinstance(value, dict):
        members = [f"{as_flow(key)}: {as_flow(item)}" for key, item in value.items()]
        return "{" + ", ".join(members) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(as_flow(item) for item in value) + "]"
    if isinstance(value, str) and _WORD.fullmatch(value) and value.lower() not in _NO_WORDS:
        return value
    return as_json(value)


def as_block(rule: dict[str, Any]) -> list[str]:
    """Writes a rule as lines of YAML: one for each member, and for each part of its match."""
    lines: list[str] = []
    for name, value in rule.items():
        if name == "match":
            lines += ["match:", *(f"  {part}: {as_flow(item)}" for part, item in value.items())]
        else:
            lines.append(f"{name}: {as_flow(value)}")
    return lines
