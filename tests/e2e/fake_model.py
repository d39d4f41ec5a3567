"""A fake model API on loopback, with Anthropic's Messages and OpenAI's Responses, on a script.

It keeps no session: the number of tool results in a request tells how far its conversation is. So
any number of agents can use one fake model at once. It keeps the tool results of all requests.
"""

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

MAX_HOLD_S = 60


class ToolCall(NamedTuple):
    """A tool call that the model makes."""

    server: str
    tool: str
    args: dict[str, Any]


class Thought(NamedTuple):
    """A tool call that depends on the tool results so far.

    `think` gets the results in order, and returns None to end the conversation.
    """

    server: str
    think: Callable[[list[str]], ToolCall | None]


class FakeModel:
    """Answers with the script's calls, one after another, then with a text."""

    def __init__(self, script: list[ToolCall | Thought], *, hold_at: int | None = None) -> None:
        self.script = script
        self.results: list[list[str]] = []
        """the tool results of each request, as the model reads them"""
        self.held = threading.Event()
        """set while the request with `hold_at` results is kept waiting"""
        self._hold_at = hold_at
        self._release = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

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

    def answer(self, results: list[str]) -> ToolCall | None:
        """Returns the next call of the script; None at its end."""
        self.results.append(results)
        if len(results) == self._hold_at:
            self.held.set()
            self._release.wait(MAX_HOLD_S)
        if len(results) >= len(self.script):
            return None
        step = self.script[len(results)]
        return step if isinstance(step, ToolCall) else step.think(results)

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
                stream = _stream_for(self.path, body, model)
                if stream is None:
                    self._reply(b'{"input_tokens":1}', "application/json")
                else:
                    self._reply(stream, "text/event-stream")

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


def _stream_for(path: str, body: dict[str, Any], model: FakeModel) -> bytes | None:
    route = path.partition("?")[0]
    if route.endswith("/responses"):
        return _events(_responses(model.answer(_responses_results(body)), len(model.results)))
    if route.endswith("/messages"):
        if not body.get("tools"):
            return _events(
                _messages(None, 0)
            )  # a request for a title or a summary, not the conversation
        results = _messages_results(body)
        return _events(_messages(model.answer(results), len(results)))
    return None


def _events(events: list[dict[str, Any]]) -> bytes:
    return b"".join(
        f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events
    )


def _messages_results(body: dict[str, Any]) -> list[str]:
    blocks = [
        block
        for message in body["messages"]
        if isinstance(message["content"], list)
        for block in message["content"]
    ]
    return [_text_of(b.get("content")) for b in blocks if b.get("type") == "tool_result"]


def _responses_results(body: dict[str, Any]) -> list[str]:
    items = [i for i in body["input"] if i.get("type") == "function_call_output"]
    return [_text_of(item["output"]) for item in items]


def _text_of(content: Any) -> str:
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content)
    return str(content)


def _messages(call: ToolCall | None, number: int) -> list[dict[str, Any]]:
    if call is None:
        block: dict[str, Any] = {"type": "text", "text": ""}
        delta = {"type": "text_delta", "text": "done"}
    else:
        name = f"mcp__{call.server}__{call.tool}"
        block = {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(call.args)}
    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "fake"}
    message |= {"content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}
    stop = {"stop_reason": "tool_use" if call else "end_turn", "stop_sequence": None}
    return [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": stop, "usage": usage},
        {"type": "message_stop"},
    ]


def _responses(call: ToolCall | None, number: int) -> list[dict[str, Any]]:
    if call is None:
        content = [{"type": "output_text", "text": "done"}]
        item = {"type": "message", "role": "assistant", "id": "m1", "content": content}
    else:
        item = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}"}
        item |= {"namespace": f"mcp__{call.server}", "name": call.tool}
        item |= {"arguments": json.dumps(call.args)}
    usage = {"input_tokens": 1, "input_tokens_details": None, "output_tokens": 1}
    usage |= {"output_tokens_details": None, "total_tokens": 2}
    return [
        {"type": "response.created", "response": {"id": "r1"}},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": {"id": "r1", "usage": usage}},
    ]
