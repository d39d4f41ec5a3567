"""The peers of the shim's benchmarks: MCP servers, and proxies in front of them.

Every peer is a process with pipes. All peers run at once, so that a disturbance of the machine hits
all of them. `policy_of_fifty` is the shim's policy.
"""

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from bench.bundles import bundle_of

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / ".work" / "bench"

_INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "bench", "version": "1"},
    },
}
_ARGS: dict[str, Any] = {
    "path": "/srv/data/reports/2026/summary.md",
    "branch": "feature/rate-limits",
    "limit": 25,
    "recursive": True,
    "filters": ["open", "mine"],
    "reason": "find what is still open before the release of the next version",
}


def build(name: str) -> str:
    """Compiles one of the C programs. Returns its path."""
    WORK.mkdir(parents=True, exist_ok=True)
    target = WORK / name
    subprocess.run(["cc", "-O2", "-o", target, ROOT / "bench" / "c" / f"{name}.c"], check=True)
    return str(target)


class Peer:
    """A running server or proxy."""

    def __init__(self, name: str, argv: list[str], env: dict[str, str] | None = None) -> None:
        self.name = name
        begun = time.perf_counter()
        self._process = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **(env or {})},
            bufsize=0,
            cwd=WORK,
        )
        assert self._process.stdin
        assert self._process.stdout
        self._in = self._process.stdin.fileno()
        self._out = self._process.stdout.fileno()
        self._next = 1000
        self._buffers = [bytearray(65_536)]
        self.pid = self._process.pid
        self._ask(msgspec.json.encode(_INITIALIZE) + b"\n", 1)
        self.first_reply_s = time.perf_counter() - begun
        os.write(self._in, b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
        self._ask(b'{"jsonrpc":"2.0","id":"list","method":"tools/list"}\n', 1)

    def lines(self, number: int) -> list[bytes]:
        """Returns `number` tools/call requests of 300 bytes, all with different arguments."""
        return [self._line() for _ in range(number)]

    def call(self, line: bytes) -> None:
        """Sends one request and waits for its answer."""
        self._ask(line, 1)

    def calls(self, lines: list[bytes], window: int) -> None:
        """Sends many requests, `window` of them at a time."""
        for start in range(0, len(lines), window):
            batch = lines[start : start + window]
            self._ask(b"".join(batch), len(batch))

    def _line(self) -> bytes:
        self._next += 1
        message = {
            "jsonrpc": "2.0",
            "id": self._next,
            "method": "tools/call",
            "params": {"name": "echo", "arguments": {**_ARGS, "n": self._next}},
        }
        return msgspec.json.encode(message) + b"\n"

    def _ask(self, lines: bytes, replies: int) -> None:
        # Reads into one buffer: allocating 256 KiB for every read would cost more than a
        # pass-through adds.
        os.write(self._in, lines)
        while replies > 0:
            size = os.readv(self._out, self._buffers)
            if not size:
                raise RuntimeError(f"{self.name} closed its output")
            replies -= self._buffers[0].count(b"\n", 0, size)

    def close(self) -> None:
        """Ends the process."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()


def shim(
    home: Path, server: list[str], more: Sequence[dict[str, Any]] = (), name: str = "sub shim"
) -> Peer:
    """Starts the real `sub shim stdio`, with fifty rules, shared counters and its journal.

    `more` are rules besides those.
    """
    home.mkdir(parents=True, exist_ok=True)
    policy = policy_of_fifty()
    policy["rules"] += more
    (home / "policy.yaml").write_bytes(msgspec.json.encode(policy))
    sub = str(Path(sys.executable).parent / "sub")
    return Peer(
        name,
        [sub, "shim", "stdio", "--server", "echo", "--", *server],
        {"SUB_HOME": str(home), "SUB_RUN_ID": f"bench-{home.name}"},
    )


def policy_of_fifty() -> dict[str, Any]:
    """Returns fifty mixed rules: globs, regexes, arguments, and one accumulator of each kind."""
    rules = [_deny(number) for number in range(45)]
    rules += [
        _rule("tag", "tag", {"tag": {"add_risk_class": ["write_like"]}}),
        _rule(
            "budget",
            "budget",
            {"budget": {"scope": "run", "limit_calls": 10**9, "on_exceed": "BLOCK"}},
        ),
        _rule(
            "rate",
            "rate_limit",
            {
                "rate_limit": {
                    "scope": "run",
                    "capacity": 10**6,
                    "refill_tokens": 10**6,
                    "refill_period_ms": 1000,
                    "on_limit": "THROTTLE",
                    "backoff_ms": 100,
                }
            },
        ),
        _rule(
            "breaker",
            "breaker",
            {
                "breaker": {
                    "scope": "server_tool",
                    "error_threshold": 5,
                    "window_ms": 10_000,
                    "repeat_threshold": 10,
                    "repeat_window_ms": 10_000,
                    "on_trip": "BLOCK",
                }
            },
        ),
        _rule(
            "dedupe",
            "dedupe",
            {"dedupe": {"scope": "tool", "window_ms": 1000, "on_duplicate": "BLOCK"}},
        ),
    ]
    return bundle_of(rules)


def _deny(number: int) -> dict[str, Any]:
    match: dict[str, Any] = [
        {"server_name": {"glob": [f"git{number}*"]}, "tool_name": {"glob": ["push", "force_*"]}},
        {"tool_name": {"regex": [f"^drop_{number}_[a-z]+$"]}},
        {"tool_name": {"glob": ["ec*"]}, "args": {"key_equals": {"branch": f"release-{number}"}}},
    ][number % 3]
    if number % 3 == 2 and number > 8:
        match = {"tool_name": {"glob": [f"write_{number}*"]}, "args": {"has_keys": ["path"]}}
    effect = {"action": "BLOCK", "reason_code": "DENYLIST_MATCH", "message": "not here"}
    return _rule(f"deny-{number}", "deny", effect, match)


def _rule(
    rule_id: str, kind: str, effect: dict[str, Any], match: dict[str, Any] | None = None
) -> dict[str, Any]:
    return {
        "rule_id": rule_id,
        "kind": kind,
        "enabled": True,
        "severity": "warn",
        "match": match or {},
        "effect": effect,
    }
