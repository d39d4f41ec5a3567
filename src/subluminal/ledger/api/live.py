"""The live stream: a WebSocket that sends events as they are stored, from any position on.

A client resumes from the last position that it saw. Nothing is queued for slow clients: each stream
reads the ledger at its own pace, and waits for the next commit when it has read all.
"""

import asyncio
import contextlib

from starlette.websockets import WebSocket, WebSocketDisconnect

from subluminal.errors import SubluminalError
from subluminal.ledger.api.parameters import StreamParameters, read_parameters
from subluminal.ledger.api.readers import Readers
from subluminal.ledger.filter.matching import Passing
from subluminal.ledger.query.events import decode_stored, last_position, read_events
from subluminal.ledger.query.questions import CallFilter

MAX_STREAMS = 64
CLOSE_S = 0.5
"""How long `close` waits for slow clients, in seconds."""
GOING_AWAY = 1001
BAD_QUESTION = 1008
TRY_LATER = 1013


class Live:
    """Serves the streams, and wakes them after each commit."""

    def __init__(self, readers: Readers) -> None:
        self._readers = readers
        self._loop: asyncio.AbstractEventLoop | None = None
        self._more = asyncio.Event()
        self._empty = asyncio.Event()
        """set when the last stream has ended"""
        self._streams = 0
        self._is_closing = False

    @property
    def is_watched(self) -> bool:
        """Whether a stream is open."""
        return self._streams > 0

    def start(self) -> None:
        """Binds to the running event loop. Commits before this call wake no stream."""
        self._loop = asyncio.get_running_loop()

    def committed(self, position: int) -> None:
        """Wakes the streams. Called by the writer's thread after each commit."""
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: we are stopping
                self._loop.call_soon_threadsafe(self._announce)

    async def close(self) -> None:
        """Ends every stream, and waits for a moment until their clients have been told."""
        self._is_closing = True
        self._announce()
        if self._streams:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._empty.wait(), CLOSE_S)

    def _announce(self) -> None:
        self._more.set()
        self._more = asyncio.Event()

    async def serve(self, socket: WebSocket) -> None:
        """WebSocket /v1/stream"""
        await socket.accept()
        try:
            given = read_parameters(socket.query_params.multi_items(), StreamParameters)
            wanted = given.filter()
        except SubluminalError as error:
            await socket.close(BAD_QUESTION, str(error)[:120])
            return
        if self._streams >= MAX_STREAMS:
            await socket.close(TRY_LATER, "too many streams are open")
            return
        self._streams += 1
        self._empty.clear()
        watcher = asyncio.create_task(_until_gone(socket))
        try:
            position = given.after
            if position is None:
                position = await self._readers.run(last_position)
            await self._send_all(socket, watcher, wanted, position)
        except WebSocketDisconnect:
            pass
        finally:
            self._streams -= 1
            if not self._streams:
                self._empty.set()
            watcher.cancel()

    async def _send_all(
        self, socket: WebSocket, watcher: "asyncio.Task[None]", wanted: CallFilter, position: int
    ) -> None:
        passing = Passing(wanted.terms)
        while not watcher.done() and not self._is_closing:
            more = self._more
            piece = await self._readers.run(read_events, wanted, position)
            for event in piece.events:
                if wanted.terms:
                    decoded = decode_stored(event.line)
                    if decoded is None or not passing.takes(decoded):
                        continue
                await socket.send_text(
                    f'{{"position":{event.position},"event":{event.line.decode()}}}'
                )
            if piece.position == position:
                waiting = asyncio.create_task(more.wait())
                await asyncio.wait({waiting, watcher}, return_when=asyncio.FIRST_COMPLETED)
                waiting.cancel()
            position = piece.position
        if self._is_closing:
            await socket.close(GOING_AWAY, "ledgerd is stopping")


async def _until_gone(socket: WebSocket) -> None:
    """Waits until the client disconnects. Ignores whatever it sends."""
    with contextlib.suppress(WebSocketDisconnect, RuntimeError):
        while True:
            await socket.receive_text()
