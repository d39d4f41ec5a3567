"""One valid event of every type, one bundle with every rule kind. As JSON: what a peer would send."""

from typing import Any

HASH = "ab" * 32
POLICY = {"policy_id": "p", "policy_version": "1.0.0", "policy_hash": HASH}
ENVELOPE = {
    "v": "0.1.0",
    "ts": "2025-12-15T12:34:56.789Z",
    "run_id": "r-1",
    "agent_id": "fixer",
    "client": "claude",
    "env": "dev",
    "source": {"host_id": "h", "proc_id": "p", "shim_id": "s"},
}
CALL = {"call_id": "c-1", "server_name": "git", "tool_name": "push", "args_hash": HASH}
HINT = {
    "hint_text": "push to a branch",
    "suggested_args": {"branch": "fix"},
    "retry_advice": None,
    "hint_kind": "ARG_FIX",
}
TERMINATE = {"terminate_code": "LOOP", "terminate_message": "the same call, again and again"}
DECISION = {
    "action": "BLOCK",
    "rule_id": "no-push",
    "severity": "warn",
    "explain": {"summary": "not on main", "reason_code": "DENYLIST_MATCH"},
    "policy": POLICY,
}
RUN_START = {"started_at": "2025-12-15T12:34:56.789Z", "mode": "guardrails", "policy": POLICY}
RUN_END = {
    "ended_at": "2025-12-15T12:35:56.789Z",
    "status": "SUCCEEDED",
    "summary": {
        "calls_total": 3,
        "calls_allowed": 1,
        "calls_blocked": 1,
        "calls_throttled": 1,
        "errors_total": 0,
        "duration_ms": 60_000,
    },
}
START = {"transport": "mcp_stdio", "bytes_in": 120, "seq": 1}

BODIES: dict[str, dict[str, Any]] = {
    "run_start": {"run": RUN_START},
    "tool_call_start": {"call": {**CALL, **START, "preview": {"truncated": False}}},
    "tool_call_decision": {"call": CALL, "decision": DECISION},
    "tool_call_end": {
        "call": CALL,
        "status": "OK",
        "latency_ms": 12,
        "bytes_out": 34,
        "preview": {"truncated": False, "result_preview": "done"},
    },
    "run_end": {"run": RUN_END},
    "hint_issued": {"call": {"call_id": "c-1"}, "hint": HINT},
    "policy_loaded": {"policy": POLICY, "load": {"layer": "user", "ok": True}},
    "secret_injection": {
        "injection": {
            "inject_as": "GITHUB_TOKEN",
            "secret_ref": "github_token",
            "source": "env",
            "success": True,
        }
    },
    "shim_health": {"health": {"state": "alive"}},
    "breaker_trip": {
        "call": CALL,
        "breaker": {
            "rule_id": "loop",
            "scope": "run",
            "action": "TERMINATE_RUN",
            "cause": "repeats",
            "count": 5,
        },
    },
    "tools_listed": {
        "listing": {
            "server_name": "git",
            "tools": [{"name": "push", "hash": HASH, "definition": '{"name":"push"}'}],
            "truncated": False,
        }
    },
    "approval_requested": {
        "call": CALL,
        "approval": {
            "approval_id": "a-1",
            "layer": "user",
            "rule_id": "ask",
            "requirement": "approval",
            "reason_code": "APPROVAL_REQUIRED",
            "severity": "warn",
            "message": "a person must approve this call",
            "requested_at": "2025-12-15T12:34:56.789Z",
            "expires_at": "2025-12-15T13:34:56.789Z",
        },
    },
    "approval_decided": {
        "approval": {
            "answer": "approved",
            "by": "kim",
            "layer": "user",
            "rule_id": "ask",
            "server_name": "git",
            "tool_name": "push",
            "args_hash": HASH,
            "approval_id": "a-1",
            "grant_id": "g-1",
            "uses": 1,
            "expires_at": "2025-12-15T13:34:56.789Z",
        }
    },
    "grant_refused": {
        "call": CALL,
        "grant": {"problem": "expired", "detail": "it held until noon", "grant_id": "g-1"},
    },
    "kill_switch": {
        "switch": {
            "switch_id": "s-1",
            "state": "killed",
            "scope": "tool",
            "target": "git/push",
            "by": "kim",
            "hard": False,
            "reason": "it pushes to main",
        }
    },
    "call_round": {"call": {**CALL, "round": 2, "bytes_in": 120}, "decision": DECISION},
    "prompt_submitted": {"prompt": {"bytes": 120, "hash": "0" * 64}},
    "audit_record": {"call": CALL, "audit": {"version": 5}},
    "taint_changed": {"taint": {"from": "SYSTEM", "to": "UNTRUSTED", "seq": 4, "by": "rule"}},
    "intent_released": {
        "intent": {
            "intent_hash": "0" * 64,
            "intent_kind": "pix.charge.refund",
            "session_id": "run-1",
            "claimed_at": "2026-01-19T02:10:12.000Z",
            "by": "ada",
            "reason": "the bank has no such refund",
        }
    },
    "agent_changed": {
        "agent": {
            "agent_id": "fixer",
            "state": "active",
            "by": "kim",
            "trust_level": "verified",
            "unattested": "basic",
            "agent_type": "pr_agent",
            "roles": ["deployer"],
            "issuers": ["https://token.actions.githubusercontent.com"],
            "reason": "it fixes the build",
        }
    },
    "agent_resolved": {
        "agent": {
            "agent_id": "fixer",
            "environment": "ci",
            "registered": True,
            "agent_type": "pr_agent",
            "trust_level": "verified",
            "trust_after_denials": "basic",
            "roles": ["deployer"],
            "delegation_depth": 0,
            "proof": {
                "kind": "attested",
                "issuer": "https://token.actions.githubusercontent.com",
                "subject": "repo:acme/shop:ref:refs/heads/main",
                "expires_at": "2025-12-15T13:34:56.789Z",
            },
        },
        "seq": 4,
    },
}
EVENTS = {kind: {"type": kind, **ENVELOPE, **body} for kind, body in BODIES.items()}

EFFECTS: dict[str, dict[str, Any]] = {
    "allow": {"action": "ALLOW", "reason_code": "OK", "message": "fine"},
    "deny": {"action": "BLOCK", "reason_code": "DENYLIST_MATCH", "message": "no"},
    "budget": {"budget": {"scope": "run", "limit_calls": 10, "on_exceed": "BLOCK"}},
    "rate_limit": {
        "rate_limit": {
            "scope": "tool",
            "capacity": 5,
            "refill_tokens": 1,
            "refill_period_ms": 1000,
            "on_limit": "THROTTLE",
            "backoff_ms": 500,
        }
    },
    "breaker": {
        "breaker": {
            "scope": "server_tool",
            "error_threshold": 3,
            "window_ms": 60_000,
            "repeat_threshold": 5,
            "repeat_window_ms": 60_000,
            "on_trip": "TERMINATE_RUN",
            "terminate_code": "LOOP",
        }
    },
    "dedupe": {
        "dedupe": {
            "scope": "run",
            "window_ms": 60_000,
            "key": "args_hash",
            "on_duplicate": "REJECT_WITH_HINT",
            "hint_text": "already done",
        }
    },
    "tag": {"tag": {"add_risk_class": ["write_like"]}},
    "taint": {"taint": {"lower_to": "UNTRUSTED"}},
    "kernel": {
        "kernel": {
            "pack": "desk",
            "intent": "desk.pay",
            "payload": {"amount": "amount_brl"},
            "state": {"limit": 100},
        }
    },
    "sequence": {
        "sequence": {
            "pattern": ["read_*", "*", "http_post"],
            "within_ms": 60_000,
            "on_match": "BLOCK",
            "hint_text": "do not send away what you have read",
        }
    },
}


def rule(kind: str, /, **changes: Any) -> dict[str, Any]:
    """A valid rule of a kind, with some fields changed."""
    return {
        "rule_id": f"the-{kind}",
        "kind": kind,
        "enabled": True,
        "match": {"server_name": {"glob": ["git*"]}},
        "effect": EFFECTS[kind],
        "severity": "warn",
        **changes,
    }


BUNDLE: dict[str, Any] = {
    "policy_id": "p",
    "version": "1.0.0",
    "mode": "guardrails",
    "defaults": {"decision_on_error": "BLOCK"},
    "selectors": {"env": ["dev", "ci"], "workload": {"labels": {"team": "a"}}},
    "rules": [rule(kind) for kind in EFFECTS],
}
