"""Sockets that only their owner can reach, at paths of any length."""

import contextlib
import os
import socket

from subluminal.config.places import make_private_dir
from subluminal.errors import SubluminalError
from subluminal.system.sockets import ShortAddress


def listen_unix(path: str) -> socket.socket:
    """Listens at a path. The caller holds the lock, so an existing socket is of a dead process."""
    make_private_dir(os.path.dirname(path))
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with ShortAddress(path) as address:
            _bind(made, address)
    except OSError as error:
        made.close()
        reason = (error.strerror or str(error)).lower()
        raise SubluminalError(f"cannot listen at `{path}`: {reason}") from error
    made.listen(128)
    made.setblocking(False)
    return made


def _bind(made: socket.socket, address: str) -> None:
    """Gives a socket a path that only its owner can use."""
    before = os.umask(0o177)
    try:
        made.bind(address)
    finally:
        os.umask(before)


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
