"""One home's secrets: what is known of each, and how values are stored, renamed and removed.

A value leaves this module only through `reveal`. Everything else tells names, sources and times.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from subluminal.clock import now, rfc3339
from subluminal.config.loading import load_settings
from subluminal.config.places import Places, places, working_directory
from subluminal.config.settings import Settings
from subluminal.contracts.bindings import SecretBinding
from subluminal.contracts.vocabulary import SecretSource
from subluminal.errors import SecretUnavailable, SubluminalError, UsageError
from subluminal.importer.clients.description import Scene
from subluminal.operator.secrets_approval import Unapproved, unapproved_servers
from subluminal.secrets import keychain
from subluminal.secrets.file_store import FileStore
from subluminal.secrets.resolving import Attempt, Sources, attempt_all, read_secret, refuse_value
from subluminal.secrets.usage import Usage, forget, load_usage, record_change, rename_known

STORES = (SecretSource.FILE, SecretSource.KEYCHAIN)
"""Sources that we can write to. An environment variable is set where the client starts."""

PLAIN = "plain"
"""Protection of a file store that is not encrypted."""

_MAX_NAME_CHARS = 128


class HomeSecrets(NamedTuple):
    """The secrets of one home, as far as they are known without reading a value."""

    environ: Mapping[str, str]
    places: Places
    settings: Settings
    usage: Usage
    store: FileStore

    @property
    def sources(self) -> Sources:
        """Where values are read from."""
        return Sources(self.environ, self.places, self.settings.secrets)

    @property
    def is_store_plain(self) -> bool:
        """Whether the file store holds secrets and is not encrypted."""
        contents = self.store.contents()
        return contents.protection == PLAIN and bool(contents.secrets)

    def bindings(self) -> list[tuple[str, SecretBinding]]:
        """Returns every binding with the name of its server."""
        return [
            (name, binding)
            for name, server in self.settings.servers.items()
            for binding in server.secret_bindings
        ]

    def names(self, source: SecretSource) -> set[str]:
        """Returns the names in a source, and those that a binding expects there."""
        bound = {b.secret_ref for _, b in self.bindings() if b.source is source}
        if source is SecretSource.FILE:
            return bound | set(self.store.contents().secrets)
        return bound | set(self.usage.secrets.get(source, {}))

    def servers_using(self, source: SecretSource, name: str) -> list[str]:
        """Returns the servers that have this secret bound, sorted."""
        wanted = (source, name)
        return sorted({s for s, b in self.bindings() if (b.source, b.secret_ref) == wanted})


class SecretRow(NamedTuple):
    """What may be shown of a secret: neither its value nor anything derived from the value."""

    name: str
    source: str
    protection: str
    servers: list[str]
    added_at: str | None
    changed_at: str | None
    last_ok: str | None
    last_failed: str | None


def open_secrets(environ: Mapping[str, str]) -> HomeSecrets:
    """Opens the secrets of the home that the environment names."""
    where = places(environ)
    settings = load_settings(where.settings)
    store = FileStore(where, settings.secrets)
    return HomeSecrets(environ, where, settings, load_usage(where), store)


def secret_rows(home: HomeSecrets) -> list[SecretRow]:
    """Returns every known secret, by source and name."""
    return [
        _row(home, source, name) for source in SecretSource for name in sorted(home.names(source))
    ]


def secret_row(home: HomeSecrets, name: str, source: str | None = None) -> SecretRow:
    """Returns one secret. Raises SubluminalError if it is unknown, or in several sources."""
    found = _source_of(home, name, source)
    _need_known(home, found, name)
    return _row(home, found, name)


def reveal(home: HomeSecrets, name: str, source: str | None = None) -> str:
    """Reads a secret's value, for a person who asked to see it."""
    found = _source_of(home, name, source)
    _need_known(home, found, name)
    value = read_secret(found, name, home.sources)
    if value is None:
        raise SubluminalError(f"`{name}` is bound, but `{found.value}` has no value for it")
    return value


def source_for(home: HomeSecrets, name: str) -> SecretSource:
    """Chooses where to put a new value: where a binding expects it, else keychain, else file."""
    for source in STORES:
        if name in home.names(source):
            return source
    try:
        keychain.backend(home.settings.secrets.keychain_wait_ms)
    except SecretUnavailable:
        return SecretSource.FILE
    return SecretSource.KEYCHAIN


def check_name(name: str) -> None:
    """Raises UsageError if this cannot be the name of a secret."""
    is_plain = name.isascii() and name.isprintable() and " " not in name
    if not is_plain or not 0 < len(name) <= _MAX_NAME_CHARS:
        raise UsageError(
            f"`{name}` is not a valid name for a secret",
            hint=f"use up to {_MAX_NAME_CHARS} letters, digits and punctuation, without spaces",
        )


def store_secret(home: HomeSecrets, source: SecretSource, name: str, value: str) -> str:
    """Stores a value and returns how it is protected: `plain`, `keychain` or a cipher's name."""
    check_name(name)
    refuse_value(value)
    at = rfc3339(now().wall_ms)
    if source is SecretSource.FILE:
        protection: str = home.store.write(name, value, at)
    else:
        keychain.write(name, value, home.settings.secrets.keychain_wait_ms)
        protection = "keychain"
    record_change(home.places, source, name, at)
    return protection


def remove_secret(
    home: HomeSecrets, name: str, source: str | None = None, *, force: bool = False
) -> SecretSource:
    """Deletes a value and what is known of it; returns where it was.

    Without `force` a secret that a server uses stays.
    """
    found = _writable_source(home, name, source)
    servers = home.servers_using(found, name)
    if servers and not force:
        told = ", ".join(f"`{server}`" for server in servers)
        raise SubluminalError(
            f"`{name}` is used by {told}, which would no longer start",
            hint="remove the binding first, or use `--force`",
        )
    if found is SecretSource.FILE:
        _need_stored(home, name)
        home.store.delete(name)
    else:
        wait_ms = home.settings.secrets.keychain_wait_ms
        if keychain.read(name, wait_ms) is None:
            raise SubluminalError(f"the keychain has no secret `{name}`")
        keychain.delete(name, wait_ms)
    forget(home.places, found, name)
    return found


def rename_secret(
    home: HomeSecrets, name: str, new_name: str, source: str | None = None
) -> list[str]:
    """Renames a secret; returns the servers whose bindings still ask for the old name."""
    found = _writable_source(home, name, source)
    servers = home.servers_using(found, name)
    if found is SecretSource.FILE:
        _need_stored(home, name)
        home.store.rename(name, new_name)
    else:
        _rename_in_keychain(home, name, new_name)
    rename_known(home.places, found, name, new_name)
    return servers


def try_bindings(home: HomeSecrets, server: str | None = None) -> Iterator[tuple[str, Attempt]]:
    """Resolves bindings as a start of their approved commands would; all unless one is named."""
    if server is not None and server not in home.settings.servers:
        raise UsageError(f"there is no server `{server}` in `{home.places.settings}`")
    scene = Scene(home.environ, working_directory())
    refused = {each.server: each for each in unapproved_servers(home.settings, scene)}
    for name, settings in home.settings.servers.items():
        if server in (None, name):
            for attempt in attempt_all(settings.secret_bindings, home.sources):
                yield name, _with_approval(attempt, refused.get(name))


def _with_approval(attempt: Attempt, refused: Unapproved | None) -> Attempt:
    """Returns the attempt, which fails if a stored secret serves no command."""
    if refused is None or attempt.binding.source is SecretSource.ENV or attempt.problem:
        return attempt
    problem = SecretUnavailable(refused.problem, hint=refused.hint)
    return Attempt(attempt.binding, None, problem)


def _row(home: HomeSecrets, source: SecretSource, name: str) -> SecretRow:
    known = home.usage.of(source, name)
    uses = known.servers.values()
    entry = home.store.contents().secrets.get(name) if source is SecretSource.FILE else None
    return SecretRow(
        name,
        source.value,
        _protection(home, source),
        home.servers_using(source, name),
        entry.added_at if entry else known.added_at,
        entry.changed_at if entry else known.changed_at,
        max((use.last_ok for use in uses if use.last_ok), default=None),
        max((use.last_failed for use in uses if use.last_failed), default=None),
    )


def _protection(home: HomeSecrets, source: SecretSource) -> str:
    match source:
        case SecretSource.ENV:
            return "the client's environment"
        case SecretSource.KEYCHAIN:
            return "keychain"
        case SecretSource.FILE:
            kind = home.store.contents().protection
            return "plain file (0600), not encrypted" if kind == PLAIN else f"AES-GCM, {kind}"


def _source_of(home: HomeSecrets, name: str, wanted: str | None) -> SecretSource:
    """Returns the source that was given, else the only one that knows the name."""
    if wanted:
        return SecretSource(wanted)
    found = [source for source in SecretSource if name in home.names(source)]
    if not found:
        raise SubluminalError(
            f"there is no secret `{name}`", hint="`sub secrets list` shows all secrets"
        )
    if len(found) > 1:
        told = " and ".join(f"`{source.value}`" for source in found)
        raise UsageError(f"`{name}` is in {told}", hint="choose one with `--source`")
    return found[0]


def _writable_source(home: HomeSecrets, name: str, wanted: str | None) -> SecretSource:
    found = _source_of(home, name, wanted)
    if found not in STORES:
        raise UsageError(
            f"`{name}` is a variable of the client's environment",
            hint="change it where the client starts, and its binding in `config.toml`",
        )
    return found


def _need_known(home: HomeSecrets, source: SecretSource, name: str) -> None:
    if name not in home.names(source):
        raise SubluminalError(f"there is no secret `{name}` in `{source.value}`")


def _need_stored(home: HomeSecrets, name: str) -> None:
    if name not in home.store.contents().secrets:
        raise SubluminalError(f"the file store has no secret `{name}`")


def _rename_in_keychain(home: HomeSecrets, old: str, new: str) -> None:
    wait_ms = home.settings.secrets.keychain_wait_ms
    value = keychain.read(old, wait_ms)
    if value is None:
        raise SubluminalError(f"the keychain has no secret `{old}`")
    if keychain.read(new, wait_ms) is not None:
        raise SubluminalError(f"there is already a secret `{new}`")
    keychain.write(new, value, wait_ms)
    keychain.delete(old, wait_ms)
