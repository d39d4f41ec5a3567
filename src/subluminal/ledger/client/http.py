"""HTTP requests to ledgerd over its unix socket, written by hand.

Every `sub query` pays for what this module imports. `http.client` takes 25 ms to import (44.8 ms
against 19.3 ms for a bare interpreter with `_socket` and `json`), more than the rest of a query.
There is one server to talk to, and it closes the connection after each answer, so a request is a
few lines. `connect` uses `_socket`, the C half of `socket`, because the enums of the Python half
take another 3 ms.
"""

import json
from typing import Any

from subluminal.config.places import Places
from subluminal.errors import SubluminalError
from subluminal.system.sockets import ShortAddress

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket as sockets
else:
    try:
        import _socket as sockets
    except ImportError:  # a private module, which other interpreters may lack
        import socket as sockets

Parameters = dict[str, str | int | None]
"""Query parameters; those that are None are left out."""

_TIMEOUT_S = 30.0
_UNRESERVED = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~")
_OK, _NOT_FOUND = 200, 404


class DaemonUnavailable(SubluminalError):
    """ledgerd is not running, or does not answer."""


def no_answer() -> DaemonUnavailable:
    """The error for a request that ledgerd did not answer."""
    return DaemonUnavailable("ledgerd does not answer", hint="run `sub doctor` to find out why")


class Client:
    """Sends requests to the ledgerd of one home."""

    def __init__(self, places: Places) -> None:
        self._path = places.ledgerd_socket

    def answers(self) -> bool:
        """Whether ledgerd accepts connections."""
        try:
            connect(self._path, _TIMEOUT_S).close()
        except OSError:
            return False
        return True

    def find(self, path: str, parameters: Parameters | None = None) -> Any:
        """Returns a resource, decoded, or None if ledgerd does not have it."""
        status, value = self._request("GET", path, parameters)
        return None if status == _NOT_FOUND else _checked(status, value)

    def get(self, path: str, parameters: Parameters | None = None) -> Any:
        """Returns a resource, decoded. Raises if ledgerd does not have it."""
        return _checked(*self._request("GET", path, parameters))

    def post(self, path: str, body: bytes) -> Any:
        """Sends JSON lines and returns the answer, decoded."""
        return _checked(*self._request("POST", path, None, body))

    def _request(
        self, method: str, path: str, parameters: Parameters | None, body: bytes = b""
    ) -> tuple[int, Any]:
        given = [
            f"{name}={quoted(str(value))}"
            for name, value in (parameters or {}).items()
            if value is not None
        ]
        target = path + ("?" + "&".join(given) if given else "")
        head = f"{method} {target} HTTP/1.1\r\nHost: ledgerd\r\nConnection: close\r\n"
        if method == "POST":
            head += f"Content-Type: application/x-ndjson\r\nContent-Length: {len(body)}\r\n"
        try:
            answer = self._exchange(head.encode("ascii") + b"\r\n" + body)
            first, _, content = answer.partition(b"\r\n\r\n")
            return int(first.split(b" ", 2)[1]), json.loads(content)
        except (OSError, ValueError, IndexError) as error:
            # An answer that is cut off or is not JSON comes from a ledgerd that is going down.
            raise no_answer() from error

    def _exchange(self, data: bytes) -> bytes:
        connection = connect(self._path, _TIMEOUT_S)
        try:
            connection.sendall(data)
            pieces = []
            while piece := connection.recv(1 << 20):
                pieces.append(piece)
        finally:
            connection.close()
        return b"".join(pieces)


def _checked(status: int, value: Any) -> Any:
    if status != _OK:
        raise SubluminalError(value["error"], hint=value.get("hint"))
    return value


def quoted(text: str) -> str:
    """Percent-encodes text for use in a URL, slashes included."""
    return "".join(
        chr(byte) if byte in _UNRESERVED else f"%{byte:02X}"
        for byte in text.encode("utf-8", "surrogateescape")
    )


def connect(path: str, timeout_s: float) -> "sockets.socket":
    """Connects to a unix socket at a path of any length. Raises OSError."""
    made = sockets.socket(sockets.AF_UNIX, sockets.SOCK_STREAM)
    made.settimeout(timeout_s)
    try:
        with ShortAddress(path) as address:
            made.connect(address)
    except BaseException:
        made.close()
        raise
    return made
