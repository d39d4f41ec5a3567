"""The demo's agent: scripted, but it reads answers and follows hints as a model would.

`sub run` starts it as `python -m subluminal.cli.demo.agent`. Its server is behind a shim, as
`sub import` would write it into a client's configuration.
"""

import json
import subprocess
import sys
import time
from typing import Any

SHIM = [sys.executable, "-P", "-m", "subluminal", "shim", "stdio", "--server", "files", "--"]
SERVER = [sys.executable, "-P", "-m", "subluminal.cli.demo.server"]
PAUSE_S = 0.35
"""Pause between calls, so that a person can follow."""


class Refused(Exception):
    """The answer was an error; `data` is its `subluminal` part."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(error["message"])
        self.data: dict[str, Any] = error.get("data", {}).get("subluminal", {})


class Agent:
    """Talks MCP to one server."""

    def __init__(self) -> None:
        self._server = subprocess.Popen(
            [*SHIM, *SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self._id = 0
        client = {"name": "demo-agent", "version": "1"}
        self._ask("initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo=client)

    def call(self, tool: str, **arguments: Any) -> str:
        """Calls a tool and returns its text. Raises Refused."""
        time.sleep(PAUSE_S)
        said = ", ".join(f"{name}={value!r}" for name, value in arguments.items())
        say(f"{tool}({said})")
        result = self._ask("tools/call", name=tool, arguments=arguments)
        return str(result["content"][0]["text"])

    def close(self) -> None:
        assert self._server.stdin is not None
        self._server.stdin.close()
        self._server.wait()

    def _ask(self, method: str, **params: Any) -> dict[str, Any]:
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._id += 1
        message = {"jsonrpc": "2.0", "id": self._id, "method": method, "params": params}
        self._server.stdin.write(json.dumps(message).encode() + b"\n")
        self._server.stdin.flush()
        reply = json.loads(self._server.stdout.readline())
        if "error" in reply:
            raise Refused(reply["error"])
        result: dict[str, Any] = reply["result"]
        return result


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main() -> int:
    agent = Agent()
    try:
        _look_around(agent)
        _search(agent)
        _tidy_up(agent)
        _go_round_in_circles(agent)
    finally:
        agent.close()
    return 0


def _look_around(agent: Agent) -> None:
    """Allowed twice, then throttled. Waits as long as it was told, and goes on."""
    say("# list the files (allowed, until the calls come too fast)")
    for _ in range(3):
        while True:
            try:
                agent.call("list_files")
                break
            except Refused as refusal:
                wait_ms = refusal.data["backoff_ms"]
                say(f"  too fast: waiting {wait_ms} ms as told")
                time.sleep(wait_ms / 1000)


def _search(agent: Agent) -> None:
    """Refused with a hint, which the agent follows."""
    say("# find every TODO (asks for too many lines; a hint says what to change)")
    try:
        agent.call("search", query="TODO", limit=100_000)
    except Refused as refusal:
        suggested = refusal.data["hint"]["suggested_args"]
        say(f"  hint: {refusal.data['hint']['hint_text']}. Following the hint")
        found = agent.call("search", **suggested)
        say(f"  found {len(found.splitlines())} lines")


def _tidy_up(agent: Agent) -> None:
    """Blocked: the call never reaches the server."""
    say("# tidy up (the policy forbids it)")
    try:
        agent.call("delete_file", path="notes.txt")
    except Refused as refusal:
        say(f"  blocked by `{refusal.data['rule_id']}`: {refusal.data['summary']}")


def _go_round_in_circles(agent: Agent) -> None:
    """A loop: the fifth identical call ends the run, and every later call is refused."""
    say("# read the same file again and again (a loop, as agents do)")
    for _ in range(6):
        try:
            agent.call("read_file", path="launch.py")
        except Refused as refusal:
            say(f"  stopped: {refusal.data['reason_code']}. This run has ended")
            return


if __name__ == "__main__":
    sys.exit(main())
