"""Takes JSONL from producers that share no disk: over HTTP POST, or a unix socket (journal-first).

Both answer only when the lines are in the ledger, so that a producer knows what to send again.
Sending a line twice is harmless. A line that is longer than any event ends the connection, after an
answer that says so.
"""

import asyncio
from collections.abc import Callable

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from subluminal.clock import now
from subluminal.journal.reading import MAX_LINE_BYTES
from subluminal.ledger.api.answers import answer, refuse
from subluminal.ledger.api.presence import Presence
from subluminal.ledger.ingest.ring import Parcel, Ring

MAX_BODY_BYTES = 16_777_216
RETRY_S = 0.05
_MEDIA_TYPES = ("application/x-ndjson", "application/jsonl", "application/json", "")


class Taken(Struct, frozen=True):
    """What happened to the lines."""

    stored: int
    """events that were new"""
    known: int
    """events that the ledger had already"""
    quarantined: int
    """lines that were not events"""


class Cutter:
    """Cuts pieces of a stream into lines. Looks at every byte once, however small the pieces."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self.size = 0
        """size of the line that has no end yet, in bytes"""

    def __call__(self, data: bytes) -> list[bytes]:
        """Returns the lines that end in this piece, without their newlines."""
        first, *rest = data.split(b"\n")
        self._parts.append(first)
        self.size += len(first)
        if not rest:
            return []
        lines = [b"".join(self._parts), *rest[:-1]]
        self._parts, self.size = [rest[-1]], len(rest[-1])
        return lines


class Ingest:
    """Hands lines to the writer, and waits until it has stored them."""

    def __init__(self, ring: Ring, wake: Callable[[], None], presence: Presence) -> None:
        self._ring = ring
        self._wake = wake
        self._presence = presence
        # Origin and offset identify a quarantined line, so every parcel needs its own origin.
        self._session = now().wall_ms
        self._parcels = 0

    async def store(
        self, lines: list[bytes], origin: str, offset: int, *, wait: bool
    ) -> Parcel | None:
        """Stores lines. Returns their parcel once they are in the ledger; None if they are not.

        With `wait`, waits for room in the ring.
        """
        loop = asyncio.get_running_loop()
        done: asyncio.Future[bool] = loop.create_future()

        def tell(is_stored: bool) -> None:
            loop.call_soon_threadsafe(_settle, done, is_stored)

        parcel = Parcel(lines, origin, offset, tell)
        while not self._ring.put(parcel):
            if not wait or self._ring.is_closed:
                return None
            await asyncio.sleep(RETRY_S)
        self._wake()
        return parcel if await done else None

    async def post(self, request: Request) -> Response:
        """POST /v1/events"""
        media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if media_type not in _MEDIA_TYPES:
            return refuse(
                415, f"`{media_type[:60]}` is not JSON lines", "send application/x-ndjson"
            )
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > MAX_BODY_BYTES:
                return refuse(
                    413, f"the body has more than {MAX_BODY_BYTES} bytes", "send fewer lines"
                )
        lines = bytes(body).split(b"\n")
        parcel = await self.store(lines, self._origin("http"), 0, wait=False)
        if parcel is None:
            response = refuse(503, "the ledger cannot take more lines now", "try again")
            response.headers["retry-after"] = "1"
            return response
        return answer(Taken(parcel.stored, parcel.known, parcel.quarantined))

    async def serve_socket(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Takes lines, and after each piece sends `{"taken": N}`: the lines stored so far."""
        with self._presence.counted():
            await self._serve_socket(reader, writer)

    async def _serve_socket(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        origin = self._origin("socket")
        cut, offset, taken = Cutter(), 0, 0
        try:
            while data := await reader.read(1_048_576):
                lines = cut(data)
                if cut.size > MAX_LINE_BYTES:
                    writer.write(b'{"error":"the line at %d is longer than any event"}\n' % offset)
                    await writer.drain()
                    break
                if not lines:
                    continue
                if await self.store(lines, origin, offset, wait=True) is None:
                    break
                offset += sum(len(line) + 1 for line in lines)
                taken += sum(1 for line in lines if line)
                writer.write(b'{"taken":%d}\n' % taken)
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()

    def _origin(self, way: str) -> str:
        self._parcels += 1
        return f"{way}:{self._session}-{self._parcels}"


def _settle(done: "asyncio.Future[bool]", is_stored: bool) -> None:
    if not done.done():
        done.set_result(is_stored)
