"""Finds settings of a client that switch its hooks off."""

import os
from collections.abc import Iterator
from typing import NamedTuple

from subluminal.errors import SubluminalError
from subluminal.importer.clients.description import Client, Scene
from subluminal.importer.files import read_config
from subluminal.importer.hooks.finding import shape_of
from subluminal.importer.text.json_tree import parse_json
from subluminal.importer.text.tree import Kind, Node

_MANAGED = "/etc/claude-code/managed-settings.json"
_CLAUDE = ("settings.json", "settings.local.json")


class Switch(NamedTuple):
    """A setting that switches hooks off."""

    path: str
    setting: str


_SWITCHES: dict[str, tuple[tuple[tuple[str, ...], bool], ...]] = {
    "claude": ((("disableAllHooks",), True), (("allowManagedHooksOnly",), True)),
    "gemini": ((("hooksConfig", "enabled"), False),),
    "copilot": ((("disableAllHooks",), True),),
}
"""Names and values that switch all hooks of a client off. Codex is asked itself."""


def switched_off(client: Client, scene: Scene) -> Switch | None:
    """Returns the first setting that switches a client's hooks off, here; None if there is none."""
    for path in _files(client, scene):
        root = _parsed(path)
        for names, off in _SWITCHES.get(client.name, ()):
            if root is not None and _at(root, names) is off:
                return Switch(path, f"{'.'.join(names)}: {str(off).lower()}")
    return None


def _files(client: Client, scene: Scene) -> Iterator[str]:
    folder = shape_of(client).folder(scene)
    match client.name:
        case "claude":
            yield _MANAGED
            yield from (os.path.join(folder, name) for name in _CLAUDE)
            for project in scene.project_folders():
                yield from (os.path.join(project, ".claude", name) for name in _CLAUDE)
        case "gemini":
            yield os.path.join(folder, "settings.json")
            for project in scene.project_folders():
                yield os.path.join(project, ".gemini", "settings.json")
        case "copilot":
            yield from (os.path.join(folder, name) for name in ("settings.json", "config.json"))


def _parsed(path: str) -> Node | None:
    try:
        return parse_json(read_config(path).data.decode("utf-8-sig"))
    except (SubluminalError, UnicodeDecodeError):
        return None  # a file that is not there, or not understood, switches nothing off


def _at(node: Node | None, names: tuple[str, ...]) -> object:
    for name in names:
        node = node.get(name) if node is not None and node.kind is Kind.TABLE else None
    return None if node is None else node.scalar
