"""Reads Agent-SPM's manifests of servers, and judges them by its nine rules."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from subluminal.errors import InvalidInput, Problem, SubluminalError
from subluminal.importer.document import locating
from subluminal.importer.scan.definitions import Tool, told_name
from subluminal.importer.scan.lines import Lines
from subluminal.importer.scan.rules import Finding, Level, Rule
from subluminal.importer.text.json_tree import parse_json
from subluminal.importer.text.tree import Kind, Node

_HIGH_RISK = (
    *("filesystem.write", "network.outbound", "process.spawn", "env.read", "shell.execute"),
    "database.admin",
)
_MEDIUM_RISK = ("filesystem.read", "network.inbound", "clipboard.write", "browser.navigate")
_EXCESSIVE = 3
_DANGEROUS = ("exec", "shell", "eval", "spawn", "system")
_TEXTS = ("name", "version", "publisher", "source")
_HINT = (
    "a manifest is an object with name, version, publisher, source, verified, permissions, tools"
)


class Manifest(NamedTuple):
    """What a server says about itself, before anyone starts it."""

    path: str
    name: str
    line: int
    texts: dict[str, str]
    verified: bool
    permissions: list[tuple[str, int]]
    """permissions, each with its line"""
    tools: list[Tool]


def read_manifest(path: str, data: bytes) -> Manifest:
    """Parses a manifest. Raises InvalidInput with file and line if it is not one."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise SubluminalError(f"`{path}` is not UTF-8 text", hint=_HINT) from None
    with locating(path):
        try:
            return _Reader(path, text).manifest()
        except InvalidInput as error:
            raise InvalidInput([p._replace(hint=p.hint or _HINT) for p in error.problems]) from None


class _Reader:
    """Reads one text, and remembers lines."""

    def __init__(self, path: str, text: str) -> None:
        self._path = path
        self._lines = Lines(text)
        self._root = parse_json(text)

    def manifest(self) -> Manifest:
        root = self._root
        if root.kind is not Kind.TABLE:
            raise self._wrong(root, "the manifest is not an object")
        texts = {name: self._text(name) for name in _TEXTS}
        if not texts["name"]:
            raise self._wrong(root, "the manifest has no `name`")
        name = root.member("name")
        return Manifest(
            self._path,
            texts["name"],
            self._lines.of(name.start if name else 0),
            texts,
            self._verified(),
            [
                (self._string(item, "a permission"), self._line(item))
                for item in self._list("permissions")
            ],
            [self._tool(item) for item in self._list("tools")],
        )

    def _line(self, node: Node) -> int:
        return self._lines.of(node.start)

    def _text(self, name: str) -> str:
        node = self._root.get(name)
        if node is None or node.raw == "null":
            return ""
        return self._string(node, f"`{name}`").strip()

    def _string(self, node: Node, what: str) -> str:
        if node.string is None:
            raise self._wrong(node, f"{what} is not a string")
        return node.string

    def _verified(self) -> bool:
        node = self._root.get("verified")
        if node is not None and node.raw not in ("true", "false", "null"):
            raise self._wrong(node, "`verified` is not true or false")
        return node is not None and node.scalar is True

    def _list(self, name: str) -> list[Node]:
        node = self._root.get(name)
        if node is None or node.raw == "null":
            return []
        if node.kind is not Kind.LIST:
            raise self._wrong(node, f"`{name}` is not a list")
        return node.items

    def _tool(self, node: Node) -> Tool:
        name = node.get("name") if node.kind is Kind.TABLE else None
        if name is None or not name.string:
            raise self._wrong(node, "a tool has no `name`")
        return Tool(name.string, node.value(), self._line(node))

    def _wrong(self, node: Node, message: str) -> InvalidInput:
        return InvalidInput([Problem(message, line=self._line(node), hint=_HINT)])


def manifest_findings(manifest: Manifest) -> Iterator[Finding]:
    """Yields what Agent-SPM's rules find in a manifest."""
    line = manifest.line
    if not manifest.texts["version"]:
        yield Finding(Rule.MISSING_VERSION, Level.MEDIUM, "no `version`", line, "add it")
    if not manifest.texts["publisher"]:
        yield Finding(Rule.MISSING_PUBLISHER, Level.MEDIUM, "no `publisher`", line, "add it")
    if not manifest.texts["source"]:
        yield Finding(Rule.MISSING_SOURCE, Level.HIGH, "no `source`", line, "add it")
    if not manifest.verified:
        hint = 'review the server, then set `"verified": true`'
        yield Finding(Rule.UNVERIFIED_SERVER, Level.HIGH, "not verified", line, hint)
    yield from _permissions(manifest)
    for tool in manifest.tools:
        if _is_dangerous(tool.name):
            message = f"tool `{told_name(tool.name)}` sounds as if it runs commands"
            hint = "check what it runs, and write a rule for it"
            yield Finding(Rule.DANGEROUS_TOOL_NAME, Level.HIGH, message, tool.line, hint)


def _permissions(manifest: Manifest) -> Iterator[Finding]:
    if not manifest.permissions:
        message, hint = "no permissions are declared", "declare what the server uses"
        yield Finding(Rule.NO_PERMISSIONS_DECLARED, Level.INFO, message, manifest.line, hint)
    hint = "check whether the server needs it"
    for name, line in manifest.permissions:
        if name in _HIGH_RISK:
            yield Finding(Rule.HIGH_RISK_PERMISSION, Level.HIGH, f"permission `{name}`", line, hint)
        elif name in _MEDIUM_RISK:
            rule = Rule.MEDIUM_RISK_PERMISSION
            yield Finding(rule, Level.MEDIUM, f"permission `{name}`", line, hint)
    risky = [line for name, line in manifest.permissions if name in _HIGH_RISK]
    if len(risky) >= _EXCESSIVE:
        message = f"{len(risky)} permissions of high risk"
        hint = "prefer a server that does less, or split it"
        yield Finding(Rule.EXCESSIVE_PERMISSIONS, Level.CRITICAL, message, risky[0], hint)


def _is_dangerous(name: str) -> bool:
    words = re.split(r"[^A-Za-z]+|(?<=[a-z])(?=[A-Z])", name)
    return any(word.lower().startswith(_DANGEROUS) for word in words)
