"""The demo's MCP server: a few files in memory, served as JSON lines over stdio.

Started as `python -m subluminal.cli.demo.server`. Like any server, it knows nothing of Subluminal.
"""

import json
import sys
from typing import Any

FILES = {
    "README.md": "# Spaceport\n\nTODO: say where it is.\n",
    "launch.py": "def launch():\n    raise NotImplementedError  # TODO\n",
    "notes.txt": "Bring towels.\n",
}


def list_files(_args: dict[str, Any]) -> str:
    return "\n".join(sorted(FILES))


def read_file(args: dict[str, Any]) -> str:
    return FILES[args["path"]]


def search(args: dict[str, Any]) -> str:
    found = [
        f"{name}:{number}: {line}"
        for name, text in sorted(FILES.items())
        for number, line in enumerate(text.splitlines(), start=1)
        if args["query"] in line
    ]
    return "\n".join(found[: args["limit"]])


def delete_file(args: dict[str, Any]) -> str:
    del FILES[args["path"]]
    return "deleted"


TOOLS = {tool.__name__: tool for tool in (list_files, read_file, search, delete_file)}


def answer(message: dict[str, Any]) -> dict[str, Any]:
    """Returns the result of one request."""
    match message["method"]:
        case "initialize":
            return {
                "protocolVersion": message["params"]["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "demo-files", "version": "1"},
            }
        case "tools/list":
            schema = {"type": "object"}
            return {"tools": [{"name": name, "inputSchema": schema} for name in TOOLS]}
        case _:
            params = message["params"]
            try:
                text = TOOLS[params["name"]](params.get("arguments", {}))
            except KeyError as missing:
                text = f"there is no {missing}"
                return {"content": [{"type": "text", "text": text}], "isError": True}
            return {"content": [{"type": "text", "text": text}]}


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message:
            reply = {"jsonrpc": "2.0", "id": message["id"], "result": answer(message)}
            sys.stdout.write(json.dumps(reply) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
