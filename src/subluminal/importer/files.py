"""Reads a client's file, and creates, replaces or removes it: readers see all of it, or none.

Mode, owner and extended attributes are kept, and symbolic links are followed. Unusual files are
refused before anything is touched. A file that changed since it was read is not replaced. Another
program may write between our last look and the replacement, so on Linux the two files are
exchanged in one step; then we look at what came out, and exchange them back if it is not what we
read.
"""

import os
import stat
from typing import NamedTuple

from subluminal.errors import SubluminalError
from subluminal.system.files import copy_attributes, exchange

MAX_CONFIG_BYTES = 16 << 20
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW


class ReadFile(NamedTuple):
    """A file as it was when it was read."""

    path: str
    """path with symbolic links resolved"""
    data: bytes
    stat: os.stat_result


class FileChanged(SubluminalError):
    """Another program changed the file since it was read."""


def read_config(path: str) -> ReadFile:
    """Reads a file that may be replaced later. Raises if it is not a regular file."""
    real = os.path.realpath(path)
    try:
        # Non-blocking, so that opening a FIFO does not wait for a writer.
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
    return ReadFile(real, data, found)


def read_if_there(path: str) -> ReadFile | None:
    """Reads a file that may be replaced later; None if there is none."""
    return read_config(path) if os.path.exists(path) else None


def refuse_unwritable(path: str, found: ReadFile) -> None:
    """Raises if the file is read-only, or cannot be replaced without losing something."""
    if not found.stat.st_mode & 0o222:
        raise SubluminalError(
            f"`{path}` is read-only", hint=f"make it writable with `chmod u+w {found.path}`"
        )
    if found.stat.st_nlink > 1:
        raise SubluminalError(
            f"`{path}` has {found.stat.st_nlink} hard links, and replacing it would break them",
            hint="use a symbolic link, or a copy of the file",
        )
    _refuse_closed(os.path.dirname(found.path))


def _refuse_closed(folder: str) -> None:
    by_effective_user = os.access in os.supports_effective_ids
    if not os.access(folder, os.W_OK | os.X_OK, effective_ids=by_effective_user):
        raise SubluminalError(
            f"cannot write to the directory `{folder}`",
            hint="its files can only be replaced by a user who may write there",
        )


def replace(found: ReadFile, data: bytes) -> None:
    """Replaces a file's contents. Raises FileChanged if they are no longer what was read."""
    temporary = f"{found.path}.sub-{os.getpid()}"
    try:
        _write_like(temporary, data, found)
        _refuse_changed(found.path, found)
        if exchange(temporary, found.path):
            try:
                _refuse_changed(temporary, found)
            except FileChanged:
                exchange(temporary, found.path)  # put the other program's newer version back
                raise
        else:
            os.replace(temporary, found.path)
        _sync_folder(os.path.dirname(found.path))
    except OSError as error:
        raise SubluminalError(f"cannot write `{found.path}`: {_reason(error)}") from None
    finally:
        _remove(temporary)


def missing_folders(path: str) -> list[str]:
    """Returns the directories that a new file needs, outermost first.

    Raises if they cannot be made. A dangling symbolic link is followed.
    """
    folder = os.path.dirname(os.path.realpath(path))
    missing: list[str] = []
    while not os.path.isdir(folder):
        if os.path.lexists(folder):
            raise SubluminalError(f"cannot create `{path}`: `{folder}` is not a directory")
        missing.insert(0, folder)
        folder = os.path.dirname(folder)
    _refuse_closed(folder)
    return missing


def create(path: str, data: bytes) -> None:
    """Creates a file, 0600, and its directories. Raises FileChanged if it exists by now."""
    real = os.path.realpath(path)
    temporary = f"{real}.sub-{os.getpid()}"
    folders = missing_folders(path)
    try:
        for folder in folders:
            os.mkdir(folder, 0o700)
        fd = os.open(temporary, _NEW, 0o600)
        with open(fd, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(fd)
        os.link(temporary, real)  # unlike a rename, this never replaces another program's file
        _sync_folder(os.path.dirname(real))
    except FileExistsError:
        raise FileChanged(f"another program created `{path}`", hint="try again") from None
    except OSError as error:
        _remove(temporary)
        remove_folders(folders)
        raise SubluminalError(f"cannot write `{path}`: {_reason(error)}") from None
    finally:
        _remove(temporary)


def remove(found: ReadFile) -> None:
    """Removes a file. Raises FileChanged if it is no longer what was read."""
    aside = f"{found.path}.sub-{os.getpid()}"
    try:
        os.rename(found.path, aside)
        try:
            _refuse_changed(aside, found)
        except FileChanged:
            os.rename(aside, found.path)
            raise
        os.unlink(aside)
        _sync_folder(os.path.dirname(found.path))
    except OSError as error:
        raise SubluminalError(f"cannot remove `{found.path}`: {_reason(error)}") from None


def remove_folders(folders: list[str]) -> None:
    """Removes directories that were made for a file, innermost first, if they are empty."""
    for folder in reversed(folders):
        try:
            os.rmdir(folder)
        except OSError:
            return  # someone else uses it by now


def _refuse_changed(path: str, found: ReadFile) -> None:
    if read_config(path).data != found.data:
        raise FileChanged(
            f"another program changed `{found.path}`", hint="it was not overwritten; try again"
        )


def _write_like(path: str, data: bytes, model: ReadFile) -> None:
    fd = os.open(path, _NEW, 0o600)
    with open(fd, "wb") as file:
        file.write(data)
        file.flush()
        made = os.fstat(fd)
        if (made.st_uid, made.st_gid) != (model.stat.st_uid, model.stat.st_gid):
            os.fchown(fd, model.stat.st_uid, model.stat.st_gid)
        copy_attributes(model.path, fd)
        os.fchmod(fd, stat.S_IMODE(model.stat.st_mode))
        os.fsync(fd)


def _refuse_odd(path: str, found: os.stat_result) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise SubluminalError(f"`{path}` is a directory")
    if not stat.S_ISREG(found.st_mode):
        raise SubluminalError(f"`{path}` is not a regular file")
    if found.st_size > MAX_CONFIG_BYTES:
        raise _too_large(path)


def _too_large(path: str) -> SubluminalError:
    size = MAX_CONFIG_BYTES >> 20
    return SubluminalError(
        f"`{path}` is larger than {size} MiB, so it is probably not a configuration file"
    )


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
        return  # it was renamed, or was never created


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()
