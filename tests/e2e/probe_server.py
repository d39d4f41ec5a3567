"""An MCP server for the tests of clients: `probe_server.py`, or `probe_server.py http PORT_FILE`.

Its tools: `echo` returns its text, `fail` answers with an error result, `break` with a JSON-RPC
error. Over HTTP it listens on a port of loopback and writes the number into the file.
"""

import json
import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TEXT = {"type": "object", "properties": {"text": {"type": "string"}}}
TOOLS = [
    {
        "name": name,
        "description": name,
        "inputSchema": TEXT,
        "annotations": {"readOnlyHint": True},
    }
    for name in ("echo", "fail", "break")
]


def called(params: dict) -> dict | None:
    text = params.get("arguments", {}).get("text", "")
    if params["name"] == "echo":
        return {"content": [{"type": "text", "text": f"echo: {text}"}]}
    if params["name"] == "fail":
        return {"content": [{"type": "text", "text": f"failed: {text}"}], "isError": True}
    return None


def result_of(method: str, params: dict) -> dict | None:
    if method == "initialize":
        info = {"name": "probe", "version": "1"}
        told = {"capabilities": {"tools": {}}, "serverInfo": info}
        return {"protocolVersion": params["protocolVersion"], **told}
    if method == "tools/list":
        return {"tools": TOOLS}
    return called(params) if method == "tools/call" else None


def answer(message: dict) -> bytes:
    """Returns the answer to a message; empty for what needs none."""
    if "id" not in message or "method" not in message:
        return b""
    result = result_of(message["method"], message.get("params") or {})
    reply = {"jsonrpc": "2.0", "id": message["id"]}
    reply |= {"result": result} if result else {"error": {"code": -32601, "message": "broken"}}
    return json.dumps(reply).encode()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        return

    def do_POST(self) -> None:
        reply = answer(json.loads(self.rfile.read(int(self.headers["content-length"]))))
        self._send(200 if reply else 202, reply)

    def do_GET(self) -> None:
        self._send(405, b"")

    do_DELETE = do_GET  # noqa: N815 - the name that the base class looks for

    def _send(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def serve_http(port_file: str) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    with open(f"{port_file}.new", "w") as file:
        file.write(str(server.server_address[1]))
    os.rename(f"{port_file}.new", port_file)
    server.serve_forever()


if sys.argv[1:2] == ["http"]:
    serve_http(sys.argv[2])
for line in sys.stdin:
    reply = answer(json.loads(line))
    if reply:
        sys.stdout.buffer.write(reply + b"\n")
        sys.stdout.buffer.flush()
