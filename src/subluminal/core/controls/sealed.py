"""Small JSON files that only this home may have written: contents under a MAC
(local-is-not-trusted).

What that stops is in the threat model: a file copied in from elsewhere or edited by mistake, not a
process of the same user that reads the key.
"""

import errno
import hashlib
import hmac
import os
import stat

from subluminal.config.places import make_private_dir
from subluminal.errors import SubluminalError

_KEY_BYTES = 32
_MAX_BYTES = 1 << 26
"""No file of ours comes near: the largest is a compiled policy."""


class SealBroken(Exception):
    """A file is not as this home wrote it, or this home did not write it."""


class KeyUnusable(SubluminalError, OSError):
    """Nothing can be sealed in this home, nor believed. An OSError to who goes on without."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(
            f"the key of this home, `{path}`, cannot be used: {reason}",
            hint="check who owns it; without it a new one is made, and every grant is void",
        )


def seal_key(state_dir: str) -> bytes:
    """Returns this home's key, made on first use. Raises KeyUnusable."""
    path = os.path.join(state_dir, "seal.key")
    try:
        make_private_dir(state_dir)
        if not os.path.lexists(path):
            _link(_write_aside(path, os.urandom(_KEY_BYTES)), path)
        key = _read(path, _KEY_BYTES + 1)
    except OSError as error:
        raise KeyUnusable(path, (error.strerror or str(error)).lower()) from None
    if len(key) != _KEY_BYTES:
        raise KeyUnusable(path, f"it is not {_KEY_BYTES} bytes long")
    return key


def write_sealed(path: str, key: bytes, purpose: str, data: bytes) -> None:
    """Writes data with its MAC, atomically. `purpose` keeps one kind from passing as another."""
    os.replace(_write_aside(path, _sealed(key, purpose, data)), path)


def create_sealed(path: str, key: bytes, purpose: str, data: bytes) -> bool:
    """Writes like `write_sealed`, unless there is such a file: False, and the first one stays."""
    return _link(_write_aside(path, _sealed(key, purpose, data)), path)


def _sealed(key: bytes, purpose: str, data: bytes) -> bytes:
    return _mac(key, purpose, data) + b"\n" + data


def _write_aside(path: str, data: bytes) -> str:
    """Writes a file to be put in the place of another: nobody ever reads half of it."""
    make_private_dir(os.path.dirname(path))
    # Not by pid: containers that share a home count theirs alike.
    aside = f"{path}.{os.urandom(8).hex()}.aside"
    fd = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with open(fd, "wb") as file:
            file.write(data)
    except OSError:
        os.unlink(aside)
        raise
    return aside


def _link(aside: str, path: str) -> bool:
    """Puts a file in place unless there is one: False, and the first one stays."""
    try:
        os.link(aside, path)
    except FileExistsError:
        return False
    finally:
        os.unlink(aside)
    return True


def read_sealed(path: str, key: bytes, purpose: str) -> bytes | None:
    """Reads data back; None if it is not there or was not sealed by this home."""
    try:
        return unseal(path, key, purpose)
    except (OSError, SealBroken):
        return None


def unseal(path: str, key: bytes, purpose: str) -> bytes:
    """Reads data back, for who must know why it cannot: raises OSError or SealBroken."""
    found = _read(path, _MAX_BYTES + 1)
    mac, _, data = found.partition(b"\n")
    if len(found) > _MAX_BYTES or not hmac.compare_digest(mac, _mac(key, purpose, data)):
        raise SealBroken
    return data


def _read(path: str, most: int) -> bytes:
    """The beginning of a file. A pipe in its place must not make us wait, under a run's lock."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        with open(fd, "rb", closefd=False) as file:
            return file.read(most)
    finally:
        os.close(fd)


def _mac(key: bytes, purpose: str, data: bytes) -> bytes:
    return hmac.new(key, purpose.encode() + b"\0" + data, hashlib.sha256).hexdigest().encode()
