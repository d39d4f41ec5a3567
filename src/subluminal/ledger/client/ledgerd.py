"""Starts ledgerd in the background when a command needs it, and stops it."""

import os
import signal
import subprocess
import sys
import time

from subluminal.config.env import SUB_HOME, SUB_RUNTIME_DIR, without_tokens
from subluminal.config.places import Places, make_private_dir
from subluminal.config.plain_files import plain_file
from subluminal.ledger.client.http import Client, DaemonUnavailable
from subluminal.ledger.daemon.instance import is_running, log_path, read_note

_START_S = 15.0
_STOP_S = 15.0
_POLL_S = 0.02


def ensure_running(places: Places) -> Client:
    """Starts ledgerd if it is not running, and returns a client once it answers."""
    if read_note(places) is None:
        start(places)
    return Client(places)


def start(places: Places, *, port: int | None = 0) -> bool:
    """Starts ledgerd in the background; False if it was already running.

    `port` is the loopback port: 0 for a free one, None for none.
    """
    deadline = time.monotonic() + _START_S
    if is_running(places) and _await_answer(places, None, deadline):
        return False
    make_private_dir(places.home)
    make_private_dir(places.state)
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
    log = os.open(log_path(places), flags, 0o600)
    command = [sys.executable, "-m", "subluminal", "ledgerd"]
    command += ["--no-http"] if port is None else ["--port", str(port)]
    environ = {
        **without_tokens(os.environ),
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
    # ledgerd outlives this process on purpose. A return code stops `Popen` from warning about it.
    process.returncode = 0
    return True


def _await_answer(
    places: Places, process: "subprocess.Popen[bytes] | None", deadline: float
) -> bool:
    """Waits until ledgerd answers. Returns False if one that somebody else started has exited."""
    while time.monotonic() < deadline:
        if read_note(places) is not None:
            try:
                Client(places).get("/v1/status")
            except DaemonUnavailable:
                pass
            else:
                return True
        if process is None and not is_running(places):
            return False
        if process is not None and process.poll() is not None and not is_running(places):
            raise _did_not_start(places)
        time.sleep(_POLL_S)
    raise DaemonUnavailable(
        f"ledgerd did not answer within {_START_S:.0f} seconds",
        hint=f"read its log, `{log_path(places)}`",
    )


def _did_not_start(places: Places) -> DaemonUnavailable:
    """The error for a ledgerd that exited at once, with the reason from its log."""
    try:
        with open(log_path(places), encoding="utf-8", errors="replace", opener=plain_file) as file:
            lines = file.read(65_536).splitlines()
    except OSError:
        lines = []
    reasons = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
    if reasons:
        return DaemonUnavailable(f"ledgerd did not start: {reasons[0]}")
    return DaemonUnavailable(
        "ledgerd exited as soon as it was started, and gave no reason",
        hint=f"read its log, `{log_path(places)}`",
    )


def stop(places: Places) -> bool:
    """Stops ledgerd and waits until it is gone; False if it was not running."""
    if not is_running(places):
        return False
    deadline = time.monotonic() + _STOP_S
    signalled = False
    while is_running(places):
        note = read_note(places)
        if note is not None and not signalled:
            os.kill(note.pid, signal.SIGTERM)
            signalled = True
        if time.monotonic() > deadline:
            raise DaemonUnavailable(
                f"ledgerd did not stop within {_STOP_S:.0f} seconds",
                hint=f"read its log, `{log_path(places)}`",
            )
        time.sleep(_POLL_S)
    return True
