"""Each client's own switches that let an agent call tools without asking.

The switches are from the clients' documentation. A switch for single tools is a choice, and is not
reported.
"""

import os
from collections.abc import Iterator
from typing import NamedTuple

from subluminal.errors import SubluminalError
from subluminal.importer.clients.description import Client, Scene, shared_files
from subluminal.importer.document import Document, Entry
from subluminal.importer.files import read_config
from subluminal.importer.scan.rules import Level
from subluminal.importer.text.json_tree import parse_json
from subluminal.importer.text.tree import Kind, Node, place_of

_CLAUDE_NAMES = ("settings.json", "settings.local.json")


class Switch(NamedTuple):
    """A setting that switches approval off."""

    setting: str
    level: Level
    node: Node
    path: str = ""
    """the file, if it is not the entry's own"""
    server: str | None = None
    """the only server that it is about; None for all"""
    project_only: bool = False
    """True if it is about the servers of a project's file only"""

    @property
    def line(self) -> int:
        return place_of(self.node.text, max(self.node.start, 0))[0]


class Settings(NamedTuple):
    """The switches in the settings that a client reads besides its list of servers."""

    switches: tuple[Switch, ...] = ()

    def about(self, server: str, *, in_project: bool) -> Iterator[Switch]:
        """Yields the switches that cover one server."""
        for each in self.switches:
            if each.server in (None, server) and (in_project or not each.project_only):
                yield each


def read_settings(client: Client, scene: Scene) -> Settings:
    """Reads a client's settings. A file that is missing or broken has no switches."""
    found: list[Switch] = []
    for path in _files(client, scene):
        try:
            root = parse_json(read_config(path).data.decode("utf-8-sig"))
        except (SubluminalError, UnicodeDecodeError):
            continue
        found += [each._replace(path=path) for each in _READERS[client.name](root)]
    return Settings(tuple(found))


def switches_in(document: Document, entry: Entry) -> Iterator[Switch]:
    """Yields the switches for an entry that are in the same file."""
    reader = _BESIDE.get(document.client.name)
    for each in reader(document.root, entry) if reader else ():
        if each.server in (None, entry.server):
            yield each


def _files(client: Client, scene: Scene) -> list[str]:
    match client.name:
        case "claude":
            folder = scene.environ.get("CLAUDE_CONFIG_DIR") or scene.in_home(".claude")
            own = [os.path.join(folder, name) for name in _CLAUDE_NAMES]
            names = [os.path.join(".claude", name) for name in _CLAUDE_NAMES]
            return [*own, *shared_files(scene, *names)]
        case "vscode":
            own = [scene.in_app_support("Code", "User", "settings.json")]
            return [*own, *shared_files(scene, os.path.join(".vscode", "settings.json"))]
        case "cursor":
            own = [
                scene.in_home(".cursor", name) for name in ("permissions.json", "cli-config.json")
            ]
            names = [os.path.join(".cursor", name) for name in ("permissions.json", "cli.json")]
            return [*own, *shared_files(scene, *names)]
    return []


def _claude(root: Node) -> Iterator[Switch]:
    permissions = _table(root, "permissions")
    mode = permissions.get("defaultMode") if permissions else None
    if mode is not None and mode.string == "bypassPermissions":
        yield Switch('permissions.defaultMode: "bypassPermissions"', Level.HIGH, mode)
    every = root.get("enableAllProjectMcpServers") if root.kind is Kind.TABLE else None
    if every is not None and every.scalar is True:
        setting = "enableAllProjectMcpServers: true"
        yield Switch(setting, Level.MEDIUM, every, project_only=True)
    allowed = permissions.get("allow") if permissions else None
    yield from _claude_tools("permissions.allow", allowed)


def _claude_tools(where: str, allowed: Node | None) -> Iterator[Switch]:
    """Whole servers in a list of tools: `mcp__NAME`, `mcp__NAME__*` or `mcp__*`."""
    for item in allowed.items if allowed else ():
        word = item.string or ""
        name = word.removeprefix("mcp__").removesuffix("__*")
        if word.startswith("mcp__") and "__" not in name and name:
            server = None if name == "*" else name
            yield Switch(f"{where}: `{word}`", Level.MEDIUM, item, server=server)


def _vscode(root: Node) -> Iterator[Switch]:
    for name in ("chat.tools.global.autoApprove", "chat.tools.autoApprove"):
        node = root.get(name) if root.kind is Kind.TABLE else None
        if node is not None and node.scalar is True:
            yield Switch(f"{name}: true", Level.HIGH, node)


def _cursor(root: Node) -> Iterator[Switch]:
    """`NAME:*` in the list of the editor, `Mcp(NAME:*)` in that of the command line."""
    permissions = _table(root, "permissions")
    for where, allowed in (
        ("mcpAllowlist", root.get("mcpAllowlist") if root.kind is Kind.TABLE else None),
        ("permissions.allow", permissions.get("allow") if permissions else None),
    ):
        for item in allowed.items if allowed else ():
            word = item.string or ""
            inner = word[4:-1] if word.startswith("Mcp(") and word.endswith(")") else word
            server, _, tool = inner.replace(",", ":").partition(":")
            if (inner != word or where == "mcpAllowlist") and tool.strip() == "*":
                only = None if server == "*" else server
                yield Switch(f"{where}: `{word}`", Level.MEDIUM, item, server=only)


_READERS = {"claude": _claude, "vscode": _vscode, "cursor": _cursor}


def _beside_claude(root: Node, entry: Entry) -> Iterator[Switch]:
    """A project's part of `~/.claude.json` has a list of tools too."""
    if entry.path[0] == "projects":
        project = _table(_table(root, "projects"), entry.path[1])
        allowed = project.get("allowedTools") if project else None
        yield from _claude_tools("allowedTools", allowed)


def _beside_codex(root: Node, entry: Entry) -> Iterator[Switch]:
    mode = entry.node.get("default_tools_approval_mode")
    if mode is not None and mode.string == "approve":
        yield Switch('default_tools_approval_mode = "approve"', Level.MEDIUM, mode)
    policy, sandbox = root.get("approval_policy"), root.get("sandbox_mode")
    # With a sandbox, `never` means that calls which need approval fail.
    open_to_all = sandbox is not None and sandbox.string == "danger-full-access"
    if open_to_all and policy is not None and policy.string == "never":
        setting = 'approval_policy = "never" with sandbox_mode = "danger-full-access"'
        yield Switch(setting, Level.HIGH, policy)


def _beside_gemini(_root: Node, entry: Entry) -> Iterator[Switch]:
    trust = entry.node.get("trust")
    if trust is not None and trust.scalar is True:
        yield Switch("trust: true", Level.MEDIUM, trust)


def _beside_opencode(root: Node, entry: Entry) -> Iterator[Switch]:
    permission = root.get("permission")
    if permission is None:
        return
    if permission.string == "allow":
        yield Switch('permission: "allow"', Level.HIGH, permission)
    for name, level in (("*", Level.HIGH), (f"{entry.server}_*", Level.MEDIUM)):
        node = permission.get(name)
        if node is not None and node.string == "allow":
            yield Switch(f'permission."{name}": "allow"', level, node)


_BESIDE = {
    "claude": _beside_claude,
    "codex": _beside_codex,
    "gemini": _beside_gemini,
    "opencode": _beside_opencode,
}


def _table(node: Node | None, name: str) -> Node | None:
    found = node.get(name) if node is not None and node.kind is Kind.TABLE else None
    return found if found is not None and found.kind is Kind.TABLE else None
