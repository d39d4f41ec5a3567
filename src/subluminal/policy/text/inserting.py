"""Puts a rule into a policy's text and leaves every other byte as it is: comments, order, quotes,
anchors, line ends. Pure: bytes in, bytes out.

The text is only ever added to. What comes out is read again: it must be the same policy with one
rule more, or nothing is returned.
"""

import re
from typing import Any, NamedTuple

from subluminal.canonical import AmbiguousJSON, encode, parse
from subluminal.errors import InvalidInput, SubluminalError
from subluminal.policy.text.reading import BOM, read_document
from subluminal.policy.text.rule_list import RuleList, find_rules
from subluminal.policy.text.writing import as_block, as_flow, as_json

_LINE_END = re.compile(r"\r\n|\r|\n")
_MAX_GAP = 8
"""Spaces behind a dash that are copied; more is an accident."""


class Addition(NamedTuple):
    """New text at an offset of the old one."""

    at: int
    text: str


def insert_rule(data: bytes, index: int, rule: dict[str, Any]) -> bytes:
    """Returns a policy file with a rule before its rule `index`. Raises SubluminalError."""
    bom = BOM if data.startswith(BOM) else b""
    text = data[len(bom) :].decode("utf-8")
    is_json = _is_json(text)
    found = find_rules(text, is_json=is_json)
    wanted = _with_rule(data, index, rule)
    for each in _additions(text, found, index, rule, is_json=is_json) if found else []:
        made = bom + (text[: each.at] + each.text + text[each.at :]).encode()
        if _value(made) == wanted:
            return made
    raise SubluminalError(
        "the list of rules is written in a way that cannot be edited safely",
        hint=f"put this rule in by hand: {as_flow(rule)}",
    )


def _is_json(text: str) -> bool:
    try:
        parse(text.strip(" \t\r\n").encode())
    except AmbiguousJSON:
        return False
    return True


def _with_rule(data: bytes, index: int, rule: dict[str, Any]) -> bytes:
    value = read_document(data, "")[0].value
    rules = value["rules"]
    return encode({**value, "rules": [*rules[:index], rule, *rules[index:]]})


def _value(data: bytes) -> bytes | None:
    try:
        document, problems = read_document(data, "")
    except InvalidInput:
        return None
    return None if problems else encode(document.value)


def _additions(
    text: str, found: RuleList, index: int, rule: dict[str, Any], *, is_json: bool
) -> list[Addition]:
    """Ways to write it, the most pleasing first."""
    if found.is_flow:
        return [_in_flow(text, found, index, rule, is_json=is_json)]
    lines = _block_lines(text, found, index, rule) + _blank_line(text, found, index)
    # A comment above a rule is about that rule. What looks like one may be part of a long text;
    # then the first way gives another policy, and the second is taken.
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
    """How much further in a rule's members stand, where each has a line of its own."""
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
    """An empty line behind the new rule where the rules around are set apart by one."""
    second = max(index, 1)
    if second == len(found.starts):
        return ""
    line_above = text[: _top(text, found, second)].splitlines()[-1]
    return "" if line_above.strip() else _line_end(text)


def _top(text: str, found: RuleList, index: int) -> int:
    """Where a rule begins together with the comments right above it, at its own column."""
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
    """How this file ends its lines."""
    found = _LINE_END.search(text)
    return found.group() if found else "\n"
