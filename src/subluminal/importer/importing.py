"""Imports configurations: everything is read and planned first, then backed up and replaced.

A file that changes in between is read and planned again. If a later file cannot be written, the
earlier ones get their bytes back: an import happens as a whole, or not at all.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

from subluminal.config.places import Places
from subluminal.errors import SubluminalError
from subluminal.importer.backups import Backup, make_backup
from subluminal.importer.clients.description import Client, Scene, Scope
from subluminal.importer.files import FileChanged, Found, read_config, refuse_unwritable, replace
from subluminal.importer.planning import Action, Plan, make_plan
from subluminal.importer.wrapping import Installation
from subluminal.secrets.private_files import locked

MAX_ATTEMPTS = 5
"""A file that changes under our hands this often has a writer that will not stop."""


class Target(NamedTuple):
    """A file that is there, and what it is."""

    client: Client
    path: str
    scope: Scope | None = None


class Bound(NamedTuple):
    """What binding the secrets of a plan gave."""

    notes: Mapping[tuple[str, ...], str]
    """what stands in the configuration instead, by the variable's path"""
    scrub: Callable[[bytes], bytes]
    """takes the moved values out of other bytes of that file"""


Bind = Callable[[Plan], Bound]


class Done(NamedTuple):
    """One file that was imported."""

    plan: Plan
    backup: Backup


def find_targets(
    client: Client, scene: Scene, *, path: str | None = None, scope: Scope | None = None
) -> list[Target]:
    """The client's files that exist; the given one whether it exists or not."""
    if path is not None:
        return [Target(client, os.path.abspath(os.path.join(scene.cwd, path)))]
    found: dict[str, Target] = {}
    for file in client.files(scene):
        if scope in (None, file.scope) and os.path.lexists(file.path):
            real = os.path.realpath(file.path)
            found.setdefault(real, Target(client, file.path, file.scope))
    return [target for real, target in found.items() if os.path.exists(real)]


def plan_target(target: Target, ours: Installation) -> tuple[Plan, Found]:
    """Reads a file and plans its import."""
    found = read_config(target.path)
    plan = make_plan(target.client, target.path, found.data, ours, scope=target.scope)
    if plan.changes:
        refuse_unwritable(target.path, found)
    return plan, found


def import_targets(
    targets: list[Target], ours: Installation, places: Places, bind: Bind | None = None
) -> list[Done]:
    """Imports files. Returns those that were changed; raises if none was."""
    with one_at_a_time(places):
        ready = [(target, *plan_target(target, ours)) for target in targets]
        done: list[tuple[Done, Found]] = []
        try:
            for target, plan, found in ready:
                made = _import_one(target, plan, found, ours, places, bind)
                if made:
                    done.append(made)
        except SubluminalError:
            for finished, found in reversed(done):
                _put_back(finished, found)
            raise
    return [finished for finished, _ in done]


@contextmanager
def one_at_a_time(places: Places) -> Iterator[None]:
    """Keeps other imports and restores of this home out."""
    try:
        guard = locked(os.path.join(places.backups, "all"))
        guard.__enter__()
    except OSError as error:
        raise SubluminalError(f"cannot write in `{places.backups}`: {error.strerror}") from None
    try:
        yield
    finally:
        guard.__exit__(None, None, None)


def _import_one(
    target: Target,
    plan: Plan,
    found: Found,
    ours: Installation,
    places: Places,
    bind: Bind | None,
) -> tuple[Done, Found] | None:
    for _ in range(MAX_ATTEMPTS):
        before = plan.before
        if bind and any(row.secrets for row in plan.rows):
            bound = bind(plan)
            before = bound.scrub(before)
            plan = make_plan(
                target.client,
                target.path,
                found.data,
                ours,
                scope=target.scope,
                replacements=dict(bound.notes),
            )
        if not plan.changes:
            return None
        backup = _back_up(plan, found, before, places)
        try:
            replace(found, plan.after)
        except FileChanged:
            backup.discard()
            plan, found = plan_target(target, ours)
        except SubluminalError:
            backup.discard()
            raise
        else:
            return Done(plan, backup), found
    raise FileChanged(
        f"`{target.path}` is being changed by another program all the time",
        hint="close the client and import again",
    )


def _back_up(plan: Plan, found: Found, before: bytes, places: Places) -> Backup:
    wrapped = (Action.WRAP, Action.REFRESH, Action.KEEP)
    return make_backup(
        places,
        kind="import",
        client=plan.client.name,
        path=plan.path,
        real_path=found.path,
        before=before,
        after=plan.after,
        servers=[list(row.path) for row in plan.rows if row.action in wrapped],
    )


def _put_back(done: Done, found: Found) -> None:
    try:
        current = read_config(found.path)
        if current.data == done.plan.after:
            replace(current, done.plan.before)
            done.backup.discard()
    except SubluminalError:
        return  # the backup stays, and `sub restore` with it
