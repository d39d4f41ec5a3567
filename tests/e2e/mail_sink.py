"""An SMTP server on loopback that keeps every mail which it is given, and delivers none."""

import socketserver
import threading

_HELLO = b"250-sink\r\n250 AUTH PLAIN LOGIN\r\n"
_ANSWERS = {b"EHLO": _HELLO, b"AUTH": b"235 ok\r\n", b"QUIT": b"221 bye\r\n"}


class MailSink:
    """Accepts mail until it is closed."""

    def __init__(self) -> None:
        self.mails: list[str] = []
        """the mails, headers and body, in the order in which they came"""
        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _handler(self) -> type[socketserver.StreamRequestHandler]:
        sink = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                self.wfile.write(b"220 sink\r\n")
                for line in self.rfile:
                    verb = line[:4].upper()
                    if verb == b"DATA":
                        self.wfile.write(b"354 go on\r\n")
                        lines = iter(self.rfile.readline, b".\r\n")
                        sink.mails.append(b"".join(lines).decode())
                    self.wfile.write(_ANSWERS.get(verb, b"250 ok\r\n"))
                    if verb == b"QUIT":
                        return

        return Handler
