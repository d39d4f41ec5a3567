"""A fake model API on loopback, on a script. `dialects` has the APIs that it speaks.

It keeps no session: the number of tool results in a request tells how far its conversation is. So
any number of agents can use one fake model at once. It keeps all requests and their tool results.
"""

import itertools
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from tests.e2e.dialects import Dialect, ToolCall, dialect_of

MAX_HOLD_S = 60


class Thought(NamedTuple):
    """A tool call that depends on the tool results so far.

    `think` gets the results in order, and returns None to end the conversation.
    """

    server: str
    think: Callable[[list[str]], ToolCall | None]


Step = ToolCall | Thought | list[ToolCall]
"""One answer of the model. A list is several calls at once."""


class FakeModel:
    """Answers with the script's calls, one step after another, then with a text."""

    def __init__(self, script: list[Step], *, hold_at: int | None = None) -> None:
        self.script = script
        self.requests: list[dict[str, Any]] = []
        """the bodies of the conversations' requests"""
        self.results: list[list[str]] = []
        """the tool results of each request, as the model reads them"""
        self.held = threading.Event()
        """set while the request with `hold_at` results is kept waiting"""
        self.numbers = itertools.count()
        """numbers of the calls: no two of them have the same id, whichever agent makes them"""
        self._hold_at = hold_at
        self._release = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def steps(self) -> Iterator[ToolCall | Thought]:
        """Returns every call of the script."""
        for step in self.script:
            yield from step if isinstance(step, list) else [step]

    def last_results(self) -> list[str]:
        """Returns the tool results of the longest conversation."""
        return max(self.results, key=len, default=[])

    def release(self) -> None:
        """Answers the waiting request."""
        self._release.set()

    def close(self) -> None:
        self.release()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, body: dict[str, Any], results: list[str]) -> list[ToolCall]:
        """Returns the next calls of the script; none at its end."""
        self.requests.append(body)
        self.results.append(results)
        if len(results) == self._hold_at:
            self.held.set()
            self._release.wait(MAX_HOLD_S)
        step = self._step_after(len(results))
        if isinstance(step, Thought):
            step = step.think(results)
        if step is None:
            return []
        return step if isinstance(step, list) else [step]

    def _step_after(self, done: int) -> Step | None:
        for step in self.script:
            if done <= 0:
                return step
            done -= len(step) if isinstance(step, list) else 1
        return None

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        model = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: object) -> None:
                return

            def do_HEAD(self) -> None:
                self._reply(b"", "text/plain")

            def do_GET(self) -> None:
                self._reply(b'{"data":[],"models":[]}', "application/json")

            def do_POST(self) -> None:
                length = int(self.headers.get("content-length") or 0)
                body = json.loads(self.rfile.read(length) or b"{}")
                dialect = dialect_of(self.path)
                if dialect is None:
                    self._reply(b'{"input_tokens":1}', "application/json")
                else:
                    self._reply(_stream(dialect, body, model), "text/event-stream")

            def _reply(self, data: bytes, kind: str) -> None:
                try:
                    self.send_response(200)
                    self.send_header("content-type", kind)
                    self.send_header("content-length", str(len(data)))
                    self.end_headers()
                    self.wfile.write(data)
                except OSError:
                    return  # the agent is gone, as some tests intend

        return Handler


def _stream(dialect: Dialect, body: dict[str, Any], model: FakeModel) -> bytes:
    results = dialect.results(body)
    # A request without tools is for a title or a summary, not the conversation.
    calls = model.answer(body, results) if body.get("tools") else []
    return dialect.stream([(next(model.numbers), call) for call in calls], body)
