"""Where the rules of a policy stand in its text, so that one more can be put among them.

The text is known to be a valid bundle; only its places are asked for here.
"""

import re
from typing import Any, NamedTuple

import yaml

from subluminal.policy.text.yaml_nodes import LOADER

_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{4}|.)", re.DOTALL)
_CONTROL = re.compile(r"[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


class RuleList(NamedTuple):
    """The list under `rules`, by offsets into the text."""

    is_flow: bool
    """between brackets, not behind dashes"""
    starts: list[int]
    """of each rule: its dash, or its first character"""
    bodies: list[int]
    """where each rule's value begins"""


def find_rules(text: str, *, is_json: bool) -> RuleList | None:
    """Returns the list of rules; None where it stands somewhere else, behind an alias."""
    readable = _without_escapes(text) if is_json else text
    start, bodies = _items(readable)
    if start is None or not bodies:
        return None
    if start.flow_style:
        return RuleList(True, bodies, bodies)
    dashes = _dashes(readable, _offset(start))
    return RuleList(False, dashes[: len(bodies)], bodies)


def _without_escapes(text: str) -> str:
    """The same text as far as places go: JSON has escapes and characters that libyaml refuses."""
    masked = _ESCAPE.sub(lambda found: "x" * len(found.group()), text)
    return _CONTROL.sub("x", masked)


def _items(text: str) -> tuple[Any, list[int]]:
    """The event that opens the list of rules, and where its items begin."""
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
    """Where the dashes of the list stand that begins at `start`. All have the column of the first;
    those of lists inside it stand further right."""
    marks = [
        token.start_mark
        for token in yaml.scan(text, Loader=LOADER)
        if isinstance(token, yaml.BlockEntryToken) and token.start_mark.index >= start
    ]
    return [mark.index for mark in marks if mark.column == marks[0].column]
