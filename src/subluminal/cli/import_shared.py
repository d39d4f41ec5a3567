"""What `sub import` and `sub restore` share: where they run, and which files they mean."""

import os
from collections.abc import Mapping
from typing import NamedTuple

from subluminal.cli.frame import Args
from subluminal.config.loading import load_settings
from subluminal.config.places import Places, places
from subluminal.contracts.vocabulary import SecretSource
from subluminal.errors import SubluminalError, UsageError
from subluminal.importer.binding import Binder
from subluminal.importer.clients.description import Client, Scene, Scope
from subluminal.importer.clients.table import CLIENTS
from subluminal.importer.importing import Target, find_targets
from subluminal.importer.restoring import Restorer
from subluminal.importer.wrapper import Installation, our_installation
from subluminal.secrets.resolving import Sources


class Surroundings(NamedTuple):
    """Where a command runs, and on whose files."""

    environ: Mapping[str, str]
    scene: Scene
    places: Places
    clients: list[Client]

    @staticmethod
    def of_this_command(args: Args) -> "Surroundings":
        """Reads the command line and the environment."""
        if args.path and not args.client:
            raise UsageError("`--path` needs the client that the file belongs to")
        clients = [CLIENTS[args.client]] if args.client else list(CLIENTS.values())
        scene = Scene(os.environ, os.getcwd())
        return Surroundings(os.environ, scene, places(os.environ), clients)

    @property
    def ours(self) -> Installation:
        return our_installation(self.places, self.scene.user_home)

    def binder(self, source: str | None) -> Binder:
        """Moves secrets into a source."""
        return Binder(self.environ, self.places, SecretSource(source) if source else None)

    def restorer(self) -> Restorer:
        """Undoes imports of this home."""
        settings = load_settings(self.places.settings)
        return Restorer(self.places, Sources(self.environ, self.places, settings.secrets))


def scope_of(word: str) -> Scope | None:
    """The scope that an option names; None for all."""
    return None if word == "all" else Scope(word)


def find_all(here: Surroundings, args: Args) -> list[Target]:
    """The files that an import is about. Raises if there are none."""
    scope = scope_of(args.scope)
    targets: dict[str, Target] = {}
    for client in here.clients:
        for target in find_targets(client, here.scene, path=args.path, scope=scope):
            # Two clients may read one file; it is wrapped once.
            targets.setdefault(os.path.realpath(target.path), target)
    if targets:
        return list(targets.values())
    if len(here.clients) > 1:
        raise SubluminalError("no client's configuration was found", hint="give one with `--path`")
    (client,) = here.clients
    looked = [f.path for f in client.files(here.scene) if scope in (None, f.scope)]
    raise SubluminalError(
        f"no configuration of {client.title} was found",
        hint=f"looked for {', '.join(f'`{path}`' for path in looked)}; give one with `--path`",
    )
