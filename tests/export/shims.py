"""Shims that write events as real ones do: numbered and chained, without processes."""

import json

from subluminal.journal.chain import chained_form, link, seed

HASH = "ab" * 32


class Shim:
    """One writer of a run."""

    def __init__(self, shim_id, server="files", run_id="run-1"):
        self.shim_id = shim_id
        self.server = server
        self.run_id = run_id
        self.lines = []
        self._prev = seed(shim_id)

    def __call__(self):
        return iter(self.lines)

    def emit(self, kind, **fields):
        event = {
            "type": kind,
            "v": "0.1.0",
            "ts": f"2026-01-01T00:00:00.{len(self.lines):03}Z",
            "run_id": self.run_id,
            "agent_id": "fixer",
            "client": "headless",
            "env": "ci",
            "source": {
                "host_id": "h",
                "proc_id": "p",
                "shim_id": self.shim_id,
                "n": len(self.lines) + 1,
                "prev": self._prev.decode(),
            },
            **fields,
        }
        line = json.dumps(event, separators=(",", ":")).encode()
        self._prev = link(self._prev, chained_form(line))
        self.lines.append(line)

    def start_run(self, **meta):
        started = {
            "started_at": "2026-01-01T00:00:00.000Z",
            "mode": "guardrails",
            "policy": ref(),
            **({"meta": meta} if meta else {}),
        }
        self.emit("run_start", run=started)

    def end_run(self, status="SUCCEEDED", calls_total=0, ended_at="2026-01-01T00:00:09.000Z"):
        totals = dict.fromkeys(
            ("calls_total", "calls_allowed", "calls_blocked", "calls_throttled", "errors_total"), 0
        )
        ended = {
            "ended_at": ended_at,
            "status": status,
            "summary": {**totals, "calls_total": calls_total, "duration_ms": 9000},
        }
        self.emit("run_end", run=ended)

    def health(self, state, **fields):
        self.emit("shim_health", health={"state": state, "server_name": self.server}, **fields)

    def call(self, seq, tool="read", *, status="OK", latency_ms=1, error=None, **decision):
        call = self.begin(seq, tool, **decision)
        self.emit(
            "tool_call_end",
            call=call,
            status=status,
            latency_ms=latency_ms,
            bytes_out=1,
            **({"error": {"class": error, "message": "no"}} if error else {}),
            preview={"truncated": False},
        )

    def begin(self, seq, tool="read", **decision):
        call = {
            "call_id": f"{self.shim_id}.{seq}",
            "server_name": self.server,
            "tool_name": tool,
            "args_hash": HASH,
        }
        preview = {"truncated": False}
        self.emit(
            "tool_call_start",
            call={**call, "transport": "mcp_stdio", "bytes_in": 1, "seq": seq, "preview": preview},
        )
        self.emit("tool_call_decision", call=call, decision=decided(**decision))
        return call


def ref(policy_id="p", policy_hash=HASH):
    return {"policy_id": policy_id, "policy_version": "1", "policy_hash": policy_hash}


def decided(
    action="ALLOW",
    rule_id=None,
    severity="info",
    reason_code="DEFAULT_ALLOW",
    summary="why",
    would_be=None,
    policy=None,
):
    explain = {"summary": summary, "reason_code": reason_code}
    return {
        "action": action,
        "rule_id": rule_id,
        "severity": severity,
        "explain": explain,
        "policy": policy or ref(),
        **({"would_be": would_be} if would_be else {}),
    }


def would_be(action="BLOCK", rule_id="r", severity="critical", reason_code="NO"):
    return {
        "action": action,
        "rule_id": rule_id,
        "severity": severity,
        "reason_code": reason_code,
    }
