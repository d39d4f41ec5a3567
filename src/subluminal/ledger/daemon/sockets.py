"""Sockets that only their owner can reach, at paths of any length.

The address of a unix socket holds 107 bytes. A longer path is reached through a descriptor of its
directory.
"""

import contextlib
import os
import socket
from collections.abc import Iterator

from subluminal.config.places import make_private_dir
from subluminal.errors import SubluminalError

MAX_ADDRESS_BYTES = 107


@contextlib.contextmanager
def short_address(path: str) -> Iterator[str]:
    """An address for a path. It is valid within the `with` block."""
    if len(os.fsencode(path)) <= MAX_ADDRESS_BYTES:
        yield path
        return
    directory = os.open(os.path.dirname(path), os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{directory}/{os.path.basename(path)}"
    finally:
        os.close(directory)


def listen_unix(path: str) -> socket.socket:
    """Listens at a path. The caller holds the lock, so an existing socket is of a dead process."""
    make_private_dir(os.path.dirname(path))
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        with short_address(path) as address:
            made.bind(address)
    except OSError as error:
        made.close()
        reason = (error.strerror or str(error)).lower()
        raise SubluminalError(f"cannot listen at `{path}`: {reason}") from error
    finally:
        os.umask(before)
    made.listen(128)
    made.setblocking(False)
    return made


def listen_loopback(port: int) -> socket.socket:
    """Listens on 127.0.0.1. Port 0 takes any free port."""
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind(("127.0.0.1", port))
    except OSError as error:
        made.close()
        reason = (error.strerror or str(error)).lower()
        raise SubluminalError(
            f"cannot listen on port {port}: {reason}", hint="choose another port with `--port`"
        ) from error
    made.listen(128)
    made.setblocking(False)
    return made
