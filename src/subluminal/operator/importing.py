"""Which clients' configurations `sub import` and `sub restore` work on, and with what."""

import os
from collections.abc import Mapping
from typing import NamedTuple

from subluminal.config.loading import load_settings
from subluminal.config.places import Places, places
from subluminal.contracts.vocabulary import SecretSource
from subluminal.errors import SubluminalError, UsageError
from subluminal.importer.binding import Binder
from subluminal.importer.clients.description import Client, Scene, Scope
from subluminal.importer.clients.table import CLIENTS
from subluminal.importer.drift import Finding, findings
from subluminal.importer.importing import Target, find_targets
from subluminal.importer.restoring import Restorer
from subluminal.importer.wrapper import Installation, our_installation
from subluminal.secrets.resolving import Sources


class Surroundings(NamedTuple):
    """The environment, directory, home and clients that an import or restore is about."""

    environ: Mapping[str, str]
    scene: Scene
    places: Places
    clients: list[Client]
    path: str | None
    """the only configuration to look at, else None"""

    @property
    def ours(self) -> Installation:
        """The `sub` that wrapped entries start."""
        return our_installation(self.places, self.scene.user_home)

    def targets(self, scope: Scope | None) -> list[Target]:
        """Returns the files to import. Raises SubluminalError if there are none."""
        found: dict[str, Target] = {}
        for client in self.clients:
            for target in find_targets(client, self.scene, path=self.path, scope=scope):
                # Two clients may read one file; it is wrapped once.
                found.setdefault(os.path.realpath(target.path), target)
        if not found:
            raise self._nothing_found(scope)
        return list(found.values())

    def drift(self, scope: Scope | None) -> list[Finding]:
        """Returns the servers that do not go through a shim."""
        return findings(
            self.scene, self.places, self.ours, self.clients, path=self.path, scope=scope
        )

    def binder(self, source: str | None) -> Binder:
        """Returns what moves secrets out of configurations."""
        return Binder(self.environ, self.places, SecretSource(source) if source else None)

    def restorer(self) -> Restorer:
        """Returns what undoes imports of this home."""
        settings = load_settings(self.places.settings)
        return Restorer(self.places, Sources(self.environ, self.places, settings.secrets))

    def _nothing_found(self, scope: Scope | None) -> SubluminalError:
        if len(self.clients) > 1:
            return SubluminalError(
                "found no client's configuration", hint="name the file with `--path`"
            )
        (client,) = self.clients
        looked = [f.path for f in client.files(self.scene) if scope in (None, f.scope)]
        return SubluminalError(
            f"found no configuration of {client.title}",
            hint=f"looked for {', '.join(f'`{path}`' for path in looked)}; "
            "name another file with `--path`",
        )


def surroundings(
    environ: Mapping[str, str], cwd: str, client: str | None, path: str | None
) -> Surroundings:
    """Returns the surroundings of an import of one client, or of every known client."""
    if path and not client:
        raise UsageError("`--path` needs the name of the client that the file belongs to")
    clients = [CLIENTS[client]] if client else list(CLIENTS.values())
    return Surroundings(environ, Scene(environ, cwd), places(environ), clients, path)


def scope_of(word: str) -> Scope | None:
    """Returns the scope that `--scope` names; None for all."""
    return None if word == "all" else Scope(word)
