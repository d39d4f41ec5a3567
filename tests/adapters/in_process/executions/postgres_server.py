"""A real PostgreSQL server in a short directory of its own, on a socket and on loopback."""

import ctypes
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
from pathlib import Path

import psycopg
from tests.processes import wait_until

_SET_PDEATHSIG = 1
PASSWORD = "s3cr%t/@word"
"""For connections over TCP; the socket asks for none."""


class PostgresServer:
    """One server. It cannot run as root, so it runs as `postgres` there."""

    def __init__(self, *, durable: bool = False) -> None:
        self._fsync = "on" if durable else "off"
        self.bin = max(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda p: int(p.parent.name))
        self.place = Path(tempfile.mkdtemp(prefix="pg"))
        self._user = pwd.getpwnam("postgres") if os.geteuid() == 0 else None
        self._process: subprocess.Popen[bytes] | None = None
        secret = self.place / "password"
        secret.write_text(PASSWORD)
        if self._user is not None:
            for path in (self.place, secret):
                os.chown(path, self._user.pw_uid, self._user.pw_gid)
        options = [
            "--auth-local=trust",
            "--auth-host=scram-sha-256",
            "--no-sync",
            "--encoding=UTF8",
        ]
        words = [str(self.bin / "initdb"), "-D", self._data, "-U", "sub", *options]
        made = self._popen([*words, f"--pwfile={secret}"])
        out, _ = made.communicate(timeout=60)
        assert made.returncode == 0, out
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]

    @property
    def _data(self) -> str:
        return str(self.place / "data")

    @property
    def url(self) -> str:
        return f"postgresql://sub@/postgres?host={self.place}&port={self.port}"

    def tcp_url(self, password: str) -> str:
        return f"postgresql://sub:{password}@127.0.0.1:{self.port}/postgres"

    def _popen(self, words: list[str]) -> "subprocess.Popen[bytes]":
        as_user = {}
        if self._user is not None:
            as_user = {"user": self._user.pw_uid, "group": self._user.pw_gid, "extra_groups": []}
        libc = ctypes.CDLL(None)
        return subprocess.Popen(
            words,
            cwd=self.place,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"},
            preexec_fn=lambda: libc.prctl(_SET_PDEATHSIG, signal.SIGQUIT, 0, 0, 0),
            **as_user,
        )

    def start(self) -> None:
        """Starts the server unless it runs, and waits until it answers."""
        if self._process is not None:
            return
        given = {"listen_addresses": "127.0.0.1", "port": str(self.port), "fsync": self._fsync}
        given |= {"unix_socket_directories": str(self.place), "logging_collector": "on"}
        options = [word for name, value in given.items() for word in ("-c", f"{name}={value}")]
        self._process = self._popen([str(self.bin / "postgres"), "-D", self._data, *options])
        wait_until(self._answers, "an answer of PostgreSQL", 60)

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, self._process.stdout and self._process.stdout.read()
        try:
            psycopg.connect(self.url).close()
        except psycopg.Error:
            return False
        return True

    def stop(self, how: signal.Signals = signal.SIGQUIT) -> None:
        """Stops the server: at once, as a crash would, or orderly."""
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(signal.SIGCONT)
            process.send_signal(how)
            process.communicate(timeout=60)

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self.place)

    def run(self, statement: str) -> None:
        """Runs a statement as another client."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(statement.encode())

    def backends(self) -> list[int]:
        """Returns the server's processes for sessions of ours."""
        query = "SELECT pid FROM pg_stat_activity WHERE application_name = 'subluminal'"
        with psycopg.connect(self.url) as connection:
            return [pid for (pid,) in connection.execute(query)]

    def pause(self, backend: int) -> None:
        """Suspends a session's process and the one that takes connections."""
        assert self._process is not None
        for pid in (self._process.pid, backend):
            os.kill(pid, signal.SIGSTOP)

    def resume(self, backend: int) -> None:
        assert self._process is not None
        for pid in (self._process.pid, backend):
            os.kill(pid, signal.SIGCONT)
