"""Unix sockets: addresses for a path of any length, and who is at the other end."""

import os
import sys

from subluminal.system import LINUX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket

_SOL_SOCKET, _SO_PEERCRED = 1, 17
"""Linux' numbers, because the import of `socket` takes longer than the question."""
MAX_ADDRESS_BYTES = 107 if sys.platform.startswith("linux") else 103


class ShortAddress:
    """A context manager: an address for a path, valid within the `with` block.

    A path that is too long is reached through its directory: by a descriptor, or by a symbolic link
    in a private temporary directory.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._descriptor = -1
        self._temporary = ""

    def __enter__(self) -> str:
        if len(os.fsencode(self._path)) <= MAX_ADDRESS_BYTES:
            return self._path
        directory, name = os.path.split(self._path)
        if LINUX:
            self._descriptor = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
            return f"/proc/self/fd/{self._descriptor}/{name}"
        import tempfile

        self._temporary = tempfile.mkdtemp(prefix="sub-")
        os.symlink(os.path.abspath(directory), os.path.join(self._temporary, "d"))
        return os.path.join(self._temporary, "d", name)

    def __exit__(self, *_: object) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
        if self._temporary:
            os.unlink(os.path.join(self._temporary, "d"))
            os.rmdir(self._temporary)


def peer_uid(peer: "socket") -> int | None:
    """Returns the user at the other end; None if the system does not tell."""
    if LINUX:
        credentials = peer.getsockopt(_SOL_SOCKET, _SO_PEERCRED, 12)
        return int.from_bytes(credentials[4:8], sys.byteorder)
    return None
