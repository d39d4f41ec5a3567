"""Small JSON files that only this home may have written: contents under a MAC (D13).

What that stops is in the threat model: a file copied in from elsewhere or edited by mistake, not a
process of the same user that reads the key.
"""

import hashlib
import hmac
import os

from subluminal.config.places import make_private_dir

_KEY_BYTES = 32


class SealBroken(Exception):
    """A file is not as this home wrote it, or this home did not write it."""


def seal_key(state_dir: str) -> bytes:
    """Returns this home's key, made on first use."""
    path = os.path.join(make_private_dir(state_dir), "seal.key")
    try:
        return _read_key(path)
    except FileNotFoundError:
        pass
    # Written aside and linked into place, so that nobody ever reads half a key.
    aside = f"{path}.{os.getpid()}"
    fd = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(fd, "wb") as file:
        file.write(os.urandom(_KEY_BYTES))
    try:
        os.link(aside, path)
    except FileExistsError:
        pass  # another process was first
    finally:
        os.unlink(aside)
    return _read_key(path)


def _read_key(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def write_sealed(path: str, key: bytes, purpose: str, data: bytes) -> None:
    """Writes data with its MAC, atomically. `purpose` keeps one kind from passing as another."""
    os.replace(_written_aside(path, key, purpose, data), path)


def create_sealed(path: str, key: bytes, purpose: str, data: bytes) -> bool:
    """Writes like `write_sealed`, unless there is such a file: False, and the first one stays."""
    aside = _written_aside(path, key, purpose, data)
    try:
        os.link(aside, path)
    except FileExistsError:
        return False
    finally:
        os.unlink(aside)
    return True


def _written_aside(path: str, key: bytes, purpose: str, data: bytes) -> str:
    make_private_dir(os.path.dirname(path))
    aside = f"{path}.{os.getpid()}.aside"
    fd = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with open(fd, "wb") as file:
            file.write(_mac(key, purpose, data) + b"\n" + data)
    except OSError:
        os.unlink(aside)
        raise
    return aside


def read_sealed(path: str, key: bytes, purpose: str) -> bytes | None:
    """Reads data back; None if it is not there or was not sealed by this home."""
    try:
        return unseal(path, key, purpose)
    except (OSError, SealBroken):
        return None


def unseal(path: str, key: bytes, purpose: str) -> bytes:
    """Reads data back, for who must know why it cannot: raises OSError or SealBroken."""
    with open(path, "rb") as file:
        mac, _, data = file.read().partition(b"\n")
    if not hmac.compare_digest(mac, _mac(key, purpose, data)):
        raise SealBroken
    return data


def _mac(key: bytes, purpose: str, data: bytes) -> bytes:
    return hmac.new(key, purpose.encode() + b"\0" + data, hashlib.sha256).hexdigest().encode()
