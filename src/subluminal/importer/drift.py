"""Finds entries whose calls would not go through a shim (`sub import --check`, `sub doctor`)."""

import os
from collections.abc import Iterable, Iterator
from enum import Enum
from typing import NamedTuple

from subluminal.config.places import Places
from subluminal.errors import SubluminalError
from subluminal.importer.backups import Manifest, list_backups
from subluminal.importer.clients.description import Client, Scene, Scope
from subluminal.importer.clients.table import CLIENTS
from subluminal.importer.files import read_config
from subluminal.importer.hooks.entries import HookWish
from subluminal.importer.importing import Target, find_targets, propose_import
from subluminal.importer.overrides import overrides_in_file
from subluminal.importer.proposal import Action, HookRow, Proposal, Row, make_proposal
from subluminal.importer.wrapper import Installation
from subluminal.system.processes import commands


class DriftKind(Enum):
    """What is wrong."""

    UNWRAPPED = "unwrapped"
    STALE = "stale"
    """wrapped by another installation, or under another name"""
    MISSING_PROGRAM = "missing_program"
    """the wrapper names a `sub` that does not exist"""
    REFUSED = "refused"
    """the entry cannot be wrapped"""
    REMOTE = "remote"
    """the client reaches the server by URL, so its calls are not seen without hooks"""
    WIPED = "wiped"
    """the file, or all its servers, disappeared after an import"""
    UNREADABLE = "unreadable"
    OVERRIDES = "overrides"
    """a project's file sets what would take its servers out of the user's home, run or policy"""
    HOOKS = "hooks"
    """hooks that were imported are missing, or run another `sub`"""
    DAEMON = "daemon"
    """a background daemon of Codex keeps servers of an earlier run"""


class Finding(NamedTuple):
    """One problem, and what to do about it."""

    client: str
    kind: DriftKind
    message: str
    hint: str
    path: str = ""
    server: str = ""

    @property
    def is_mendable(self) -> bool:
        """Whether something can be done about it today."""
        return self.kind is not DriftKind.REMOTE


def findings(
    scene: Scene,
    places: Places,
    ours: Installation,
    clients: Iterable[Client] = tuple(CLIENTS.values()),
    *,
    path: str | None = None,
    scope: Scope | None = None,
) -> list[Finding]:
    """Checks the clients' files."""
    imported = imported_files(places)
    found: list[Finding] = []
    for client in clients:
        known = [m for m in imported if m.client == client.name]
        targets = find_targets(client, scene, path=path, scope=scope)
        if path is None and scope is None and client.reads_too is not None:
            outside = [each for each in client.reads_too(scene) if os.path.exists(each)]
            targets += [Target(client, each) for each in outside]
        # Where hooks were imported, they see the calls of remote servers too.
        unseen = not any(manifest.hooks for manifest in known)
        for target in targets:
            of_file = _of_file(target, ours, known)
            found += [each for each in of_file if unseen or each.is_mendable]
        if path is None and scope is not Scope.USER:
            found += _in_settings(client, scene)
        if path is None and scope is not Scope.PROJECT:
            found += hook_findings(client, scene, ours, known)
        if path is None and scope is None:
            found += _gone(client, known)
        if client.name == "codex":
            found += codex_daemons()
    # Two clients may read one file.
    return list(
        {(each.path, each.server, each.kind, each.message): each for each in found}.values()
    )


def _in_settings(client: Client, scene: Scene) -> Iterator[Finding]:
    """Finds settings of a project that set variables for every server of a client."""
    for path in client.variable_files(scene):
        names = overrides_in_file(path)
        if names:
            yield Finding(
                client.name,
                DriftKind.OVERRIDES,
                f"`{path}` belongs to a project and sets {_listed(names)} for all its servers",
                "remove it from the file, or do not start the client in this project",
                path,
            )


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def codex_daemons() -> Iterator[Finding]:
    """Finds background daemons of Codex.

    A daemon keeps the environment of the terminal that started it, and with it the run.
    """
    for pid, words in commands().items():
        if b"app-server" in words and b"--managed-daemon" in words:
            yield Finding(
                "codex",
                DriftKind.DAEMON,
                f"a background daemon of Codex (process {pid}) keeps its servers in an earlier run",
                f"close Codex and run `kill {pid}`; `codex --no-daemon` works without a daemon",
            )


def imported_files(places: Places) -> list[Manifest]:
    """Returns the newest import of each file that was not restored since."""
    newest = {b.manifest.real_path: b.manifest for b in list_backups(places)}
    return [manifest for manifest in newest.values() if manifest.kind == "import"]


def _of_file(target: Target, ours: Installation, known: list[Manifest]) -> Iterator[Finding]:
    name = target.client.name
    try:
        data = read_config(target.path)
        proposal = make_proposal(target.client, target.path, data.data, ours, scope=target.scope)
    except SubluminalError as error:
        hint = error.hint or f"fix the file, then run `sub import {name}`"
        yield Finding(name, DriftKind.UNREADABLE, str(error), hint, target.path)
        return
    real = data.path
    if not proposal.rows and any(m.real_path == real and m.servers for m in known):
        yield Finding(
            name,
            DriftKind.WIPED,
            f"`{target.path}` has lost all its servers since it was imported",
            f"find its backup with `sub restore --list`, then run `sub import {name}`",
            target.path,
        )
    for row in proposal.rows:
        if row.dropped:
            yield _override(proposal, row)
        finding = _of_row(proposal, row)
        # An override is the reason to refresh; it has been named.
        if finding and not (row.dropped and row.action is Action.REFRESH):
            yield finding


def hook_findings(
    client: Client, scene: Scene, ours: Installation, known: list[Manifest]
) -> Iterator[Finding]:
    """Finds hooks that are not as the import left them, or that another `sub` left there."""
    if client.hooks is None:
        return
    path = client.hooks.file(scene)
    real = os.path.realpath(path)
    was_imported = any(m.real_path == real and m.hooks for m in known)
    try:
        row = propose_import(Target(client, path, Scope.USER, HookWish()), ours)[0].hooks
    except SubluminalError as error:
        if was_imported:
            hint = error.hint or f"fix the file, then run `sub import {client.name}`"
            yield Finding(client.name, DriftKind.UNREADABLE, str(error), hint, path)
        return
    assert row is not None, "hooks were asked for"
    message = _of_hooks(client, path, row, was_imported)
    if message:
        hint = f"put them right with `sub import {client.name}`"
        yield Finding(client.name, DriftKind.HOOKS, message, hint, path)


def _of_hooks(client: Client, path: str, row: HookRow, was_imported: bool) -> str:
    """Returns what is wrong with the hooks of a file; empty if they are right, or not wanted."""
    if row.action is Action.WRAP and was_imported:
        return (
            f"hooks of {client.title} are missing from `{path}`: its own tools are not seen, or "
            "not all of their events"
        )
    if row.action is Action.REFRESH and row.program and not os.access(row.program, os.X_OK):
        return f"hooks in `{path}` cannot run: they name `{row.program}`, which does not exist"
    if row.action is Action.REFRESH:
        return f"hooks in `{path}` are of another installation, or of an earlier version"
    return ""


def _override(proposal: Proposal, row: Row) -> Finding:
    return Finding(
        proposal.client.name,
        DriftKind.OVERRIDES,
        f"`{row.server}` in `{proposal.path}` sets {_listed(row.dropped)}, which a project's file "
        "may not set",
        f"remove it with `sub import {proposal.client.name}`",
        proposal.path,
        row.server,
    )


def _of_row(proposal: Proposal, row: Row) -> Finding | None:
    # Without a scope it is not a file that an import would find by itself.
    path = "" if proposal.scope else f" --path {proposal.path}"
    again = f"`sub import {proposal.client.name}{path}`"
    where = f"`{row.server}` in `{proposal.path}`"
    match row.action:
        case Action.KEEP:
            return None
        case Action.REMOTE:
            kind, message = DriftKind.REMOTE, f"{where} is reached by URL: its calls are not seen"
            hint = "http and sse servers cannot be wrapped yet"
        case Action.WRAP:
            kind, message, hint = (
                DriftKind.UNWRAPPED,
                f"{where} is not wrapped",
                f"wrap it with {again}",
            )
        case Action.REFUSE:
            kind, message = DriftKind.REFUSED, f"{where} cannot be wrapped: {row.detail}"
            hint = "fix the entry by hand"
        case Action.REFRESH:
            kind, message = _stale(where, row)
            hint = f"refresh it with {again}"
    return Finding(proposal.client.name, kind, message, hint, proposal.path, row.server)


def _stale(where: str, row: Row) -> tuple[DriftKind, str]:
    program = row.program or ""
    if program and not os.access(program, os.X_OK):
        return (
            DriftKind.MISSING_PROGRAM,
            f"{where} cannot start: its wrapper names `{program}`, which does not exist",
        )
    return DriftKind.STALE, f"{where} is wrapped by another installation or under another name"


def _gone(client: Client, known: list[Manifest]) -> Iterator[Finding]:
    for manifest in known:
        if manifest.servers and not os.path.exists(manifest.real_path):
            yield Finding(
                client.name,
                DriftKind.WIPED,
                f"`{manifest.path}` was imported and does not exist any more",
                "find its backup with `sub restore --list`",
                manifest.path,
            )
