"""Asks ledgerd over its unix socket, by hand: http.client would double the time to start."""

import json
from typing import Any

from subluminal.config.places import Places
from subluminal.errors import SubluminalError
from subluminal.ledger.client.roads import NotRunning, socket_path
from subluminal.ledger.client.unix import connect

TIMEOUT_S = 30.0
_UNRESERVED = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~")
__all__ = ["NotRunning", "answers", "get", "quoted", "socket_path"]

_OK, _NOT_FOUND = 200, 404


def answers(places: Places) -> bool:
    """Whether a ledgerd listens."""
    try:
        connect(socket_path(places), TIMEOUT_S).close()
    except OSError:
        return False
    return True


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
        connection = connect(socket_path(places), TIMEOUT_S)
        try:
            connection.sendall(head.encode("ascii"))
            pieces = []
            while piece := connection.recv(1 << 20):
                pieces.append(piece)
        finally:
            connection.close()
    except OSError as error:
        raise NotRunning from error
    answer, _, body = b"".join(pieces).partition(b"\r\n\r\n")
    if not answer:
        raise NotRunning
    return int(answer.split(b" ", 2)[1]), body
