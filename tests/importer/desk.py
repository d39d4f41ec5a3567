"""One configuration file on disk, with a home beside it: what the round trips import and restore."""

from pathlib import Path

from subluminal.config.places import places
from subluminal.config.settings import SecretsSettings
from subluminal.importer.clients.description import Client, Scope
from subluminal.importer.hooks.entries import HookWish
from subluminal.importer.importing import Target, import_targets
from subluminal.importer.restoring import Restorer
from subluminal.importer.wrapper import Installation
from subluminal.secrets.resolving import Sources

OURS = Installation("/opt/sub dir/bin/sub", "/h/größe 'x'")


class Desk:
    """A file of one client. With a wish, hooks are added to it, too."""

    def __init__(self, folder: Path, client: Client, wish: HookWish | None = None) -> None:
        self.client = client
        self.file = folder / "config"
        self.places = places({}, str(folder / "sub"))
        self.restorer = Restorer(self.places, Sources({}, self.places, SecretsSettings()))
        self.target = Target(client, str(self.file))
        if wish is not None:
            self.target = Target(client, str(self.file), Scope.USER, wish)

    def import_it(self, ours: Installation = OURS) -> None:
        import_targets([self.target], ours, self.places)
