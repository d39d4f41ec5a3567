"""Runs queries in threads beside the event loop. Each thread has its own read-only connection.

The writer may be behind the journals, because it looks at them rarely while nobody asks. So an
answer to a person is read by `run_fresh`, which first lets the writer catch up.
"""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Concatenate, ParamSpec, TypeVar

import apsw

from subluminal.ledger.store.database import open_reader

THREADS = 4

P = ParamSpec("P")
T = TypeVar("T")


class Readers:
    """A pool of threads that read one ledger."""

    def __init__(self, path: str, refresh: Callable[[], None] = lambda: None) -> None:
        """`refresh` waits, for a bounded time, until everything journalled so far is stored."""
        self._path = path
        self._refresh = refresh
        self._local = threading.local()
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="ledger-reader")
        self._connections: list[apsw.Connection] = []

    async def run(
        self,
        query: Callable[Concatenate[apsw.Connection, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Runs a function of `query` in one of the threads."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(
            self._pool, lambda: query(self._connection(), *args, **kwargs)
        )

    async def run_fresh(
        self,
        query: Callable[Concatenate[apsw.Connection, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Runs a function of `query` that sees everything journalled before this call."""
        await asyncio.get_running_loop().run_in_executor(self._pool, self._refresh)
        return await self.run(query, *args, **kwargs)

    def close(self) -> None:
        """Interrupts the queries under way, then closes the connections."""
        for connection in self._connections:
            connection.interrupt()
        self._pool.shutdown()
        for connection in self._connections:
            connection.close()

    def _connection(self) -> apsw.Connection:
        connection: apsw.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = open_reader(self._path)
            self._connections.append(connection)
        return connection
