"""The file store: `$SUB_HOME/secrets/store.json`, 0600, encrypted if a key is available.

Names and dates are never encrypted. Values are, unless the store's protection is `plain`. A plain
store is encrypted at its first change after a key becomes available.
"""

import os
from collections.abc import Callable

import msgspec

from subluminal.config.places import Places
from subluminal.config.settings import SecretsSettings
from subluminal.errors import SecretUnavailable, SubluminalError
from subluminal.secrets.private_files import locked, read_private, write_private
from subluminal.secrets.protection import Kind, Plain, best_protection, protection_of


class Entry(msgspec.Struct, kw_only=True):
    """One stored secret."""

    value: str
    added_at: str
    changed_at: str


class Contents(msgspec.Struct, kw_only=True):
    """The whole file."""

    v: int = 1
    protection: Kind = "plain"
    key_id: str = ""
    """name of the key in the keychain, or salt of the passphrase"""
    secrets: dict[str, Entry] = msgspec.field(default_factory=dict)


_decode = msgspec.json.Decoder(Contents).decode


class FileStore:
    """The store of one home."""

    def __init__(self, places: Places, settings: SecretsSettings) -> None:
        self.path = os.path.join(places.secrets, "store.json")
        self._settings = settings

    def contents(self) -> Contents:
        """Returns the whole store, with its values still encrypted."""
        data = read_private(self.path)
        if data is None:
            return Contents()
        try:
            return _decode(data)
        except msgspec.MsgspecError:
            raise SecretUnavailable(
                f"the secret store `{self.path}` is damaged",
                hint="restore it from a backup of yours, or remove it and add the secrets again",
            ) from None

    def read(self, name: str) -> str | None:
        """Returns a value; None if there is no secret of that name."""
        contents = self.contents()
        entry = contents.secrets.get(name)
        if entry is None:
            return None
        protection = protection_of(contents.protection, contents.key_id, self._settings)
        return protection.open(name, entry.value)

    def write(self, name: str, value: str, at: str) -> Kind:
        """Stores a value and returns how it is protected."""

        def put(values: dict[str, str], entries: dict[str, Entry]) -> None:
            before = entries.get(name)
            added_at = before.added_at if before else at
            entries[name] = Entry(value="", added_at=added_at, changed_at=at)
            values[name] = value

        return self._change(put)

    def delete(self, name: str) -> None:
        """Removes a secret that exists."""

        def drop(values: dict[str, str], entries: dict[str, Entry]) -> None:
            del values[name], entries[name]

        self._change(drop)

    def rename(self, old: str, new: str) -> None:
        """Gives a secret another name."""

        def move(values: dict[str, str], entries: dict[str, Entry]) -> None:
            if new in entries:
                raise SubluminalError(
                    f"a secret named `{new}` already exists",
                    hint="choose another name, or remove that secret first",
                )
            values[new], entries[new] = values.pop(old), entries.pop(old)

        self._change(move)

    def _change(self, change: Callable[[dict[str, str], dict[str, Entry]], None]) -> Kind:
        with locked(self.path):
            contents = self.contents()
            protection = protection_of(contents.protection, contents.key_id, self._settings)
            values = {
                name: protection.open(name, entry.value) for name, entry in contents.secrets.items()
            }
            change(values, contents.secrets)
            if isinstance(protection, Plain):
                contents.key_id = contents.key_id or os.urandom(16).hex()
                protection = best_protection(contents.key_id, self._settings)
                contents.protection = protection.kind
            for name, entry in contents.secrets.items():
                entry.value = protection.seal(name, values[name])
            write_private(self.path, msgspec.json.encode(contents))
            return protection.kind
