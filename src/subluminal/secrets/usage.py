"""When each secret was added, and when a server last got it: `$SUB_HOME/state/secrets.json`.

Metadata for `sub secrets list`; a keychain cannot list what is in it. Never holds a value. Off
the way of a server's start: it is written after the spawn.
"""

import os
from collections.abc import Callable, Iterable

import msgspec

from subluminal.config.places import Places
from subluminal.contracts.events import Injection
from subluminal.contracts.vocabulary import SecretSource
from subluminal.secrets.private_files import locked, read_private, write_private


class Use(msgspec.Struct, kw_only=True):
    """How one server fared with one secret."""

    last_ok: str | None = None
    last_failed: str | None = None


class Known(msgspec.Struct, kw_only=True):
    """One secret of one source."""

    added_at: str | None = None
    changed_at: str | None = None
    servers: dict[str, Use] = msgspec.field(default_factory=dict)


class Usage(msgspec.Struct, kw_only=True):
    """The whole file: source, then name."""

    v: int = 1
    secrets: dict[SecretSource, dict[str, Known]] = msgspec.field(default_factory=dict)

    def of(self, source: SecretSource, name: str) -> Known:
        """Returns what is known of a secret, making room for it."""
        return self.secrets.setdefault(source, {}).setdefault(name, Known())


_decode = msgspec.json.Decoder(Usage).decode


def load_usage(places: Places) -> Usage:
    """Returns what is recorded; nothing if the record is missing or damaged."""
    data = read_private(_path(places))
    try:
        return _decode(data) if data else Usage()
    except msgspec.MsgspecError:
        return Usage()


def record_use(places: Places, injections: Iterable[Injection], at: str) -> None:
    """Notes how the bindings of a server fared at its start."""
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
    """Notes that a value was stored."""

    def note(usage: Usage) -> None:
        known = usage.of(source, name)
        known.added_at = known.added_at or at
        known.changed_at = at

    _change(places, note)


def forget(places: Places, source: SecretSource, name: str) -> None:
    """Drops what is known of a secret that is gone."""
    _change(places, lambda usage: usage.secrets.get(source, {}).pop(name, None))


def rename_known(places: Places, source: SecretSource, old: str, new: str) -> None:
    """Keeps the dates of a secret that got another name."""

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
