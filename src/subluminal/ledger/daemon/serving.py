"""Runs ledgerd in this process until a signal stops it, and puts its parts together."""

import asyncio
import contextlib
import gc
import os
import signal
import time
from collections.abc import Iterator

import uvicorn
from starlette.types import ASGIApp

from subluminal import __version__
from subluminal.clock import now
from subluminal.config.places import Places
from subluminal.config.settings import LedgerSettings
from subluminal.ledger.api.app import build_app
from subluminal.ledger.api.ingest import Ingest
from subluminal.ledger.api.live import Live
from subluminal.ledger.api.readers import Readers
from subluminal.ledger.api.security import AccessCheck
from subluminal.ledger.api.status import Reporter
from subluminal.ledger.daemon import sockets
from subluminal.ledger.daemon.instance import Lock, Note, ingest_path, load_token
from subluminal.ledger.daemon.roll_call import RollCall
from subluminal.ledger.daemon.writer import Writer
from subluminal.ledger.ingest.ring import Ring

STOP_S = 5.0
"""How long open connections may take to end, in seconds."""


class _Server(uvicorn.Server):
    """A uvicorn server that leaves signals alone, because several servers share this process."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def serve(places: Places, settings: LedgerSettings, *, port: int | None = 0) -> None:
    """Runs until SIGTERM or SIGINT. Raises AlreadyRunning or LedgerUnavailable at the start."""
    lock = Lock(places)
    try:
        daemon = Daemon(places, settings, lock, port)
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(daemon.run())
        if daemon.writer.failure is not None:
            raise daemon.writer.failure
    finally:
        lock.release()


def tune_garbage_collection() -> None:
    """Makes collections rare. A batch creates tens of thousands of objects, which die with it."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 20, 100)


def _loop_factory() -> "type[asyncio.AbstractEventLoop] | None":
    try:
        import uvloop  # not on every platform
    except ImportError:
        return None
    loop: type[asyncio.AbstractEventLoop] = uvloop.Loop
    return loop


class Daemon:
    """The parts of one ledgerd, and how they start and stop."""

    def __init__(
        self, places: Places, settings: LedgerSettings, lock: Lock, port: int | None
    ) -> None:
        self._places = places
        self._lock = lock
        self._ring = Ring()
        self._readers = Readers(places.ledger)
        self._live = Live(self._readers)
        self.writer = Writer(places, settings, self._ring, self._live.committed)
        self._roll_call = RollCall(places)
        self._ingest = Ingest(self._ring, self.writer.wake)
        started = time.monotonic()
        self._reporter = Reporter(
            self.writer.progress, places.ledger, __version__, lambda: time.monotonic() - started
        )
        self._app = build_app(self._readers, self._live, self._ingest, self._reporter)
        self._unix = sockets.listen_unix(places.ledgerd_socket)
        self._jsonl = sockets.listen_unix(ingest_path(places))
        self._loopback = None if port is None else sockets.listen_loopback(port)
        tune_garbage_collection()

    async def run(self) -> None:
        """Serves until a signal arrives, or the writer fails."""
        stopping = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stopping.set)
        self._live.start()
        port = None
        servers = [_server(self._app)]
        listening = [self._unix]
        if self._loopback is not None:
            port = self._loopback.getsockname()[1]
            self._reporter.http = f"http://127.0.0.1:{port}"
            servers.append(_server(AccessCheck(self._app, load_token(self._places), port)))
            listening.append(self._loopback)
        jsonl = await asyncio.start_unix_server(
            self._ingest.serve_socket, sock=self._jsonl, limit=1_048_576
        )
        serving = [
            asyncio.create_task(server.serve(sockets=[listener]))
            for server, listener in zip(servers, listening, strict=True)
        ]
        self.writer.start()
        self._roll_call.start()
        watching = asyncio.create_task(_until_dead(self.writer))
        self._lock.write(Note(os.getpid(), __version__, now().wall_ms, port))
        stop = asyncio.create_task(stopping.wait())
        await asyncio.wait({stop, watching, *serving}, return_when=asyncio.FIRST_COMPLETED)
        jsonl.close()
        await self._stop(servers, serving)
        for task in (stop, watching):
            task.cancel()

    async def _stop(self, servers: list[_Server], serving: list["asyncio.Task[None]"]) -> None:
        self._live.close()
        self._roll_call.stop()
        for server in servers:
            server.should_exit = True
        await asyncio.wait(serving, timeout=STOP_S)
        # Readers first: the last connection to close moves the WAL into the ledger, which only
        # the writer's can.
        self._readers.close()
        self.writer.stop()
        await asyncio.to_thread(self.writer.join)
        for path in (self._places.ledgerd_socket, ingest_path(self._places)):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)


def _server(app: ASGIApp) -> _Server:
    return _Server(
        uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            lifespan="off",
            server_header=False,
            date_header=False,
            ws="websockets-sansio",
            ws_max_size=65_536,
            h11_max_incomplete_event_size=65_536,
            timeout_graceful_shutdown=2,
        )
    )


async def _until_dead(writer: Writer) -> None:
    while writer.is_alive():
        await asyncio.sleep(0.5)
