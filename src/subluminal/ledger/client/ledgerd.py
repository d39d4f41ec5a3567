"""Talks to ledgerd over its socket, and starts it when a command needs it.

http.client, not a library: commands start fast, and there is one server to talk to.
"""

import http.client
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

import msgspec

from subluminal.config.env import SUB_HOME, SUB_RUNTIME_DIR
from subluminal.config.places import Places, make_private_dir
from subluminal.errors import SubluminalError
from subluminal.ledger.daemon.instance import is_running, log_path, read_note, socket_path
from subluminal.ledger.daemon.sockets import connect_unix

START_S = 15.0
STOP_S = 15.0
TIMEOUT_S = 30.0
POLL_S = 0.02


class DaemonUnavailable(SubluminalError):
    """ledgerd does not answer."""


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("ledgerd", timeout=TIMEOUT_S)
        self._path = path

    def connect(self) -> None:
        self.sock: socket.socket = connect_unix(self._path, TIMEOUT_S)


class Client:
    """Asks one home's ledgerd."""

    def __init__(self, places: Places) -> None:
        self._places = places

    def get(self, path: str, parameters: Mapping[str, str | int | None] | None = None) -> Any:
        """A resource, decoded. Raises DaemonUnavailable, or SubluminalError with its answer."""
        given = {name: value for name, value in (parameters or {}).items() if value is not None}
        target = quote(path) + (f"?{urlencode(given)}" if given else "")
        return self._ask("GET", target, None)

    def post(self, path: str, body: bytes) -> Any:
        """Sends JSON lines."""
        return self._ask("POST", quote(path), body)

    def _ask(self, method: str, target: str, body: bytes | None) -> Any:
        connection = _UnixConnection(socket_path(self._places))
        headers = {"content-type": "application/x-ndjson"} if body is not None else {}
        try:
            connection.request(method, target, body, headers)
            response = connection.getresponse()
            data = response.read()
        except (OSError, http.client.HTTPException) as error:
            raise DaemonUnavailable(
                "ledgerd does not answer", hint="`sub ledgerd start` starts it"
            ) from error
        finally:
            connection.close()
        value = msgspec.json.decode(data)
        if response.status != http.HTTPStatus.OK:
            raise SubluminalError(value["error"], hint=value.get("hint"))
        return value


def ensure_running(places: Places) -> Client:
    """Starts ledgerd if it does not run; returns once it answers."""
    client = Client(places)
    if not is_running(places) or read_note(places) is None:
        start(places)
    return client


def start(places: Places, *, port: int | None = 0) -> bool:
    """Starts ledgerd in the background. False if it ran already."""
    deadline = time.monotonic() + START_S
    if is_running(places):
        _await_answer(places, None, deadline)
        return False
    make_private_dir(places.home)
    make_private_dir(places.state)
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
    log = os.open(log_path(places), flags, 0o600)
    command = [sys.executable, "-m", "subluminal", "ledgerd"]
    command += ["--no-http"] if port is None else ["--port", str(port)]
    environ = {
        **os.environ,
        SUB_HOME.name: places.home,
        SUB_RUNTIME_DIR.name: places.runtime_dir,
    }
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            cwd="/",
            env=environ,
        )
    finally:
        os.close(log)
    _await_answer(places, process, deadline)
    # It outlives us on purpose: nobody waits for it.
    process.returncode = 0
    return True


def _await_answer(
    places: Places, process: "subprocess.Popen[bytes] | None", deadline: float
) -> None:
    while time.monotonic() < deadline:
        if read_note(places) is not None:
            try:
                Client(places).get("/v1/status")
            except DaemonUnavailable:
                pass
            else:
                return
        if process is not None and process.poll() is not None and not is_running(places):
            raise DaemonUnavailable(*_last_words(places))
        time.sleep(POLL_S)
    raise DaemonUnavailable(
        f"ledgerd did not answer within {START_S:.0f} s", hint=f"see `{log_path(places)}`"
    )


def _last_words(places: Places) -> tuple[str]:
    try:
        with open(log_path(places), encoding="utf-8", errors="replace") as file:
            lines = file.read(65_536).splitlines()
    except OSError:
        lines = []
    errors = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
    return (f"ledgerd did not start: {errors[0] if errors else 'it said nothing'}",)


def stop(places: Places) -> bool:
    """Stops ledgerd and waits until it is gone. False if it did not run."""
    if not is_running(places):
        return False
    deadline = time.monotonic() + STOP_S
    signalled = False
    while is_running(places):
        note = read_note(places)
        if note is not None and not signalled:
            os.kill(note.pid, signal.SIGTERM)
            signalled = True
        if time.monotonic() > deadline:
            raise DaemonUnavailable(
                f"ledgerd did not stop within {STOP_S:.0f} s", hint=f"see `{log_path(places)}`"
            )
        time.sleep(POLL_S)
    return True
