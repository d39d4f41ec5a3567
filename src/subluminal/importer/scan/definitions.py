"""Judges the tools of one server as it lists them: every string of a definition, at any depth."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from subluminal.importer.scan.instructions import (
    credential_paths,
    hidden_orders,
    is_credential_parameter,
    plain_text,
)
from subluminal.importer.scan.rules import Finding, Level, Rule
from subluminal.importer.scan.unseen import find_hidden

_MIN_CHARS = 8
"""Shorter texts hold no order."""
_MAX_NAME_CHARS = 80
_REMOVE = "remove the server, then check what it was called with: `sub query server=NAME`"


class Tool(NamedTuple):
    """One tool of a server."""

    name: str
    definition: Any
    """as the server lists it; whatever JSON it is"""
    line: int | None = None
    """line in a manifest"""


class Text(NamedTuple):
    """A string of a definition."""

    place: str
    """where it is: `inputSchema.properties.path.description`"""
    text: str
    is_key: bool = False


def tools_from(listed: Sequence[Any]) -> list[Tool]:
    """Returns the tools in a list, as `tools/list` answers it. What is not a tool is left out."""
    return [
        Tool(each["name"], each)
        for each in listed
        if isinstance(each, dict) and isinstance(each.get("name"), str)
    ]


def texts_of(definition: Any) -> Iterator[Text]:
    """Yields every string of a definition and every name in it, in order."""
    waiting: list[tuple[str, Any]] = [("", definition)]
    while waiting:
        place, value = waiting.pop()
        if isinstance(value, str):
            yield Text(place, value)
        elif isinstance(value, dict):
            inside = [
                (f"{place}.{key}" if place else str(key), each) for key, each in value.items()
            ]
            for key in value:
                yield Text(place, str(key), is_key=True)
            waiting += reversed(inside)
        elif isinstance(value, list):
            waiting += [(f"{place}.{at}", each) for at, each in reversed(list(enumerate(value)))]


def definition_findings(tools: Sequence[Tool]) -> Iterator[Finding]:
    """Yields what is wrong with the texts of a server's tools, each kind once a tool."""
    for tool in tools:
        seen: set[tuple[Rule, str]] = set()
        for text in texts_of(tool.definition):
            for finding, kind in _of_text(tool, text):
                if (finding.rule, kind) not in seen:
                    seen.add((finding.rule, kind))
                    yield finding


def told_name(name: str) -> str:
    """Returns the name of a tool for a message, shortened."""
    return name if len(name) <= _MAX_NAME_CHARS else f"{name[: _MAX_NAME_CHARS - 1]}…"


def _of_text(tool: Tool, text: Text) -> Iterator[tuple[Finding, str]]:
    where = f"tool `{told_name(tool.name)}`"
    if text.place not in ("", "name"):
        where += f", {_shortened(text.place)}"
    for hidden in find_hidden(text.text):
        spelled = f": “{hidden.spelled}”" if hidden.spelled else ""
        message = f"{where}: {hidden.what}{spelled}"
        yield Finding(Rule.INVISIBLE_TEXT, Level.HIGH, message, tool.line, _REMOVE), hidden.what
    if text.is_key and is_credential_parameter(text.text):
        message = f"{where}: the parameter `{text.text}` takes the contents of a private key"
        yield Finding(Rule.CREDENTIAL_PATH, Level.HIGH, message, tool.line, _REMOVE), text.text
    if len(text.text) < _MIN_CHARS:
        return
    plain = plain_text(text.text)
    for order in hidden_orders(plain):
        message = f"{where} {order.what}: “{order.excerpt}”"
        finding = Finding(Rule.HIDDEN_INSTRUCTIONS, Level.CRITICAL, message, tool.line, _REMOVE)
        yield finding, order.what
    for path in credential_paths(plain):
        message = f"{where} tells the agent to read or pass on `{path}`"
        hint = "remove the server; if an agent has used it, rotate that credential"
        yield Finding(Rule.CREDENTIAL_PATH, Level.HIGH, message, tool.line, hint), path


def _shortened(place: str) -> str:
    return place if len(place) <= _MAX_NAME_CHARS else f"…{place[1 - _MAX_NAME_CHARS :]}"
