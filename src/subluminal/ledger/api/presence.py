"""Who is connected to ledgerd, and when somebody last was: ledgerd does not leave while in use."""

import contextlib
import time
from collections.abc import Iterator

from starlette.types import ASGIApp, Receive, Scope, Send


class Presence:
    """Counts requests, streams and producers. Used on the event loop only."""

    def __init__(self) -> None:
        self.open = 0
        self.last_s = time.monotonic()
        """when somebody was last connected, on the monotonic clock"""

    @contextlib.contextmanager
    def counted(self) -> Iterator[None]:
        """Counts somebody who is connected within the `with` block."""
        self.open += 1
        try:
            yield
        finally:
            self.open -= 1
            self.last_s = time.monotonic()


class CountPresence:
    """An ASGI application that counts its requests and streams."""

    def __init__(self, app: ASGIApp, presence: Presence) -> None:
        self._app = app
        self._presence = presence

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._presence.counted():
            await self._app(scope, receive, send)
