"""The CPU time of `sub scan` over eight clients with 50 servers, against `sub import --check`."""

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.ledger.events import START_MS
from tests.ledger.home import Home

from bench.harness import Result
from subluminal.contracts.events import ListedTool, ToolListing, ToolsListed

SUB = str(Path(sys.executable).with_name("sub"))
_ROUNDS = 9
_SERVERS = 50
_VERBS = ("read", "write", "list", "move", "copy", "find", "open", "close", "make", "show")
_TEXT = (
    "Read the complete contents of a file from the file system. Handles various text encodings and "
    "provides detailed error messages if the file cannot be read. Use this tool when you need to "
    "examine the contents of a single file. Only works within allowed directories. "
) * 2
_JSON_FILES = {
    "mcpServers": (
        *(".claude.json", ".gemini/settings.json", ".copilot/mcp-config.json"),
        *(".cursor/mcp.json", ".config/Claude/claude_desktop_config.json"),
    ),
    "servers": (".config/Code/User/mcp.json",),
}


def measure() -> Iterator[Result]:
    """Measures whole commands in turns, started as a shell starts them."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        _configure(home)
        yield _compared(home, "sub scan over sub import --check")
        _record(home)
        yield _compared(home, "the same, with 500 definitions on record")


def _compared(home: Path, name: str) -> Result:
    scan, check = [], []
    for _ in range(_ROUNDS):
        scan.append(_cpu_s(home, "scan", "--format", "json"))
        check.append(_cpu_s(home, "import", "--check", "--json"))
    ours, theirs = statistics.median(scan), statistics.median(check)
    detail = f"{ours * 1e3:.0f} ms against {theirs * 1e3:.0f} ms"
    return Result(name, ours / theirs, 3.0, False, detail)


def _cpu_s(home: Path, *words: str) -> float:
    """Returns the CPU time of a command in seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [SUB, *words],
        cwd=home,
        env={"HOME": str(home), "PATH": os.environ["PATH"], "SUB_HOME": str(home / "sub")},
        stdout=subprocess.DEVNULL,
        check=False,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _configure(home: Path) -> None:
    """Writes the files of eight clients, with 50 servers between them."""
    names = [f"server-{number}" for number in range(_SERVERS)]
    files = [(name, key) for key, paths in _JSON_FILES.items() for name in paths]
    shares = [names[at :: len(files) + 2] for at in range(len(files) + 2)]
    for (name, key), share in zip(files, shares, strict=False):
        _write(home / name, json.dumps({key: {each: _entry(each) for each in share}}, indent=2))
    local = {
        each: {"type": "local", "command": ["npx", "-y", f"@acme/{each}"]} for each in shares[-1]
    }
    _write(home / ".config/opencode/opencode.json", json.dumps({"mcp": local}, indent=2))
    tables = [
        f'[mcp_servers.{each}]\ncommand = "npx"\nargs = ["-y", "@acme/{each}"]\n\n'
        for each in shares[-2]
    ]
    _write(home / ".codex/config.toml", "".join(tables))


def _record(home: Path) -> None:
    """Puts ten definitions of each server into the ledger."""
    ledger = Home(str(home / "sub"))
    producer = ledger.producer()
    for number in range(_SERVERS):
        texts = [_definition(f"{verb}_thing_{number}") for verb in _VERBS]
        tools = [
            ListedTool(name=f"{verb}_thing_{number}", hash=f"{at:064x}", definition=text)
            for at, (verb, text) in enumerate(zip(_VERBS, texts, strict=True))
        ]
        listing = ToolListing(server_name=f"server-{number}", tools=tools, truncated=False)
        producer.write(ToolsListed, START_MS, listing=listing)
    ledger.ingest()
    ledger.close()


def _definition(name: str) -> str:
    parameters = {
        each: {"type": "string", "description": f"The {each} of the thing to work on."}
        for each in ("path", "limit", "encoding", "pattern")
    }
    schema = {"type": "object", "properties": parameters}
    return json.dumps({"name": name, "description": _TEXT, "inputSchema": schema})


def _entry(name: str) -> dict[str, object]:
    args = ["-y", f"@acme/{name}", "--root", f"/srv/{name}"]
    return {"command": "npx", "args": args, "env": {"API_KEY": "${API_KEY}", "LOG": "debug"}}


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
