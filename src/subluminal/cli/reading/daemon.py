"""Asks ledgerd over its unix socket, by hand: http.client would double the time to start."""

import json
import os
from typing import Any

from subluminal.config.places import Places
from subluminal.errors import SubluminalError
from subluminal.ledger.daemon.sockets import connect_unix

TIMEOUT_S = 30.0
_UNRESERVED = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~")
_OK, _NOT_FOUND = 200, 404


class NotRunning(Exception):
    """There is no ledgerd to ask."""


def socket_path(places: Places) -> str:
    """Where ledgerd answers. As in its own `instance`, without loading it."""
    return os.path.join(places.runtime_dir, "ledgerd.sock")


def get(places: Places, path: str, parameters: dict[str, str | int | None]) -> Any:
    """A resource, decoded; None if there is no such thing. Raises NotRunning."""
    given = [
        f"{name}={quoted(str(value))}" for name, value in parameters.items() if value is not None
    ]
    target = path + ("?" + "&".join(given) if given else "")
    status, body = _exchange(places, target)
    value = json.loads(body)
    if status == _NOT_FOUND:
        return None
    if status != _OK:
        raise SubluminalError(value["error"], hint=value.get("hint"))
    return value


def quoted(text: str) -> str:
    """Text as part of an address."""
    return "".join(
        chr(byte) if byte in _UNRESERVED else f"%{byte:02X}"
        for byte in text.encode("utf-8", "surrogateescape")
    )


def _exchange(places: Places, target: str) -> tuple[int, bytes]:
    head = f"GET {target} HTTP/1.1\r\nHost: ledgerd\r\nConnection: close\r\n\r\n"
    try:
        with connect_unix(socket_path(places), TIMEOUT_S) as connection:
            connection.sendall(head.encode("ascii"))
            pieces = []
            while piece := connection.recv(1 << 20):
                pieces.append(piece)
    except OSError as error:
        raise NotRunning from error
    answer, _, body = b"".join(pieces).partition(b"\r\n\r\n")
    if not answer:
        raise NotRunning
    return int(answer.split(b" ", 2)[1]), body
