"""The encryption of the file store: none, or AES-256-GCM.

The key is in the keychain, or is derived from a passphrase file. `cryptography` is an optional
dependency, imported only for an encrypted store. A value is encrypted together with its name, so it
cannot be moved to another name.
"""

import os
from binascii import a2b_base64, b2a_base64
from typing import Any, Literal, Protocol

from subluminal.config.settings import SecretsSettings
from subluminal.errors import SecretUnavailable
from subluminal.secrets import keychain
from subluminal.secrets.private_files import read_private

Kind = Literal["plain", "keychain", "passphrase"]

_NONCE_BYTES = 12
_BOUND_TO = b"subluminal-secret-v1:"
# The cost of scrypt: 16 MiB and about 40 ms at each start of a server with a binding to the store.
_SCRYPT = {"n": 1 << 14, "r": 8, "p": 1, "dklen": 32}


class Protection(Protocol):
    """Encrypts (`seal`) and decrypts (`open`) the values of one store."""

    kind: Kind

    def seal(self, name: str, value: str) -> str: ...
    def open(self, name: str, sealed: str) -> str: ...


class Plain:
    """No encryption: only the file's mode protects the values."""

    kind: Kind = "plain"

    def seal(self, name: str, value: str) -> str:
        return value

    def open(self, name: str, sealed: str) -> str:
        return sealed


class Sealed:
    """AES-256-GCM with one key."""

    def __init__(self, kind: Kind, key: bytes) -> None:
        self.kind = kind
        self._cipher = _cipher(key)

    def seal(self, name: str, value: str) -> str:
        nonce = os.urandom(_NONCE_BYTES)
        data = value.encode("utf-8", "surrogateescape")
        sealed = nonce + self._cipher.encrypt(nonce, data, _BOUND_TO + name.encode())
        return b2a_base64(sealed, newline=False).decode()

    def open(self, name: str, sealed: str) -> str:
        from cryptography.exceptions import InvalidTag

        try:
            data = a2b_base64(sealed)
            nonce, rest = data[:_NONCE_BYTES], data[_NONCE_BYTES:]
            opened: bytes = self._cipher.decrypt(nonce, rest, _BOUND_TO + name.encode())
        except (InvalidTag, ValueError):
            raise SecretUnavailable(
                f"`{name}` in the file store does not open with its key",
                hint="the passphrase or the key in the keychain is not the one it was stored with, "
                "or the store was changed; add the secret again",
            ) from None
        return opened.decode("utf-8", "surrogateescape")


def protection_of(kind: Kind, key_id: str, settings: SecretsSettings) -> Protection:
    """Returns the protection that an existing store was written with."""
    if kind == "plain":
        return Plain()
    if kind == "keychain":
        stored = keychain.read(_key_name(key_id), settings.keychain_wait_ms)
        if stored is None:
            raise SecretUnavailable(
                "the key of the file store is no longer in the keychain",
                hint="remove the store and add its secrets again",
            )
        return Sealed(kind, bytes.fromhex(stored))
    return Sealed(kind, _passphrase_key(key_id, settings))


def best_protection(key_id: str, settings: SecretsSettings) -> Protection:
    """Returns the strongest protection that is available, for a store that has none yet."""
    if not _has_cryptography():
        return Plain()
    if settings.passphrase_file:
        return Sealed("passphrase", _passphrase_key(key_id, settings))
    key = os.urandom(32)
    try:
        keychain.backend(settings.keychain_wait_ms)
        keychain.write(_key_name(key_id), key.hex(), settings.keychain_wait_ms)
    except SecretUnavailable:
        return Plain()
    return Sealed("keychain", key)


def _key_name(key_id: str) -> str:
    return f"file-store/{key_id}"


def _passphrase_key(key_id: str, settings: SecretsSettings) -> bytes:
    import hashlib

    path = settings.passphrase_file
    if not path:
        raise SecretUnavailable(
            "the file store needs its passphrase file",
            hint="set `passphrase_file` under `[secrets]` in `config.toml`",
        )
    passphrase = read_private(os.path.expanduser(path))
    if passphrase is None or not passphrase.strip():
        raise SecretUnavailable(
            f"the passphrase file `{path}` is missing or empty",
            hint="it is named under `[secrets]` in `config.toml`",
        )
    return hashlib.scrypt(passphrase.strip(), salt=bytes.fromhex(key_id), **_SCRYPT)


def _has_cryptography() -> bool:
    import importlib.util

    return importlib.util.find_spec("cryptography") is not None


def _cipher(key: bytes) -> Any:
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    except ImportError:
        raise SecretUnavailable(
            "the file store is encrypted, but the `cryptography` package is not installed",
            hint="install it with `pip install 'subluminal[keychain]'`",
        ) from None
    return AESGCM(key)
