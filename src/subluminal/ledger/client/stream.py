"""ledgerd's live stream: a WebSocket over its unix socket, read by hand (RFC 6455).

Only what this one server sends is understood: text frames, pings, the end.
"""

import json
import os
import select
from binascii import b2a_base64

from subluminal.config.places import Places
from subluminal.ledger.client.journals import Event
from subluminal.ledger.client.roads import NotRunning, StreamEnded, socket_path
from subluminal.ledger.client.unix import connect

_TIMEOUT_S = 10.0
_TEXT, _CLOSE, _PING = 1, 8, 9
_PONG = 0x8A
_MASKED = 0x80


class Stream:
    """Events from a position on. `position` is where to resume after an end."""

    def __init__(self, places: Places, position: int) -> None:
        """Connects. Raises NotRunning."""
        self.position = position
        key = b2a_base64(os.urandom(16), newline=False).decode()
        head = (
            f"GET /v1/stream?after={position} HTTP/1.1\r\nHost: ledgerd\r\nUpgrade: websocket\r\n"
            f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n"
        )
        self._data = b""
        try:
            self._socket = connect(socket_path(places), _TIMEOUT_S)
        except OSError as error:
            raise NotRunning from error
        try:
            self._socket.sendall(head.encode())
            while b"\r\n\r\n" not in self._data:
                self._receive()
        except (OSError, StreamEnded) as error:
            self._socket.close()
            raise NotRunning from error
        answer, _, self._data = self._data.partition(b"\r\n\r\n")
        if b" 101 " not in answer.partition(b"\r\n")[0]:
            self._socket.close()
            raise NotRunning

    def read(self, timeout_s: float) -> list[Event]:
        """What came, after waiting for it a while. Raises StreamEnded."""
        if select.select([self._socket], [], [], timeout_s)[0]:
            try:
                self._receive()
            except OSError as error:
                raise StreamEnded from error
        events: list[Event] = []
        while (frame := self._frame()) is not None:
            opcode, payload = frame
            if opcode == _CLOSE:
                if events:
                    # The end is told again at the next read.
                    self._data = b"\x88\x00"
                    return events
                raise StreamEnded
            if opcode == _PING:
                self._pong(payload)
            elif opcode == _TEXT:
                message = json.loads(payload)
                self.position = message["position"]
                events.append(message["event"])
        return events

    def close(self) -> None:
        self._socket.close()

    def _receive(self) -> None:
        piece = self._socket.recv(1 << 20)
        if not piece:
            raise StreamEnded
        self._data += piece

    def _frame(self) -> tuple[int, bytes] | None:
        """The next whole frame. The server sends events unmasked and in one piece."""
        data = self._data
        if len(data) < 2:
            return None
        size, start = data[1] & 0x7F, 2
        if size >= 126:
            start = 4 if size == 126 else 10
            size = int.from_bytes(data[2:start], "big")
        if len(data) < start or len(data) < start + size:
            return None
        self._data = data[start + size :]
        return data[0] & 0x0F, data[start : start + size]

    def _pong(self, payload: bytes) -> None:
        # A client must mask what it sends; a mask of zeros is one.
        self._socket.sendall(bytes([_PONG, _MASKED | len(payload), 0, 0, 0, 0]) + payload)
