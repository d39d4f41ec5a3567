"""Small files that only their owner may read: written whole or not at all, read with a bound."""

import os

from subluminal.config.places import make_private_dir
from subluminal.config.plain_files import plain_file


def write_aside(path: str, data: bytes, *, durable: bool = False) -> str:
    """Writes a temporary file, to be moved to `path`; returns its path.

    With `durable`, the file survives a power failure from the moment it is moved.
    """
    make_private_dir(os.path.dirname(path))
    # Not named by pid: containers that share a home may have equal pids.
    aside = f"{path}.{os.urandom(8).hex()}.aside"
    fd = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with open(fd, "wb") as file:
            file.write(data)
            if durable:
                file.flush()
                os.fsync(fd)
    except OSError:
        os.unlink(aside)
        raise
    return aside


def is_aside(name: str) -> bool:
    """Whether a file is one of `write_aside`, by its name.

    Names of `encode_name` may end in `.aside` too, but each of their dots ends a `%` escape.
    """
    parts = name.rsplit(".", 2)
    return len(parts) == 3 and parts[2] == "aside" and "%" not in parts[1]


def link_new(aside: str, path: str) -> bool:
    """Moves a temporary file to `path`; returns False, and removes it, if `path` exists."""
    try:
        os.link(aside, path)
    except FileExistsError:
        return False
    finally:
        os.unlink(aside)
    return True


def read_bounded(path: str, most: int) -> bytes:
    """Returns the first `most` bytes of a regular file.

    Callers may hold a run's lock, so a pipe in place of the file must not make them wait.
    """
    with open(path, "rb", opener=plain_file) as file:
        return file.read(most)
