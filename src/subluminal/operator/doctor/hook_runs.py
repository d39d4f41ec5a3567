"""Finds recent runs in which shims took calls, and no hook did: the client skipped its hooks."""

import os
import re

from subluminal.clock import now
from subluminal.config.places import Places
from subluminal.importer.backups import list_backups
from subluminal.importer.clients.description import Client, Scene
from subluminal.importer.hooks.finding import shape_of
from subluminal.journal.reading import directories_in, files_in
from subluminal.timestamps import parse_rfc3339

_DAYS = 7
_MAX_RUNS = 200
_MAX_BYTES = 1 << 20
"""How much of each journal is read."""
_HOOKED = b'"transport":"agent_hook"'
_SHIMMED = re.compile(rb'^\{"type":"tool_call_start".*"transport":"mcp_stdio"', re.MULTILINE)


def runs_without_hooks(client: Client, scene: Scene, places: Places) -> list[str]:
    """Returns the runs of a client since its hooks were imported that have calls of shims only."""
    since_ms = _hooked_since(client, scene, places)
    if since_ms is None:
        return []
    since_ms = max(since_ms, now().wall_ms - _DAYS * 86_400_000)
    found = [(_began_ms(folder), folder) for folder in directories_in(places.journal)]
    recent = sorted(each for each in found if each[0] > since_ms)[-_MAX_RUNS:]
    mark = b'"client":"%b"' % client.name.encode()
    return [os.path.basename(folder) for _, folder in recent if _is_unhooked(folder, mark)]


def _hooked_since(client: Client, scene: Scene, places: Places) -> int | None:
    """Returns when the newest import changed the file of the hooks; None if none did."""
    real = os.path.realpath(shape_of(client).file(scene))
    stamps = [
        parse_rfc3339(backup.manifest.created_at)
        for backup in list_backups(places, real)
        if backup.manifest.hooks
    ]
    return max(stamps, default=None)


def _began_ms(folder: str) -> int:
    """Returns when the first event of a run was written; 0 if it cannot be told."""
    stamps = []
    for file in files_in(folder, ""):
        match = re.search(rb'"ts":"([^"]+)"', _head(file.path)[:1024])
        if match:
            stamps.append(parse_rfc3339(match[1].decode()))
    return min(stamps, default=0)


def _is_unhooked(folder: str, mark: bytes) -> bool:
    journals = [_head(file.path) for file in files_in(folder, "")]
    if any(_HOOKED in each for each in journals) or not any(mark in each for each in journals):
        return False
    return any(_SHIMMED.search(each) for each in journals)


def _head(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(_MAX_BYTES)
    except OSError:
        return b""
