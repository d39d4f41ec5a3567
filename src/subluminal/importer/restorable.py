"""Which files a restore looks at: the client's files here, and those imported from elsewhere."""

import os

from subluminal.config.places import Places
from subluminal.errors import SubluminalError
from subluminal.importer.backups import list_backups
from subluminal.importer.clients.description import Client, Scene, Scope
from subluminal.importer.files import read_config
from subluminal.importer.hooks.entries import HookWish
from subluminal.importer.importing import Target, find_targets


def restorable(
    client: Client,
    scene: Scene,
    places: Places,
    *,
    path: str | None = None,
    scope: Scope | None = None,
) -> list[Target]:
    """Returns the client's files here, and its files that were imported from elsewhere."""
    imported = [b.manifest for b in list_backups(places) if b.manifest.client == client.name]
    hooked = {manifest.real_path for manifest in imported if manifest.hooks}
    targets = find_targets(client, scene, path=path, scope=scope)
    if path is None and scope is None:
        known = {os.path.realpath(target.path) for target in targets}
        elsewhere = {manifest.real_path: manifest.path for manifest in imported}
        if client.hooks is not None:
            own = client.hooks.file(scene)
            elsewhere.setdefault(os.path.realpath(own), own)
        targets += [
            # A link may lead elsewhere by now.
            Target(client, shown if os.path.realpath(shown) == real else real)
            for real, shown in elsewhere.items()
            if real not in known and os.path.exists(real)
        ]
    with_hooks = [t._replace(hooks=_hooks_in(t, scene, hooked)) for t in targets]
    return [t for t in with_hooks if t.hooks or not _is_for_hooks(t, scene)]


def _hooks_in(target: Target, scene: Scene, hooked: set[str]) -> HookWish | None:
    """Tells whether a file has hooks of ours. Where no import has been, nothing is parsed."""
    if os.path.realpath(target.path) in hooked:
        return HookWish()
    if target.client.hooks is None or not _is_place_of_hooks(target, scene):
        return None
    try:
        data = read_config(target.path).data
    except SubluminalError:
        return None  # not a file that can be restored, and perhaps not one that has to be
    return HookWish() if b"hook" in data and target.client.name.encode() in data else None


def _is_place_of_hooks(target: Target, scene: Scene) -> bool:
    shape = target.client.hooks
    return bool(shape and os.path.realpath(shape.file(scene)) == os.path.realpath(target.path))


def _is_for_hooks(target: Target, scene: Scene) -> bool:
    """Whether a file has nothing but hooks."""
    shape = target.client.hooks
    return bool(shape and not shape.beside_servers and _is_place_of_hooks(target, scene))
