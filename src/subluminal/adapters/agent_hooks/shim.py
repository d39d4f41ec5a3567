"""The hook shim: one process per session, which decides what the fronts bring.

Theory of operation. One thread polls the socket, the connections of fronts, signals and the
client's process. An event is read whole, decided, answered. The process ends when the session ends,
when the client is gone, at a signal, or after a long time without events; it leaves its runs on
record first. If it is killed, the next event starts another, and whoever finds the dead process
completes its record (`core.runs.abandoned`).
"""

import os
import select
import socket
import time
from typing import TYPE_CHECKING

from subluminal.adapters.agent_hooks.client_process import Watch, client_pid
from subluminal.adapters.agent_hooks.clients import client_named
from subluminal.adapters.agent_hooks.front import MAX_REQUEST_BYTES, socket_path
from subluminal.adapters.agent_hooks.session import Session
from subluminal.adapters.agent_hooks.wire import UNDECIDED, Answer, decode_request, encode_answer
from subluminal.config import env
from subluminal.config.places import Places, working_directory
from subluminal.config.settings import Settings
from subluminal.contracts.vocabulary import RunStatus
from subluminal.core.host import Host
from subluminal.errors import ExitCode, SubluminalError
from subluminal.system.signals import wake_on_signals
from subluminal.system.sockets import peer_uid
from subluminal.trust.identity.agent import identity_of

if TYPE_CHECKING:
    from subluminal.adapters.agent_hooks.entry import Options, Tools

_IDLE_MS = 500
"""Longest sleep without events; a stop and a changed policy are noticed within this time."""
_IDLE_EXIT_S = 1_800
"""A session without events for so long is left; the next event enters it again."""
_MAX_LINES = 64
"""Most fronts that are read at once; the oldest one is dropped for a further one, and comes again.
A front sends its event at once, so it is somebody else who connects and says nothing."""
_MAX_LINE_S = 60
"""A connection without a whole event is dropped after so long; no client waits for 60 s."""
_MARGIN_MS = 1_000
"""Time that is left to a front when it has waited for a policy to be compiled."""
_CHUNK_BYTES = 1 << 16


class _Line:
    """The connection of one front."""

    def __init__(self, peer: socket.socket) -> None:
        self.peer = peer
        self.pieces: list[bytes] = []
        self.size = 0
        self.since = time.monotonic()


class HookShim:
    """The loop of one hook shim."""

    def __init__(self, listener: socket.socket, session: Session, host: Host, watch: Watch) -> None:
        self._listener = listener
        self._session = session
        self._host = host
        self._watch = watch
        self._lines: dict[int, _Line] = {}
        self._poll = select.poll()
        self._is_over = False
        self._used_at = time.monotonic()

    def run(self) -> None:
        """Serves fronts until the session is over."""
        wakeup = wake_on_signals()
        listening = self._listener.fileno()
        self._listener.setblocking(False)
        for fd in (listening, wakeup, self._watch.fd):
            if fd is not None:
                self._poll.register(fd, select.POLLIN)
        while not self._is_over:
            ready = {fd for fd, _ in self._poll.poll(_IDLE_MS)}
            self._tick()
            for fd in ready & self._lines.keys():
                self._read(self._lines[fd])
            if listening in ready:
                self._accept()
            if wakeup in ready:
                self._is_over = True
            if not ready & self._lines.keys():
                self._look_at_client()

    def _tick(self) -> None:
        self._host.tick(time.monotonic_ns() // 1_000_000)

    def _look_at_client(self) -> None:
        """Ends the loop if the client is gone, or has been silent for long."""
        for line in list(self._lines.values()):
            if time.monotonic() - line.since > _MAX_LINE_S:
                self._drop(line)
        if self._watch.is_gone():
            self._is_over = True
        elif not self._lines:
            is_idle = time.monotonic() - self._used_at > _IDLE_EXIT_S
            self._is_over |= self._session.has_ended or (is_idle and not self._session.open_calls)

    def _accept(self) -> None:
        while True:
            try:
                peer, _ = self._listener.accept()
            except ConnectionAbortedError:
                continue
            except BlockingIOError:
                return
            except OSError:  # no descriptor is left
                self._drop_oldest()
                return
            if len(self._lines) >= _MAX_LINES:
                self._drop_oldest()
            if peer_uid(peer) not in (os.getuid(), None):
                peer.close()
                continue
            peer.setblocking(False)
            self._lines[peer.fileno()] = _Line(peer)
            self._poll.register(peer, select.POLLIN)

    def _read(self, line: _Line) -> None:
        try:
            piece = line.peer.recv(_CHUNK_BYTES)
        except BlockingIOError:
            return
        except OSError:
            self._drop(line)
            return
        line.size += len(piece)
        if line.size > MAX_REQUEST_BYTES:
            self._drop(line)
        elif piece:
            line.pieces.append(piece)
        else:
            self._answer(line)

    def _answer(self, line: _Line) -> None:
        self._used_at = time.monotonic()
        request = decode_request(b"".join(line.pieces))
        if request is not None:
            answer = self._decided(*request)
            try:
                line.peer.setblocking(True)
                line.peer.settimeout(_IDLE_MS / 1000)
                line.peer.sendall(encode_answer(answer))
            except OSError:
                pass  # the front is gone; its client did not wait
        self._drop(line)

    def _decided(self, *request: object) -> Answer:
        try:
            self._await_policies()
            return self._session.handle(*request)  # type: ignore[arg-type]
        except Exception as bug:  # noqa: BLE001 - the door's edge: the front applies --on-error
            self._host.report_bug(bug)
            return Answer(UNDECIDED, stderr=f"a bug in sub: {type(bug).__name__}".encode())

    def _await_policies(self) -> None:
        if self._host.is_loading:
            wait_ms = max(0, self._host.settings.hooks.timeout_ms - _MARGIN_MS)
            self._host.await_policies(wait_ms / 1000)
            if self._host.is_loading:
                self._host.give_up_waiting()

    def _drop_oldest(self) -> None:
        for line in list(self._lines.values())[:1]:
            self._drop(line)

    def _drop(self, line: _Line) -> None:
        fd = line.peer.fileno()
        self._poll.unregister(fd)
        del self._lines[fd]
        line.peer.close()

    def close(self) -> None:
        """Ends open calls and leaves the run."""
        had_open = self._session.open_calls > 0
        self._session.cancel_open()
        is_cut = had_open and not self._session.has_ended
        self._host.close(RunStatus.CANCELLED if is_cut else None)


def serve(
    where: Places,
    name: str,
    listening: int,
    options: "Options",
    tools: "Tools",
    parent: int,
) -> int:
    """Runs the hook shim of one session; returns the exit code.

    `listening` is the descriptor of the session's socket, `parent` the process that started the
    front.
    """
    listener = socket.socket(fileno=listening)
    code, problem = ExitCode.OK, ""
    try:
        shim = _started(where, listener, options, tools, parent)
        shim.run()
    except SubluminalError as error:
        code, problem = ExitCode.USAGE, str(error)
    except Exception as bug:  # noqa: BLE001 - the process' edge: fronts apply --on-error
        from subluminal.config.bug_report import write_bug_report

        write_bug_report(bug, ["hook"], where)
        code, problem = ExitCode.BUG, f"a bug in sub: {type(bug).__name__}"
    if problem:
        _answer_once(listener, Answer(UNDECIDED, stderr=problem.encode()))
    # From now on fronts find no socket: the next event waits until this process is gone.
    _remove(socket_path(where, name))
    listener.close()
    if not problem:
        shim.close()
    _remove(socket_path(where, name).removesuffix(".sock") + ".lock")
    return int(code)


def _started(
    where: Places, listener: socket.socket, options: "Options", tools: "Tools", parent: int
) -> HookShim:
    client, cwd = client_pid(options.client, os.environ, parent), working_directory()
    kind = client_named(options.client)
    host = _open(where, options, tools, cwd, client, can_ask=kind.ask is not None)
    # Only now: whether a person's terminal controls the client is part of the identity.
    os.setsid()
    os.chdir("/")
    host.tick(0, force=True)
    served = {"server_name": f"@{kind.name}", "pid": os.getpid()}
    host.tell(lambda run: run.health("alive", **served))
    session = Session(host, kind, lambda: tools.configured_servers(options.client, cwd))
    return HookShim(listener, session, host, Watch(client))


def _open(
    where: Places, options: "Options", tools: "Tools", cwd: str, client: int, *, can_ask: bool
) -> Host:
    settings, seen = Settings(), None
    if os.path.exists(where.settings):
        from subluminal.config.loading import load_settings
        from subluminal.core.policies.files import stamp_of

        seen = stamp_of(where.settings)
        settings = load_settings(where.settings)
    environ = dict(os.environ)
    environ.setdefault(env.SUB_CLIENT.name, options.client)
    return tools.open_host(
        where,
        environ=environ,
        cwd=cwd,
        identity=identity_of(environ, cwd, client),
        client_pid=client,
        policy=options.policy,
        settings=settings,
        settings_seen=seen,
        client_asks=can_ask and settings.hooks.ask == "client",
    )


def _answer_once(listener: socket.socket, answer: Answer) -> None:
    """Gives the same answer to the fronts that wait: they would start this process again."""
    listener.settimeout(_IDLE_MS / 1000)
    try:
        while True:
            peer, _ = listener.accept()
            with peer:
                peer.settimeout(_IDLE_MS / 1000)
                while peer.recv(_CHUNK_BYTES):
                    pass
                peer.sendall(encode_answer(answer))
            listener.settimeout(0)
    except OSError:
        return  # nobody waits any more


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        return  # the home was removed, or became read-only
