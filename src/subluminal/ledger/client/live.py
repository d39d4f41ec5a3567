"""Live events, each exactly once, whether ledgerd runs, restarts or never starts.

While ledgerd serves its stream, events come from there, because ledgerd also receives events that
are in no journal of this machine. While it does not, they come from the journals. Both sources give
each event the same key, (shim_id, n) (journal-first), so an event that arrives from both is dropped
the second time.

`Stream` is a WebSocket over ledgerd's unix socket, written by hand (RFC 6455). It understands only
what ledgerd sends: unfragmented text frames, pings and the closing frame.
"""

import json
import os
import select
import time
from binascii import b2a_base64
from collections.abc import Iterable, Iterator

from subluminal.clock import rfc3339
from subluminal.config.places import Places
from subluminal.ledger.client.http import Client, DaemonUnavailable, connect, no_answer
from subluminal.ledger.client.journals import Event, Journals

_POLL_S = 0.1
_STREAM_S = 1.0
"""Longest wait for the stream, in seconds. Events end it at once."""
_RETRY_S = 0.5
"""Seconds between two attempts to reach a ledgerd that is not there."""
_TIMEOUT_S = 10.0
_TEXT, _CLOSE, _PING = 1, 8, 9
_PONG = 0x8A
_MASKED = 0x80


class Live:
    """The events of a home from a moment on."""

    def __init__(self, places: Places, since_ms: int) -> None:
        self._places = places
        self._since_ms = since_ms
        self._since = rfc3339(since_ms)
        self._seen = _Seen()
        self._journals: Journals | None = None
        self._stream: Stream | None = None
        self._position: int | None = None
        self._retry_at = 0.0

    def history(self, run: str | None = None) -> Iterator[Event]:
        """Yields the events in the journals, or those in the directory of one run."""
        self._journals = Journals(self._places.journal, self._since_ms, run=run)
        return self._new(self._journals.history())

    def wait(self) -> list[Event]:
        """Waits for a moment and returns the events that arrived."""
        if self._stream is None and self._maybe_connect():
            # Events journalled before the stream began may lie before its position.
            return list(self._new(self._from_journals(look=True)))
        if self._stream is not None:
            try:
                return list(self._new(self._stream.read(_STREAM_S)))
            except StreamEnded:
                self._disconnect()
        found = list(self._new(self._from_journals()))
        if not found:
            time.sleep(_POLL_S)
        return found

    def close(self) -> None:
        if self._stream is not None:
            self._stream.close()

    def _new(self, events: Iterable[Event]) -> Iterator[Event]:
        for event in events:
            if self._seen.is_new(event) and event["ts"] >= self._since:
                yield event

    def _from_journals(self, *, look: bool = False) -> list[Event]:
        if self._journals is None:
            self._journals = Journals(self._places.journal, self._since_ms)
        return self._journals.news(look=look)

    def _maybe_connect(self) -> bool:
        if time.monotonic() < self._retry_at:
            return False
        self._retry_at = time.monotonic() + _RETRY_S
        if not os.path.exists(self._places.ledgerd_socket):
            return False
        try:
            if self._position is None:
                # Positions count events, so the total is the position of the newest event.
                self._position = Client(self._places).get("/v1/status")["events_total"]
            self._stream = Stream(self._places, self._position or 0)
        except DaemonUnavailable:
            return False
        return True

    def _disconnect(self) -> None:
        if self._stream is not None:
            self._position = self._stream.position
            self._stream.close()
            self._stream = None
        self._retry_at = 0.0


class _Seen:
    """Remembers which events were delivered, by the last `n` of each shim.

    One number per shim is enough, because both sources deliver a shim's events in order.
    """

    def __init__(self) -> None:
        self._last: dict[str, int] = {}

    def is_new(self, event: Event) -> bool:
        source = event.get("source", {})
        shim, n = source.get("shim_id"), source.get("n")
        if not isinstance(shim, str) or not isinstance(n, int):
            return True
        if n <= self._last.get(shim, 0):
            return False
        self._last[shim] = n
        return True


class StreamEnded(Exception):
    """ledgerd closed the stream, or died."""


class Stream:
    """ledgerd's events after a position. `position` is where to resume when the stream ends."""

    def __init__(self, places: Places, position: int) -> None:
        """Connects. Raises DaemonUnavailable."""
        self.position = position
        key = b2a_base64(os.urandom(16), newline=False).decode()
        head = (
            f"GET /v1/stream?after={position} HTTP/1.1\r\nHost: ledgerd\r\nUpgrade: websocket\r\n"
            f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n"
        )
        self._data = b""
        try:
            self._socket = connect(places.ledgerd_socket, _TIMEOUT_S)
        except OSError as error:
            raise no_answer() from error
        try:
            self._socket.sendall(head.encode())
            while b"\r\n\r\n" not in self._data:
                self._receive()
        except (OSError, StreamEnded) as error:
            self._socket.close()
            raise no_answer() from error
        answer, _, self._data = self._data.partition(b"\r\n\r\n")
        if b" 101 " not in answer.partition(b"\r\n")[0]:
            self._socket.close()
            raise no_answer()

    def read(self, timeout_s: float) -> list[Event]:
        """Waits for events and returns those that arrived. Raises StreamEnded."""
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
                    # Put the closing frame back: the next read reports the end.
                    self._data = b"\x88\x00"
                    return events
                raise StreamEnded
            if opcode == _PING:
                self._pong(payload)
            elif opcode == _TEXT:
                events += self._events(payload)
        return events

    def close(self) -> None:
        self._socket.close()

    def _events(self, payload: bytes) -> list[Event]:
        """The event of a message; none if this version cannot read it."""
        try:
            message = json.loads(payload)
        except (ValueError, RecursionError):
            return []
        self.position = message["position"]
        return [message["event"]]

    def _receive(self) -> None:
        piece = self._socket.recv(1 << 20)
        if not piece:
            raise StreamEnded
        self._data += piece

    def _frame(self) -> tuple[int, bytes] | None:
        """Takes the next frame from the buffer; None until it is complete. Servers do not mask."""
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
        # RFC 6455 makes clients mask what they send. A mask of four zero bytes is valid.
        self._socket.sendall(bytes([_PONG, _MASKED | len(payload), 0, 0, 0, 0]) + payload)
