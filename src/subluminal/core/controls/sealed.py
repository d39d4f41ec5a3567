"""Sealed files: small JSON files with a MAC under this home's key (local-is-not-trusted).

The seal detects a file that was copied in from another home, or edited. It does not stop a process
of the same user that reads the key.
"""

import hashlib
import hmac
import os

from subluminal.config.places import make_private_dir
from subluminal.config.private_files import link_new, read_bounded, write_aside
from subluminal.errors import SubluminalError

_KEY_BYTES = 32
_MAX_BYTES = 1 << 26
"""Largest file that is read; the largest of ours, a compiled policy, is far smaller."""


class SealBroken(Exception):
    """A file was changed, or another home wrote it."""


class KeyUnusable(SubluminalError, OSError):
    """The key cannot be used, so no file can be sealed or trusted in this home.

    It is an OSError as well, for callers that treat it like a file that cannot be read.
    """

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(
            f"the key of this home, `{path}`, cannot be used: {reason}",
            hint="check who owns it; if you remove it, a new key is made and every grant is void",
        )


def seal_key(state_dir: str) -> bytes:
    """Returns this home's key; makes it on first use. Raises KeyUnusable."""
    path = os.path.join(state_dir, "seal.key")
    try:
        make_private_dir(state_dir)
        if not os.path.lexists(path):
            link_new(write_aside(path, os.urandom(_KEY_BYTES)), path)
        key = read_bounded(path, _KEY_BYTES + 1)
    except OSError as error:
        raise KeyUnusable(path, (error.strerror or str(error)).lower()) from None
    if len(key) != _KEY_BYTES:
        raise KeyUnusable(path, f"it is not {_KEY_BYTES} bytes long")
    return key


def write_sealed(path: str, key: bytes, purpose: str, data: bytes) -> None:
    """Writes data with its MAC, atomically. A file of one `purpose` is not valid for another."""
    os.replace(write_aside(path, _sealed(key, purpose, data)), path)


def create_sealed(path: str, key: bytes, purpose: str, data: bytes) -> bool:
    """Writes like `write_sealed`; returns False, and changes nothing, if the file exists."""
    return link_new(write_aside(path, _sealed(key, purpose, data)), path)


def _sealed(key: bytes, purpose: str, data: bytes) -> bytes:
    return _mac(key, purpose, data) + b"\n" + data


def read_sealed(path: str, key: bytes, purpose: str, most: int = _MAX_BYTES) -> bytes | None:
    """Returns the data of a sealed file; None if there is none that this home has sealed.

    A file of more than `most` bytes is not read.
    """
    try:
        return unseal(path, key, purpose, most)
    except (OSError, SealBroken):
        return None


def unseal(path: str, key: bytes, purpose: str, most: int = _MAX_BYTES) -> bytes:
    """Returns the data of a sealed file. Raises OSError or SealBroken."""
    found = read_bounded(path, most + 1)
    mac, _, data = found.partition(b"\n")
    if len(found) > most or not hmac.compare_digest(mac, _mac(key, purpose, data)):
        raise SealBroken
    return data


def _mac(key: bytes, purpose: str, data: bytes) -> bytes:
    return hmac.new(key, purpose.encode() + b"\0" + data, hashlib.sha256).hexdigest().encode()
