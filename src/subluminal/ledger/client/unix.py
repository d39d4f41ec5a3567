"""Connects to a unix socket with the C half of `socket`: its enums cost more than a whole query."""

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket as sockets
else:
    try:
        import _socket as sockets
    except ImportError:  # a private module: another interpreter may not have it
        import socket as sockets

MAX_ADDRESS_BYTES = 107


def connect(path: str, timeout_s: float) -> "sockets.socket":
    """Connects to a path of any length. Raises OSError."""
    made = sockets.socket(sockets.AF_UNIX, sockets.SOCK_STREAM)
    made.settimeout(timeout_s)
    directory = -1
    try:
        if len(os.fsencode(path)) > MAX_ADDRESS_BYTES:
            # An address holds so many bytes; a longer path is reached through its directory.
            directory = os.open(os.path.dirname(path), os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
            path = f"/proc/self/fd/{directory}/{os.path.basename(path)}"
        made.connect(path)
    except BaseException:
        made.close()
        raise
    finally:
        if directory >= 0:
            os.close(directory)
    return made
