"""One run through a real shim that meets every part of the Interface Pack, told once.

The tests here read what the program emitted: the journal's lines, the client's answers, the bytes
that the server got. They use the Pack's own words as literals and none of our contract classes, so
a wrong word in the product is a failed test.
"""

import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

from tests.adapters.policies import bundle, rule
from tests.adapters.records import lines_of
from tests.adapters.wire import Wire

SERVER = Path(__file__).parent / "server.py"
RUN = "01-the-run"
SECRET = "s3cr3t-of-the-probe-0123456789"
IDENTITY = {
    "SUB_RUN_ID": RUN,
    "SUB_AGENT_ID": "pack-agent",
    "SUB_ENV": "ci",
    "SUB_CLIENT": "headless",
    "SUB_PRINCIPAL": "alice",
    "REAL_TOKEN": SECRET,
    "GITHUB_ACTIONS": "true",
    "GITHUB_REPOSITORY": "acme/shop",
    "GITHUB_REF": "refs/heads/main",
    "GITHUB_RUN_ID": "42",
    "GITHUB_JOB": "fix",
}
CONFIG = """\
[[servers.probe.secret_bindings]]
inject_as = "PROBE_TOKEN"
secret_ref = "REAL_TOKEN"
source = "env"
"""
FINE: dict[str, Any] = {"result": {"content": [{"type": "text", "text": "done"}]}}
_SUGGEST = {"limit": {"clamp_max": 10}}
_ONE_AN_HOUR = {"capacity": 1, "refill_tokens": 1, "refill_period_ms": 3_600_000}
POLICY = bundle(
    rule(
        "writes", "tag", {"tag": {"add_risk_class": ["write_like"]}}, tool_name={"glob": ["put*"]}
    ),
    rule(
        "no-rm",
        "deny",
        {"action": "BLOCK", "reason_code": "DENYLIST_MATCH", "message": "do not remove"},
        tool_name={"glob": ["rm"]},
    ),
    rule(
        "few-rows",
        "deny",
        {
            "action": "REJECT_WITH_HINT",
            "reason_code": "TOO_MUCH",
            "message": "too many rows",
            "hint_text": "ask for ten rows",
            "suggest": _SUGGEST,
        },
        tool_name={"glob": ["listRows"]},
        args={"numeric_range": {"limit": {"min": 11}}},
    ),
    rule(
        "seldom",
        "rate_limit",
        {
            "rate_limit": {
                "scope": "tool",
                **_ONE_AN_HOUR,
                "on_limit": "THROTTLE",
                "backoff_ms": 1234,
            }
        },
        tool_name={"glob": ["often"]},
    ),
    rule(
        "no-loops",
        "breaker",
        {
            "breaker": {
                "scope": "tool",
                "repeat_threshold": 2,
                "repeat_window_ms": 3_600_000,
                "on_trip": "REJECT_WITH_HINT",
                "hint_text": "do something else",
            }
        },
        tool_name={"glob": ["loop"]},
    ),
    rule(
        "the-end",
        "budget",
        {"budget": {"scope": "tool", "limit_calls": 0, "on_exceed": "TERMINATE_RUN"}},
        tool_name={"glob": ["final"]},
    ),
)
MIB = 1_048_576


class Step(NamedTuple):
    """One call of the run, and how the server is told to answer it."""

    tool: str
    arguments: dict[str, Any]
    meta: dict[str, Any]
    is_cancelled: bool = False


STEPS = {
    "read": Step("read", {"b": 1, "a": "é"}, {"answer": FINE}),
    "read-again": Step("read", {"a": "é", "b": 1.0}, {"answer": FINE}),
    "write": Step("put_file", {"token": SECRET}, {"leak": "PROBE_TOKEN"}),
    "blocked": Step("rm", {"path": "/"}, {"answer": FINE}),
    "hinted": Step("listRows", {"limit": 99, "of": "t"}, {"answer": FINE}),
    "failed": Step("read", {"n": 1}, {"answer": {"error": {"code": -32000, "message": "no such"}}}),
    "cancelled": Step("read", {"slow": True}, {}, is_cancelled=True),
    "often": Step("often", {"n": 1}, {"answer": FINE}),
    "throttled": Step("often", {"n": 2}, {"answer": FINE}),
    "loop": Step("loop", {}, {"answer": FINE}),
    "tripped": Step("loop", {}, {"answer": FINE}),
    "preview": Step("read", {"text": "y" * 40_000}, {"letters": 40_000}),
    "large": Step("read", {"text": "z" * (MIB + 1)}, {"letters": MIB + 1}),
    "ended": Step("final", {"n": 1}, {"answer": FINE}),
    "after": Step("read", {"n": 2}, {"answer": FINE}),
}


class Story(NamedTuple):
    """What the program emitted, to whom."""

    lines: list[bytes]
    """every line of the journals"""
    answers: dict[str, dict[str, Any]]
    """what the client was answered, by step"""
    sent: dict[str, bytes]
    """what the client sent, by step, without the newline"""
    heard: list[bytes]
    """what the server read, by line, without the newline"""
    received: bytes
    """everything that the client read"""
    stderr: bytes

    def events(self, kind: str) -> list[dict[str, Any]]:
        """Returns the events of a type, or of all types that begin so."""
        return [event for event in map(json.loads, self.lines) if event["type"].startswith(kind)]

    def call(self, step: str, kind: str) -> dict[str, Any]:
        """Returns the only event of one kind about a step's call."""
        ((_, event),) = [
            (name, event)
            for name, event in zip(STEPS, self._calls(kind), strict=True)
            if name == step
        ]
        return event

    def _calls(self, kind: str) -> list[dict[str, Any]]:
        """The events of one kind in the order in which their calls were made."""
        starts = self.events("tool_call_start")
        order = {event["call"]["call_id"]: event["call"]["seq"] for event in starts}
        return sorted(self.events(kind), key=lambda event: order[event["call"]["call_id"]])


def tell(place: Path) -> Story:
    """Runs the whole story in a fresh home. Returns what was emitted."""
    log = place / "heard"
    wire = Wire(
        [sys.executable, "-I", "-S", str(SERVER), str(log)],
        home=place / "home",
        place=place,
        policy=POLICY,
        config=CONFIG,
        env={**IDENTITY, "SUB_HOME": str(place / "home")},
    )
    try:
        answers, sent = _drive(wire)
        wire.finish()
    finally:
        wire.abandon()
    return Story(
        lines=[line for _, line in lines_of(place / "home")],
        answers=answers,
        sent=sent,
        heard=log.read_bytes().splitlines(),
        received=wire.received,
        stderr=wire.stderr,
    )


def _drive(wire: Wire) -> tuple[dict[str, dict[str, Any]], dict[str, bytes]]:
    answers, sent = {}, {}
    for number, (name, step) in enumerate(STEPS.items(), start=1):
        params = {"name": step.tool, "arguments": step.arguments, "_meta": step.meta}
        line = json.dumps(
            {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
        ).encode()
        sent[name] = line
        wire.send(line + b"\n")
        if step.is_cancelled:
            note = {"requestId": number, "reason": "the user gave up"}
            gone = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": note}
            wire.send(json.dumps(gone).encode() + b"\n")
        else:
            answers[name] = wire.line()
    return answers, sent
