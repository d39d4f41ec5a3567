"""Files of an artifact: they appear whole or not at all; one from elsewhere is read with care."""

import hashlib
import os
import stat
from collections.abc import Iterable
from typing import BinaryIO


def write_whole(path: str, pieces: Iterable[bytes], mode: int = 0o666) -> str:
    """Puts a file in its place when all of it is written; returns its SHA-256. Raises OSError."""
    aside = f"{path}.{os.getpid()}.part"
    digest = hashlib.sha256()
    remove(aside)
    try:
        # Made anew: a link that somebody left here would be followed, a pipe would hold us up.
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        with open(os.open(aside, flags, mode), "wb") as file:
            for piece in pieces:
                digest.update(piece)
                file.write(piece)
        os.replace(aside, path)
    except BaseException:
        # On a full disk the rest needs its room.
        remove(aside)
        raise
    return digest.hexdigest()


def remove(path: str) -> None:
    """Takes a file away, if there is one."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        return


def open_plain(path: str) -> BinaryIO:
    """Opens a file to read it. Raises OSError, also for a pipe or a device in its place."""
    file = open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")  # noqa: SIM115
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(0, "it is not a file")
    return file
