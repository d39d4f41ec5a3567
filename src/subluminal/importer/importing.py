"""Imports configurations: reads all files and works out all changes, then backs up and replaces.

A file that changes in between is read and worked out again. If a later file cannot be written, the
earlier files get their bytes back: an import changes all of its files, or none.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

from subluminal.config.places import Places
from subluminal.errors import SubluminalError
from subluminal.importer.backups import Backup, make_backup
from subluminal.importer.clients.description import Client, Scene, Scope
from subluminal.importer.files import (
    FileChanged,
    ReadFile,
    create,
    missing_folders,
    read_config,
    read_if_there,
    refuse_unwritable,
    remove,
    remove_folders,
    replace,
)
from subluminal.importer.hooks.entries import HookWish
from subluminal.importer.overrides import is_in_repository
from subluminal.importer.proposal import Action, Proposal, make_proposal
from subluminal.importer.wrapper import Installation
from subluminal.secrets.private_files import locked

MAX_ATTEMPTS = 5
"""Attempts to replace a file that another program keeps changing."""


class Target(NamedTuple):
    """A configuration file, and the client that reads it."""

    client: Client
    path: str
    scope: Scope | None = None
    hooks: HookWish | None = None
    """given if the file has the client's hooks, and they are wanted"""
    trusted: Mapping[str, str] = {}
    """hashes by which Codex is to trust hooks, by the hook's key"""

    @property
    def may_be_new(self) -> bool:
        """Whether an import creates the file if it does not exist."""
        return self.hooks is not None or bool(self.trusted)


class Bound(NamedTuple):
    """The result of moving the secrets of one file into a secret store."""

    notes: Mapping[tuple[str, ...], str]
    """text that replaces each secret in the configuration, by the path of its variable"""
    scrub: Callable[[bytes], bytes]
    """replaces the moved secrets in older bytes of the same file"""


Bind = Callable[[Proposal], Bound]


class Done(NamedTuple):
    """A file that was imported."""

    proposal: Proposal
    backup: Backup


def find_targets(
    client: Client, scene: Scene, *, path: str | None = None, scope: Scope | None = None
) -> list[Target]:
    """Returns the client's files that exist, or just `path`, whether it exists or not."""
    if path is not None:
        full = os.path.abspath(os.path.join(scene.cwd, path))
        return [Target(client, full, _scope_of(client, scene, full))]
    found: dict[str, Target] = {}
    for file in client.files(scene):
        if scope in (None, file.scope) and os.path.lexists(file.path):
            real = os.path.realpath(file.path)
            found.setdefault(real, Target(client, file.path, file.scope))
    return [target for real, target in found.items() if os.path.exists(real)]


def with_hooks(targets: list[Target], client: Client, scene: Scene, wish: HookWish) -> list[Target]:
    """Returns targets with the file of a client's hooks among them."""
    assert client.hooks is not None, "the caller has checked"
    path = client.hooks.file(scene)
    real = os.path.realpath(path)
    if any(os.path.realpath(target.path) == real for target in targets):
        return [
            target._replace(hooks=wish) if os.path.realpath(target.path) == real else target
            for target in targets
        ]
    return [*targets, Target(client, path, Scope.USER, wish)]


def without_hooks(targets: list[Target]) -> list[Target]:
    """Returns targets without hooks, and without the files that would have only hooks."""
    return [
        target._replace(hooks=None)
        for target in targets
        if target.hooks is None or _has_servers(target)
    ]


def _has_servers(target: Target) -> bool:
    hooks = target.client.hooks
    return bool(hooks and hooks.beside_servers and os.path.exists(target.path))


def _scope_of(client: Client, scene: Scene, path: str) -> Scope | None:
    """Returns the scope of a file that was named; None if it is neither known nor in a project."""
    real = os.path.realpath(path)
    known = [file.scope for file in client.files(scene) if os.path.realpath(file.path) == real]
    return known[0] if known else Scope.PROJECT if is_in_repository(real) else None


def propose_import(target: Target, ours: Installation) -> tuple[Proposal, ReadFile | None]:
    """Reads a file and works out what an import would change in it.

    The file is None if the import would create it.
    """
    found = read_if_there(target.path) if target.may_be_new else read_config(target.path)
    proposal = _proposal(target, found, ours)
    if proposal.changes and found is None:
        missing_folders(target.path)
    elif proposal.changes and found is not None:
        refuse_unwritable(target.path, found)
    return proposal, found


def _proposal(
    target: Target,
    found: ReadFile | None,
    ours: Installation,
    replacements: dict[tuple[str, ...], str] | None = None,
) -> Proposal:
    return make_proposal(
        target.client,
        target.path,
        found.data if found else b"",
        ours,
        scope=target.scope,
        replacements=replacements,
        hooks=target.hooks,
        trusted=target.trusted,
    )


def import_targets(
    targets: list[Target], ours: Installation, places: Places, bind: Bind | None = None
) -> list[Done]:
    """Imports files and returns those that were changed. If it raises, no file was changed."""
    with one_at_a_time(places):
        ready = [(target, *propose_import(target, ours)) for target in targets]
        done: list[tuple[Done, ReadFile | None]] = []
        try:
            for target, proposal, found in ready:
                made = _import_one(target, proposal, found, ours, places, bind)
                if made:
                    done.append(made)
        except SubluminalError:
            for finished, found in reversed(done):
                _put_back(finished, found)
            raise
    return [finished for finished, _ in done]


@contextmanager
def one_at_a_time(places: Places) -> Iterator[None]:
    """Holds a lock that keeps other imports and restores of this home out."""
    try:
        lock = locked(os.path.join(places.backups, "all"))
        lock.__enter__()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise SubluminalError(
            f"cannot write to the backup directory `{places.backups}`: {reason}",
            hint="nothing was changed, because a change needs a backup; check SUB_HOME",
        ) from None
    try:
        yield
    finally:
        lock.__exit__(None, None, None)


def _import_one(
    target: Target,
    proposal: Proposal,
    found: ReadFile | None,
    ours: Installation,
    places: Places,
    bind: Bind | None,
) -> tuple[Done, ReadFile | None] | None:
    for _ in range(MAX_ATTEMPTS):
        before = proposal.before
        if bind and any(row.secrets for row in proposal.rows):
            bound = bind(proposal)
            before = bound.scrub(before)
            proposal = _proposal(target, found, ours, dict(bound.notes))
        if not proposal.changes:
            return None
        backup = _back_up(proposal, found, before, places)
        try:
            if found is None:
                create(target.path, proposal.after)
            else:
                replace(found, proposal.after)
        except FileChanged:
            backup.discard()
            proposal, found = propose_import(target, ours)
        except SubluminalError:
            backup.discard()
            raise
        else:
            return Done(proposal, backup), found
    raise keeps_changing(target.path, "import")


def keeps_changing(path: str, verb: str) -> FileChanged:
    """The error for a file that changed at every attempt to replace it."""
    return FileChanged(
        f"another program keeps changing `{path}`",
        hint=f"close the client and {verb} again; the file was left as it is",
    )


def _back_up(proposal: Proposal, found: ReadFile | None, before: bytes, places: Places) -> Backup:
    wrapped = (Action.WRAP, Action.REFRESH, Action.KEEP)
    return make_backup(
        places,
        kind="import",
        client=proposal.client.name,
        path=proposal.path,
        real_path=os.path.realpath(proposal.path),
        before=before,
        after=proposal.after,
        servers=[list(row.path) for row in proposal.rows if row.action in wrapped],
        hooks=list(proposal.hooks.events) if proposal.hooks else [],
        trusted=proposal.trusted,
        new_folders=missing_folders(proposal.path) if found is None else None,
    )


def _put_back(done: Done, found: ReadFile | None) -> None:
    try:
        current = read_config(done.backup.manifest.real_path)
        if current.data == done.proposal.after:
            if found is None:
                remove(current)
                remove_folders(done.backup.manifest.folders)
            else:
                replace(current, done.proposal.before)
            done.backup.discard()
    except SubluminalError:
        return  # the backup stays, so `sub restore` can still undo the import
