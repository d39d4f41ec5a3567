"""An upstream server that leaks: whatever it has, it echoes, in every way it can think of.

Started by tests/secrets/test_canary_e2e.py behind a shim. `tools/call` names the way; the value is
taken from this process' own environment, so the client never sends it.
"""

import base64
import json
import os
import sys
from typing import Any
from urllib.parse import quote

SECRETS = {k: v for k, v in os.environ.items() if k.startswith("CANARY_")}


def answer(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Builds the leaky result of one tool."""
    value = SECRETS.get(arguments.get("variable", ""), "")
    texts = {
        "raw": value,
        "json": json.dumps({"token": value}),
        "nested": json.dumps(json.dumps([{"deep": {"token": value}}])),
        "base64": base64.b64encode(f"user:{value}".encode()).decode(),
        "base64_wrapped": base64.encodebytes(f"some text before {value}".encode() * 3).decode(),
        "url": f"https://api.example/?key={quote(value, safe='')}&x=1",
        "hex": value.encode().hex().upper(),
        "environment": "\n".join(f"{k}={v}" for k, v in os.environ.items()),
        "huge": "x" * 300_000 + value + "y" * 300_000,
        "far": "x" * 16_300 + value,
        "echo": json.dumps(arguments),
    }
    if name == "structured":
        return {"content": [], "structuredContent": {"rows": [{value: [value, {"v": value}]}]}}
    if name == "failing":
        return {"content": [{"type": "text", "text": f"denied for {value}"}], "isError": True}
    if name not in texts:
        return {"content": [{"type": "text", "text": f"no tool {name}"}], "isError": True}
    return {"content": [{"type": "text", "text": texts[name]}]}


def listing() -> dict[str, Any]:
    """Tools that are named after what must not be told."""
    schema = {"type": "object"}
    return {
        "tools": [{"name": f"get {value}", "inputSchema": schema} for value in SECRETS.values()]
    }


def main() -> None:
    """Answers until stdin ends. stderr leaks too, split across writes."""
    out = sys.stdout.buffer
    for line in sys.stdin.buffer:
        message = json.loads(line)
        if "id" not in message:
            continue
        reply: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
        if message["method"] == "initialize":
            version = message["params"]["protocolVersion"]
            info = {"name": "leaky", "version": "1"}
            reply["result"] = {"protocolVersion": version, "capabilities": {}, "serverInfo": info}
        elif message["method"] == "tools/list":
            reply["result"] = listing()
        else:
            params = message["params"]
            arguments = params.get("arguments", {})
            value = SECRETS.get(arguments.get("variable", ""), "")
            for part in ("stderr says ", value[:5], value[5:], "\n"):
                os.write(2, part.encode())
            if params["name"] == "error":
                reply["error"] = {"code": -32000, "message": f"no: {value}", "data": {"k": value}}
            else:
                reply["result"] = answer(params["name"], arguments)
        data = json.dumps(reply).encode() + b"\n"
        half = len(data) // 2
        # In two writes: frames are split wherever a pipe likes.
        out.write(data[:half])
        out.flush()
        out.write(data[half:])
        out.flush()


if __name__ == "__main__":
    main()
