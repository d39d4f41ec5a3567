"""Behind `sub scan`: reads configurations, manifests and recorded definitions, and has them judged.

Starts no program and opens no socket: the ledger is read from its file. What ledgerd has not read
yet is not in that file, and the caller is told so.
"""

import os
from collections.abc import Sequence
from importlib.util import find_spec
from typing import NamedTuple

from subluminal.config.places import Places
from subluminal.errors import SubluminalError, UsageError
from subluminal.importer.clients.description import Client, Scene
from subluminal.importer.clients.table import CLIENTS, CODEX, OPENCODE, VSCODE
from subluminal.importer.document import Document, Entry, EntryKind, parse
from subluminal.importer.files import read_config
from subluminal.importer.hooks.configured import configured_hooks
from subluminal.importer.importing import Target, find_targets
from subluminal.importer.overrides import overrides_of
from subluminal.importer.scan.approval import read_settings
from subluminal.importer.scan.definitions import Tool
from subluminal.importer.scan.entries import Surroundings, exposure_finding
from subluminal.importer.scan.exposure import find_exposure
from subluminal.importer.scan.manifest import Manifest, read_manifest
from subluminal.importer.scan.rules import Row
from subluminal.importer.scan.scanning import Configured, Definitions, scan_document
from subluminal.importer.wrapper import Installation, our_installation
from subluminal.operator.doctor.hook_switches import switched_off

_EVENT = "SubScan"
"""An event that no client has; the hooks are only looked for."""
_CATCH_UP = "`sub query tools` brings the ledger up to date"


class Gathered(NamedTuple):
    """The entries of all configurations, and the files that could not be read."""

    entries: list[Configured]
    bare: list[Row]
    """files without servers into which others can write one"""
    problems: list[SubluminalError]


class Recorded(NamedTuple):
    """The definitions on record."""

    definitions: Definitions
    note: str = ""
    """what is missing; empty if nothing is"""


def gather(scene: Scene, places: Places, clients: Sequence[Client], path: str | None) -> Gathered:
    """Reads and judges the configurations of some clients, or one file."""
    found = Gathered([], [], [])
    seen: set[str] = set()
    ours = _installation(places, scene)
    for client in clients:
        looker = _Looker(client, scene, ours)
        for target in _targets(client, scene, path):
            real = os.path.realpath(target.path)
            if real in seen:
                continue  # two clients may read one file; it is reported once
            seen.add(real)
            try:
                looker.look_at(target, found)
            except SubluminalError as problem:
                if path is not None:
                    raise
                found.problems.append(problem)
    return found


def _targets(client: Client, scene: Scene, path: str | None) -> list[Target]:
    targets = find_targets(client, scene, path=path)
    if path is None and client.reads_too is not None:
        outside = [each for each in client.reads_too(scene) if os.path.exists(each)]
        targets += [Target(client, each) for each in outside]
    return targets


def _installation(places: Places, scene: Scene) -> Installation | None:
    try:
        return our_installation(places, scene.user_home)
    except SubluminalError:
        return None  # then nothing is compared with it


class _Looker:
    """Judges the files of one client. What all of them share is read once, when it is needed."""

    def __init__(self, client: Client, scene: Scene, ours: Installation | None) -> None:
        self._client = client
        self._scene = scene
        self._ours = ours
        self._shared: Surroundings | None = None

    def look_at(self, target: Target, found: Gathered) -> None:
        """Adds what is found in one file. Raises SubluminalError if it cannot be read."""
        document = parse(self._client, target.path, read_config(target.path).data)
        exposure = find_exposure(target.path)
        if exposure is not None and not document.entries:
            finding = exposure_finding(exposure, 1)
            found.bare.append(Row("", self._client.name, target.path, 1, None, (finding,)))
        if self._shared is None:
            self._shared = self._surroundings()
        shared = self._shared._replace(scope=target.scope, exposure=exposure)

        def around(entry: Entry) -> Surroundings:
            return shared._replace(overrides=self._overrides(document, entry, target))

        found.entries.extend(scan_document(document, around))

    def _surroundings(self) -> Surroundings:
        return Surroundings(
            scope=None,
            user_home=self._scene.user_home,
            settings=read_settings(self._client, self._scene),
            hooked=_is_hooked(self._client, self._scene),
            has_hooks=self._client.hooks is not None,
        )

    def _overrides(self, document: Document, entry: Entry, target: Target) -> tuple[str, ...]:
        if self._ours is None or entry.kind is not EntryKind.STDIO:
            return ()
        return overrides_of(document.client, entry, target.scope, self._ours)


def _is_hooked(client: Client, scene: Scene) -> bool:
    """Whether the client's files have our hooks, and no setting switches them off."""
    if client.hooks is None:
        return False
    try:
        return bool(configured_hooks(client, scene, _EVENT)) and not switched_off(client, scene)
    except SubluminalError:
        return False


def client_of(path: str, scene: Scene) -> Client:
    """Returns the client that a file belongs to, by its name or by what is in it."""
    real = os.path.realpath(os.path.join(scene.cwd, path))
    for client in CLIENTS.values():
        if real in [os.path.realpath(file.path) for file in client.files(scene)]:
            return client
    by_table = {"mcpServers": CLIENTS["claude"], "servers": VSCODE, "mcp": OPENCODE}
    if real.endswith(".toml"):
        return CODEX
    root = parse(CLIENTS["claude"], path, read_config(real).data).root
    for name, client in by_table.items():
        if root.get(name) is not None:
            return client
    raise UsageError(
        f"cannot tell which client `{path}` belongs to",
        hint="name the client: `sub scan CLIENT --path FILE`",
    )


def read_manifests(paths: Sequence[str]) -> list[Manifest]:
    """Reads manifests. Raises SubluminalError if one of them is not a manifest."""
    return [read_manifest(path, read_config(path).data) for path in paths]


def recorded_definitions(places: Places) -> Recorded:
    """Returns the latest definitions on record, without starting or asking ledgerd."""
    from subluminal.journal.reading import journal_files

    if not os.path.exists(places.ledger):
        missing = bool(journal_files(places.journal))
        return Recorded({}, f"no ledger yet, so no definitions; {_CATCH_UP}" if missing else "")
    if find_spec("apsw") is None:
        return Recorded({}, "the definitions on record need `pip install 'subluminal[daemon]'`")
    from subluminal.ledger.client.direct import is_current
    from subluminal.ledger.query.tools import tool_definitions
    from subluminal.ledger.store.database import open_reader

    try:
        connection = open_reader(places.ledger)
    except SubluminalError as problem:
        return Recorded({}, f"the definitions on record were not read: {problem}")
    found: dict[str, list[Tool]] = {}
    try:
        for (server, name), definition in tool_definitions(connection).items():
            if definition is not None:
                found.setdefault(server, []).append(Tool(name, definition))
    finally:
        connection.close()
    note = (
        "" if is_current(places) else f"the newest definitions are not in the ledger; {_CATCH_UP}"
    )
    return Recorded(found, note)
