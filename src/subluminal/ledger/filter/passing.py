"""Which live events a filter lets through. A filter is about calls; an event is part of one.

Shared by `sub tail` and the API's stream. What earlier events said of a call is remembered, so
`decision:ALLOW status:ERROR` can hold for its end. Each call shows once: at the event that carries
the last thing that was asked about.
"""

from typing import Any

from subluminal.contracts.vocabulary import EventType
from subluminal.ledger.filter.language import Filter
from subluminal.ledger.filter.matching import matches
from subluminal.ledger.store.moments import milliseconds

MAX_CALLS = 20_000
"""Calls under way that are remembered; the oldest are forgotten first."""

Event = dict[str, Any]
Facts = dict[str, Any]

_AT_END = frozenset(["status", "latency", "bytes_out", "error"])
_AT_DECISION = frozenset(["decision", "rule", "reason", "severity", "would_be"])
_OF_A_CALL = frozenset(["server", "tool", "text", "seq", "call", "hash", "bytes_in"])


class Passing:
    """Applies one filter to a stream of events."""

    def __init__(self, terms: Filter) -> None:
        self._terms = terms
        self._calls: dict[str, Facts] = {}
        asked = {term.field for term in terms}
        self._only: EventType | None = None
        if asked & _AT_END:
            self._only = EventType.TOOL_CALL_END
        elif asked & _AT_DECISION:
            self._only = EventType.TOOL_CALL_DECISION
        self._calls_only = bool(asked & _OF_A_CALL)

    def facts(self, event: Event) -> Facts:
        """What is known of the event's call by now, this event included."""
        call = event.get("call") or {}
        call_id = call.get("call_id")
        facts = self._calls.get(call_id, {}) if call_id else {}
        facts = {**facts, **_about(event, call)}
        if not call_id:
            return facts
        if event["type"] == EventType.TOOL_CALL_END:
            self._calls.pop(call_id, None)
        else:
            self._calls[call_id] = facts
            if len(self._calls) > MAX_CALLS:
                del self._calls[next(iter(self._calls))]
        return facts

    def takes(self, event: Event) -> bool:
        """Learns from an event, and tells whether to show it."""
        return self.lets_through(event, self.facts(event))

    def lets_through(self, event: Event, facts: Facts) -> bool:
        """Whether to show the event."""
        if self._only is not None and event["type"] != self._only:
            return False
        if self._calls_only and "call" not in facts:
            return False
        return matches(self._terms, facts)


def _about(event: Event, call: dict[str, Any]) -> Facts:
    found: Facts = {
        "at": milliseconds(event["ts"]),
        "run": event.get("run_id"),
        "agent": event.get("agent_id"),
        "client": event.get("client"),
        "env": event.get("env"),
        "principal": event.get("principal"),
    }
    if call:
        found |= _about_call(call)
    decision = event.get("decision")
    if isinstance(decision, dict):
        found |= {
            "decision": decision.get("action"),
            "rule": decision.get("rule_id"),
            "reason": (decision.get("explain") or {}).get("reason_code"),
            "severity": decision.get("severity"),
            "would_be": (decision.get("would_be") or {}).get("action"),
        }
    if event["type"] == EventType.TOOL_CALL_END:
        found |= {
            "status": event.get("status"),
            "latency": event.get("latency_ms"),
            "bytes_out": event.get("bytes_out"),
            "error": (event.get("error") or {}).get("class"),
            "text": (event.get("preview") or {}).get("result_preview"),
        }
    return {name: value for name, value in found.items() if value is not None}


def _about_call(call: dict[str, Any]) -> Facts:
    return {
        "call": call.get("call_id"),
        "server": call.get("server_name"),
        "tool": call.get("tool_name"),
        "hash": call.get("args_hash"),
        "seq": call.get("seq"),
        "bytes_in": call.get("bytes_in"),
        "text": (call.get("preview") or {}).get("args_preview"),
    }
