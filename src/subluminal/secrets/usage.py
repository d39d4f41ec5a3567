"""When each secret was added, and when each server last got it: `$SUB_HOME/state/secrets.json`.

`sub secrets list` needs it, because a keychain cannot list its entries. It never holds a value. It
is written after a server was started, so that the start does not wait for it.
"""

import os
from collections.abc import Callable, Iterable

import msgspec

from subluminal.config.places import Places
from subluminal.contracts.events import Injection
from subluminal.contracts.vocabulary import SecretSource
from subluminal.secrets.private_files import locked, read_private, write_private


class Use(msgspec.Struct, kw_only=True):
    """When one server last got one secret, and last failed to."""

    last_ok: str | None = None
    last_failed: str | None = None


class Known(msgspec.Struct, kw_only=True):
    """The dates of one secret in one source."""

    added_at: str | None = None
    changed_at: str | None = None
    servers: dict[str, Use] = msgspec.field(default_factory=dict)


class Usage(msgspec.Struct, kw_only=True):
    """The whole file: secrets by source and name."""

    v: int = 1
    secrets: dict[SecretSource, dict[str, Known]] = msgspec.field(default_factory=dict)

    def of(self, source: SecretSource, name: str) -> Known:
        """Returns the record of a secret, and creates it if there is none."""
        return self.secrets.setdefault(source, {}).setdefault(name, Known())


_decode = msgspec.json.Decoder(Usage).decode


def load_usage(places: Places) -> Usage:
    """Returns the file's contents; empty if the file is missing or damaged."""
    data = read_private(_path(places))
    try:
        return _decode(data) if data else Usage()
    except msgspec.MsgspecError:
        return Usage()


def record_use(places: Places, injections: Iterable[Injection], at: str) -> None:
    """Records which bindings of a server had a value when it was started."""
    noted = list(injections)

    def note(usage: Usage) -> None:
        for injection in noted:
            known = usage.of(injection.source, injection.secret_ref)
            use = known.servers.setdefault(str(injection.server_name), Use())
            if injection.success:
                use.last_ok = at
            else:
                use.last_failed = at

    if noted:
        _change(places, note)


def record_change(places: Places, source: SecretSource, name: str, at: str) -> None:
    """Records that a value was stored."""

    def note(usage: Usage) -> None:
        known = usage.of(source, name)
        known.added_at = known.added_at or at
        known.changed_at = at

    _change(places, note)


def forget(places: Places, source: SecretSource, name: str) -> None:
    """Removes the record of a secret that was removed."""
    _change(places, lambda usage: usage.secrets.get(source, {}).pop(name, None))


def rename_known(places: Places, source: SecretSource, old: str, new: str) -> None:
    """Moves the record of a secret to its new name."""

    def move(usage: Usage) -> None:
        known = usage.secrets.setdefault(source, {})
        known[new] = known.pop(old, Known())

    _change(places, move)


def _change(places: Places, change: Callable[[Usage], object]) -> None:
    path = _path(places)
    with locked(path):
        usage = load_usage(places)
        change(usage)
        write_private(path, msgspec.json.encode(usage))


def _path(places: Places) -> str:
    return os.path.join(places.state, "secrets.json")
