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
from subluminal.importer.clients.table import CLIENTS, CODEX
from subluminal.importer.drift import Finding, findings
from subluminal.importer.hooks.entries import HookWish
from subluminal.importer.importing import Target, find_targets, import_targets, with_hooks
from subluminal.importer.restoring import Restorer
from subluminal.importer.wrapper import Installation, our_installation
from subluminal.operator.codex_hooks import our_codex_hooks
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

    def targets(
        self, scope: Scope | None, hooks: HookWish | None = None, *, even_new: bool = False
    ) -> list[Target]:
        """Returns the files to import. Raises SubluminalError if there are none.

        With `hooks`, the file of the hooks of each client that is used here is among them, and of
        a client that was named and has a configuration; with `even_new`, of every named one.
        """
        found: dict[str, Target] = {}
        for client in self.clients:
            for target in find_targets(client, self.scene, path=self.path, scope=scope):
                # Two clients may read one file; it is wrapped once.
                found.setdefault(os.path.realpath(target.path), target)
        targets = list(found.values())
        if hooks is not None and self.path is None and scope is not Scope.PROJECT:
            named = len(self.clients) == 1 and (even_new or bool(targets))
            for client in self.clients:
                if client.hooks is not None and (named or self._uses(client)):
                    targets = with_hooks(targets, client, self.scene, hooks)
        if not targets:
            raise self._nothing_found(scope)
        return targets

    def _uses(self, client: Client) -> bool:
        """Whether a client with hooks is used here."""
        own = [f.path for f in client.files(self.scene) if f.scope is Scope.USER]
        folder = client.hooks.folder(self.scene) if client.hooks else ""
        return any(os.path.exists(path) for path in (folder, *own))

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
            "name another file with `--path`"
            + (", or add hooks alone with `--hooks`" if client.hooks else ""),
        )


def untrusted_hooks(scene: Scene) -> dict[str, str]:
    """Asks Codex which of our hooks it does not trust. Returns their hashes by key."""
    return {each.key: each.hash for each in our_codex_hooks(scene) if not each.is_trusted}


def trust_hooks(here: Surroundings, hashes: Mapping[str, str]) -> None:
    """Writes into Codex' configuration that it trusts these hooks, after a backup."""
    path = CODEX.files(here.scene)[0].path
    target = Target(CODEX, path, Scope.USER, trusted=hashes)
    import_targets([target], here.ours, here.places)


def is_ci(environ: Mapping[str, str]) -> bool:
    """Whether this is a job of a CI system, by the variable that all of them set."""
    return environ.get("CI", "").lower() not in ("", "0", "false")


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
