"""An MCP server that does not stop: it ignores signals and the end of its input.

Its one tool, `env`, returns a variable of its environment.
"""

import json
import os
import signal
import sys

for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)

TOOL = {
    "name": "env",
    "description": "reads a variable",
    "inputSchema": {"type": "object", "properties": {"name": {"type": "string"}}},
    "annotations": {"readOnlyHint": True},
}


def answer(method: str, params: dict) -> dict | None:
    if method == "initialize":
        version = params["protocolVersion"]
        info = {"name": "stubborn", "version": "1"}
        return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
    if method == "tools/list":
        return {"tools": [TOOL]}
    if method == "tools/call":
        value = os.environ.get(params["arguments"]["name"], "(not set)")
        return {"content": [{"type": "text", "text": f"it is {value}"}]}
    return None


for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message or "method" not in message:
        continue
    result = answer(message["method"], message.get("params") or {})
    reply = {"jsonrpc": "2.0", "id": message["id"]}
    reply |= {"result": result} if result else {"error": {"code": -32601, "message": "no"}}
    print(json.dumps(reply), flush=True)
while True:
    signal.pause()
