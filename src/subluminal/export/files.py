"""Writes files completely or not at all."""

import hashlib
import os
from collections.abc import Iterable


def write_whole(path: str, pieces: Iterable[bytes], mode: int = 0o666) -> str:
    """Writes a file aside, moves it into place when complete, and returns its SHA-256.

    Raises OSError.
    """
    aside = f"{path}.{os.getpid()}.part"
    digest = hashlib.sha256()
    remove(aside)
    try:
        # O_EXCL, so that a symbolic link left here is not followed and a pipe does not block.
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        with open(os.open(aside, flags, mode), "wb") as file:
            for piece in pieces:
                digest.update(piece)
                file.write(piece)
        os.replace(aside, path)
    except BaseException:
        # Free the space, in case the disk is full.
        remove(aside)
        raise
    return digest.hexdigest()


def remove(path: str) -> None:
    """Removes a file if it exists."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        return
