"""A network that loses answers: the server gets a statement, and the client is cut off."""

import socket
import threading
from contextlib import suppress

from tests.adapters.in_process.executions.postgres_server import PostgresServer


class CuttingProxy:
    """Passes bytes between clients and the server's socket, until it is told to cut."""

    def __init__(self, server: PostgresServer) -> None:
        self._upstream = str(server.place / f".s.PGSQL.{server.port}")
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._word = b""
        self._cuts = 0
        self._open: list[socket.socket] = [self._listener]
        self._threads: list[threading.Thread] = []
        self.url = f"postgresql://sub@127.0.0.1:{self._listener.getsockname()[1]}/postgres"
        self._spawn(self._accept)

    def cut_answers(self, word: bytes, *, connections: int) -> None:
        """Cuts each of the next connections that send a statement with this word."""
        self._word, self._cuts = word, connections

    def close(self) -> None:
        for each in self._open:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        for each in self._open:
            each.close()

    def _spawn(self, target: object, *args: object) -> None:
        self._threads.append(threading.Thread(target=target, args=args))  # type: ignore[arg-type]
        self._threads[-1].start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                upstream = socket.socket(socket.AF_UNIX)
                upstream.connect(self._upstream)
                self._open += [client, upstream]
                self._spawn(self._to_server, client, upstream)
                self._spawn(self._to_client, upstream, client)

    def _to_server(self, client: socket.socket, upstream: socket.socket) -> None:
        with suppress(OSError):
            while data := client.recv(65536):
                if self._cuts and self._word in data:
                    self._cuts -= 1
                    client.shutdown(socket.SHUT_RDWR)  # before the server can answer
                    upstream.sendall(data)
                    break
                upstream.sendall(data)
        with suppress(OSError):
            upstream.shutdown(socket.SHUT_WR)

    @staticmethod
    def _to_client(upstream: socket.socket, client: socket.socket) -> None:
        with suppress(OSError):
            while data := upstream.recv(65536):
                with suppress(OSError):
                    client.sendall(data)
        with suppress(OSError):
            client.shutdown(socket.SHUT_RDWR)
