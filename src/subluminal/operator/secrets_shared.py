"""What the verbs of `sub secrets` share: where things are, and what is known of each secret."""

import os
import sys
from collections.abc import Mapping
from typing import NamedTuple

from subluminal.cli.frame import Parser
from subluminal.clock import now, rfc3339
from subluminal.config.loading import load_settings
from subluminal.config.places import Places, places
from subluminal.config.settings import Settings
from subluminal.contracts.bindings import SecretBinding
from subluminal.contracts.vocabulary import SecretSource
from subluminal.errors import SubluminalError, UsageError
from subluminal.secrets.file_store import FileStore
from subluminal.secrets.resolving import Sources
from subluminal.secrets.usage import Usage, load_usage

STORES = (SecretSource.FILE, SecretSource.KEYCHAIN)
"""Sources that we write to. A variable is set where the client starts."""


class Home(NamedTuple):
    """One home's secrets, as far as they can be told without reading any."""

    environ: Mapping[str, str]
    places: Places
    settings: Settings
    usage: Usage
    store: FileStore

    @property
    def sources(self) -> Sources:
        return Sources(self.environ, self.places, self.settings.secrets)

    def bindings(self) -> list[tuple[str, SecretBinding]]:
        """Every binding, with its server."""
        return [
            (name, binding)
            for name, server in self.settings.servers.items()
            for binding in server.secret_bindings
        ]

    def names(self, source: SecretSource) -> set[str]:
        """Names that are in a source, or that a binding expects there."""
        bound = {b.secret_ref for _, b in self.bindings() if b.source is source}
        if source is SecretSource.FILE:
            return bound | set(self.store.contents().secrets)
        return bound | set(self.usage.secrets.get(source, {}))


class Row(NamedTuple):
    """What is told of a secret. Never its value, nor anything made from it."""

    name: str
    source: str
    protection: str
    servers: list[str]
    added_at: str | None
    changed_at: str | None
    last_ok: str | None
    last_failed: str | None


def open_home() -> Home:
    """Finds the home of this command."""
    where = places(os.environ)
    settings = load_settings(where.settings)
    store = FileStore(where, settings.secrets)
    return Home(os.environ, where, settings, load_usage(where), store)


def row_of(home: Home, source: SecretSource, name: str) -> Row:
    """Collects what is known of a secret."""
    known = home.usage.of(source, name)
    uses = known.servers.values()
    entry = home.store.contents().secrets.get(name) if source is SecretSource.FILE else None
    return Row(
        name,
        source.value,
        _protection(home, source),
        sorted({s for s, b in home.bindings() if (b.source, b.secret_ref) == (source, name)}),
        entry.added_at if entry else known.added_at,
        entry.changed_at if entry else known.changed_at,
        max((use.last_ok for use in uses if use.last_ok), default=None),
        max((use.last_failed for use in uses if use.last_failed), default=None),
    )


def _protection(home: Home, source: SecretSource) -> str:
    match source:
        case SecretSource.ENV:
            return "the client's environment"
        case SecretSource.KEYCHAIN:
            return "keychain"
        case SecretSource.FILE:
            kind = home.store.contents().protection
            return "plain file (0600), not encrypted" if kind == "plain" else f"AES-GCM, {kind}"


def find_source(home: Home, name: str, wanted: str | None) -> SecretSource:
    """Returns where a secret is: the source given, else the only one that knows the name."""
    if wanted:
        return SecretSource(wanted)
    found = [source for source in SecretSource if name in home.names(source)]
    if not found:
        raise SubluminalError(f"no secret `{name}`", hint="`sub secrets list` shows all")
    if len(found) > 1:
        told = " and ".join(f"`{source.value}`" for source in found)
        raise UsageError(f"`{name}` is in {told}", hint="choose with `--source`")
    return found[0]


def add_name(parser: Parser, *, sources: tuple[SecretSource, ...] = tuple(SecretSource)) -> None:
    """The arguments that name one secret."""
    parser.add_argument("name", metavar="NAME", help="the secret's name (`secret_ref`)")
    parser.add_argument(
        "--source",
        choices=[source.value for source in sources],
        help="where it is; needed only if more than one source has the name",
    )


def timestamp() -> str:
    """Now, as records have it."""
    return rfc3339(now().wall_ms)


def is_at_terminal() -> bool:
    """Whether a person can be asked."""
    return sys.stdin.isatty() and sys.stderr.isatty()
