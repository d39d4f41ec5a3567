"""Reads a client's file, and replaces it as a whole: whoever reads it sees the old or the new one.

Mode, owner and extended attributes stay, symbolic links are followed, and a file that changed since
it was read is not replaced. Everything that is odd about a file is refused before it is touched.
"""

import os
import stat
from typing import NamedTuple

from subluminal.errors import SubluminalError
from subluminal.importer.exchange import exchange

MAX_CONFIG_BYTES = 16 << 20


class Found(NamedTuple):
    """A file as it was read."""

    path: str
    """where it really is"""
    data: bytes
    stat: os.stat_result


class FileChanged(SubluminalError):
    """Someone else wrote the file since it was read."""


def read_config(path: str) -> Found:
    """Reads a file that can be replaced later. Raises on everything that is not a plain file."""
    real = os.path.realpath(path)
    try:
        # Non-blocking: a FIFO in the file's place must not hold us up.
        fd = os.open(real, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise SubluminalError(f"cannot read `{path}`: {_reason(error)}") from None
    try:
        found = os.fstat(fd)
        _refuse_odd(path, found)
        with open(fd, "rb", closefd=False) as file:
            data = file.read(MAX_CONFIG_BYTES + 1)
    except OSError as error:
        raise SubluminalError(f"cannot read `{path}`: {_reason(error)}") from None
    finally:
        os.close(fd)
    if len(data) > MAX_CONFIG_BYTES:
        raise _too_large(path)
    return Found(real, data, found)


def refuse_unwritable(path: str, found: Found) -> None:
    """Raises if a replaced file could not be what it was, or was not meant to be changed."""
    if not found.stat.st_mode & 0o222:
        raise SubluminalError(f"`{path}` is read-only", hint=f"`chmod u+w {found.path}` if you may")
    if found.stat.st_nlink > 1:
        raise SubluminalError(
            f"`{path}` has {found.stat.st_nlink} hard links; replacing one would part them",
            hint="make it a symbolic link, or a file of its own",
        )
    folder = os.path.dirname(found.path)
    if not os.access(folder, os.W_OK | os.X_OK, effective_ids=True):
        raise SubluminalError(f"cannot write in `{folder}`")


def replace(found: Found, data: bytes) -> None:
    """Puts new bytes in a file's place. Raises FileChanged if it is no longer what was read."""
    temporary = f"{found.path}.sub-{os.getpid()}"
    try:
        _write_like(temporary, data, found)
        _refuse_changed(found.path, found)
        if exchange(temporary, found.path):
            try:
                _refuse_changed(temporary, found)
            except FileChanged:
                exchange(temporary, found.path)  # what came in between is the newer one
                raise
        else:
            os.replace(temporary, found.path)
        _sync_folder(os.path.dirname(found.path))
    except OSError as error:
        raise SubluminalError(f"cannot write `{found.path}`: {_reason(error)}") from None
    finally:
        _remove(temporary)


def _refuse_changed(path: str, found: Found) -> None:
    if read_config(path).data != found.data:
        raise FileChanged(f"`{found.path}` is being changed by another program")


def _write_like(path: str, data: bytes, model: Found) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    fd = os.open(path, flags, 0o600)
    with open(fd, "wb") as file:
        file.write(data)
        file.flush()
        made = os.fstat(fd)
        if (made.st_uid, made.st_gid) != (model.stat.st_uid, model.stat.st_gid):
            os.fchown(fd, model.stat.st_uid, model.stat.st_gid)
        _copy_attributes(model.path, fd)
        os.fchmod(fd, stat.S_IMODE(model.stat.st_mode))
        os.fsync(fd)


def _copy_attributes(path: str, fd: int) -> None:
    """Access lists and labels. A file system that has none, or gives its own, is no error."""
    if not hasattr(os, "listxattr"):
        return
    try:
        for name in os.listxattr(path):
            os.setxattr(fd, name, os.getxattr(path, name))
    except OSError:
        return


def _refuse_odd(path: str, found: os.stat_result) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise SubluminalError(f"`{path}` is a directory")
    if not stat.S_ISREG(found.st_mode):
        raise SubluminalError(f"`{path}` is not a regular file")
    if found.st_size > MAX_CONFIG_BYTES:
        raise _too_large(path)


def _too_large(path: str) -> SubluminalError:
    size = MAX_CONFIG_BYTES >> 20
    return SubluminalError(f"`{path}` is larger than {size} MiB; this is no configuration")


def _sync_folder(path: str) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        return  # it became the file, or was never made


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()
