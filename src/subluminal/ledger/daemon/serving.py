"""Runs ledgerd in this process until something ends it, and puts its parts together.

It ends at a signal, when its home or its ledger is gone, and when it has been idle for long: no
process takes part in a run, no events came, and nobody was connected.
"""

import asyncio
import contextlib
import gc
import os
import signal
import time
from collections.abc import Callable, Iterator

import uvicorn
from starlette.types import ASGIApp

from subluminal import __version__
from subluminal.clock import now
from subluminal.config.places import Places
from subluminal.config.settings import LedgerSettings
from subluminal.core.runs.living import living_runs
from subluminal.ledger.api.app import build_app
from subluminal.ledger.api.ingest import Ingest
from subluminal.ledger.api.live import Live
from subluminal.ledger.api.presence import CountPresence, Presence
from subluminal.ledger.api.readers import Readers
from subluminal.ledger.api.security import AccessCheck
from subluminal.ledger.api.signing import Signing
from subluminal.ledger.api.status import Reporter
from subluminal.ledger.daemon import sockets
from subluminal.ledger.daemon.belongings import Belongings
from subluminal.ledger.daemon.instance import Lock, Note, ingest_path, load_token
from subluminal.ledger.daemon.roll_call import RollCall
from subluminal.ledger.daemon.writer import Writer
from subluminal.ledger.ingest.ring import Ring

STOP_S = 5.0
"""How long open connections may take to end, in seconds."""


class _Server(uvicorn.Server):
    """A uvicorn server that sleeps while there are no requests.

    It leaves signals alone, because several servers share this process.
    """

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._stopping = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def main_loop(self) -> None:
        """Waits for `stop`. uvicorn's own loop looks ten times a second."""
        await self.on_tick(0)
        await self._stopping.wait()

    def stop(self) -> None:
        self.should_exit = True
        self._stopping.set()


def serve(
    places: Places,
    settings: LedgerSettings,
    *,
    port: int | None = 0,
    tell: Callable[[str], None] = lambda message: None,
) -> None:
    """Runs until it ends; `tell` gets the reason if that was not a signal.

    Raises AlreadyRunning or LedgerUnavailable at the start.
    """
    lock = Lock(places)
    try:
        daemon = Daemon(places, settings, lock, port)
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            reason = runner.run(daemon.run())
        if daemon.writer.failure is not None:
            raise daemon.writer.failure
        if reason:
            tell(reason)
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
        self._settings = settings
        self._lock = lock
        self._ring = Ring()
        self._presence = Presence()
        self._readers = Readers(places.ledger, lambda: self.writer.refresh())
        self._live = Live(self._readers)
        self._roll_call = RollCall(places)
        self._ended = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self.writer = Writer(
            places,
            settings,
            self._ring,
            self._committed,
            lambda: self._live.is_watched,
            self._writer_ended,
        )
        self._ingest = Ingest(self._ring, self.writer.wake, self._presence)
        started = time.monotonic()
        self._reporter = Reporter(
            self.writer.progress, places.ledger, __version__, lambda: time.monotonic() - started
        )
        signing = Signing(self._readers, self.writer.ask_for_checkpoint)
        app = build_app(self._readers, self._live, self._ingest, signing, self._reporter)
        self._app = CountPresence(app, self._presence)
        self._unix = sockets.listen_unix(places.ledgerd_socket)
        self._jsonl = sockets.listen_unix(ingest_path(places))
        self._sockets = [Belongings(places.ledgerd_socket), Belongings(ingest_path(places))]
        self._loopback = None if port is None else sockets.listen_loopback(port)
        tune_garbage_collection()

    def _committed(self, position: int) -> None:
        """Called by the writer's thread after each commit."""
        self._live.committed(position)
        self._roll_call.events_came()

    def _writer_ended(self) -> None:
        """Called by the writer's thread at its end."""
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: we are stopping
                self._loop.call_soon_threadsafe(self._ended.set)

    async def run(self) -> str | None:
        """Serves until it ends. Returns the reason if that was neither a signal nor a bug."""
        stopping = asyncio.Event()
        loop = self._loop = asyncio.get_running_loop()
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
        self._lock.write(Note(os.getpid(), __version__, now().wall_ms, port))
        idle = asyncio.create_task(self._until_idle())
        waiting = [asyncio.create_task(stopping.wait()), asyncio.create_task(self._ended.wait())]
        await asyncio.wait({idle, *waiting, *serving}, return_when=asyncio.FIRST_COMPLETED)
        reason = None
        if self.writer.is_homeless:
            reason = f"`{self._places.home}` or its ledger is gone"
        elif idle.done():
            reason = f"nothing to follow for {self._settings.idle_exit_s} s"
        self._unlink_sockets()
        jsonl.close()
        await self._stop(servers, serving)
        for task in (idle, *waiting):
            task.cancel()
        return reason

    async def _until_idle(self) -> None:
        """Waits until there was nothing to follow, and nobody connected, for `idle_exit_s`."""
        idle_s = self._settings.idle_exit_s
        living_s = 0.0
        while True:
            last_s = max(self._presence.last_s, self.writer.progress.active_s, living_s)
            left_s = last_s + idle_s - time.monotonic()
            if idle_s == 0 or self._presence.open:
                await asyncio.sleep(max(idle_s, 1) if idle_s else 86_400)
            elif left_s > 0:
                await asyncio.sleep(left_s)
            elif await asyncio.to_thread(living_runs, self._places):
                living_s = time.monotonic()
            else:
                return

    def _unlink_sockets(self) -> None:
        """Lets new clients find no socket, rather than a ledgerd that is leaving."""
        for path, ours in zip(
            (self._places.ledgerd_socket, ingest_path(self._places)), self._sockets, strict=True
        ):
            if ours.are_ours():
                with contextlib.suppress(OSError):
                    os.unlink(path)

    async def _stop(self, servers: list[_Server], serving: list["asyncio.Task[None]"]) -> None:
        await self._live.close()
        self._roll_call.stop()
        for server in servers:
            server.stop()
        await asyncio.wait(serving, timeout=STOP_S)
        # Readers first: the last connection to close moves the WAL into the ledger, which only
        # the writer's can.
        self._readers.close()
        self.writer.stop()
        await asyncio.to_thread(self.writer.join)


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
