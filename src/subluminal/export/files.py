"""Writes files completely or not at all, and opens files that may come from an untrusted place."""

import hashlib
import os
import stat
from collections.abc import Iterable
from typing import BinaryIO


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


def open_plain(path: str) -> BinaryIO:
    """Opens a regular file for reading. Raises OSError, also for a pipe or a device."""
    file = open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")  # noqa: SIM115
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(0, "it is not a file")
    return file
