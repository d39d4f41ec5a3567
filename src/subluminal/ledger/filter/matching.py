"""Evaluates filters on live events, as the SQL of `query` does on stored calls.

A filter is about calls, and an event is a part of a call. So what earlier events said of a call is
remembered: `decision:ALLOW status:ERROR` can match at the call's end. A fact that is not known
fails every term about it, negated ones too, as NULL does in SQL.
"""

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

from subluminal.contracts.vocabulary import Action, ErrorClass, EventType, Status
from subluminal.ledger.filter.fields import CALL_FIELDS, UNKNOWN, Field, Kind
from subluminal.ledger.filter.language import Filter, Term
from subluminal.policy.outcomes import outcome_of
from subluminal.timestamps import parse_rfc3339

MAX_CALLS = 20_000
"""The most unfinished calls that are remembered; the oldest are forgotten first."""

Event = dict[str, Any]
Facts = Mapping[str, Any]
"""What is known of a call, by field name; `at` is its time in milliseconds, `text` its previews"""

_TOKEN = re.compile(r"[^\W_]+")
_AT_END = frozenset(["status", "latency", "bytes_out", "error"])
_AT_DECISION = frozenset(
    [
        *("decision", "outcome", "rule", "reason", "severity", "would_be"),
        *("pack", "intent", "intent_hash", "kernel"),
    ]
)
_OF_A_CALL = frozenset(["server", "tool", "text", "seq", "call", "retry_of", "hash", "bytes_in"])


def matches(terms: Filter, facts: Facts, fields: Mapping[str, Field] = CALL_FIELDS) -> bool:
    """Whether all terms of a filter hold."""
    return all(_holds(term, facts, fields[term.field].kind) for term in terms)


def _holds(term: Term, facts: Facts, kind: Kind) -> bool:
    fact = facts.get("at" if kind is Kind.TIME else term.field)
    if fact is None:
        return False
    values = term.values
    if term.field == "status" and UNKNOWN in values and _is_unknown(facts):
        return not term.negated
    return any(_is(kind, term.operator, fact, value) for value in values) != term.negated


def _is_unknown(facts: Facts) -> bool:
    return facts.get("status") == Status.ERROR and facts.get("error") == ErrorClass.UNKNOWN


def _is(kind: Kind, operator: str, fact: str | int, value: str | int) -> bool:
    if isinstance(fact, int) and isinstance(value, int):
        return _compared(operator, fact, value)
    if kind is Kind.TEXT:
        return _contains(str(fact), str(value))
    return fnmatchcase(str(fact), str(value).replace("[^", "[!"))


def _compared(operator: str, fact: int, value: int) -> bool:
    match operator:
        case "<":
            return fact < value
        case "<=":
            return fact <= value
        case ">":
            return fact > value
        case ">=":
            return fact >= value
        case _:
            return fact == value


def _contains(text: str, wanted: str) -> bool:
    """Matches a phrase of whole words, as the text index does; a final `*` makes it a prefix."""
    words = _TOKEN.findall(wanted.lower())
    if not words:
        return False
    tokens = " ".join(["", *_TOKEN.findall(text.lower()), ""])
    phrase = " " + " ".join(words)
    return phrase in tokens if wanted.endswith("*") else phrase + " " in tokens


ODD_SHAPES = (LookupError, TypeError, ValueError, AttributeError)
"""What is raised for an event that has another shape than this version's."""


class Passing:
    """Applies one filter to a stream of events.

    Each call passes once: at the event that carries the last fact that the filter asks about.
    """

    def __init__(self, terms: Filter) -> None:
        self._terms = terms
        self._calls: dict[str, dict[str, Any]] = {}
        asked = {term.field for term in terms}
        self._only: EventType | None = None
        if asked & _AT_END:
            self._only = EventType.TOOL_CALL_END
        elif asked & _AT_DECISION:
            self._only = EventType.TOOL_CALL_DECISION
        self._calls_only = bool(asked & _OF_A_CALL)

    def facts(self, event: Event) -> dict[str, Any]:
        """Learns from an event. Returns all that is known of its call, this event included."""
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
        """Learns from an event. Returns whether the event passes the filter.

        An event of another shape than this version's does not pass.
        """
        try:
            return self.lets_through(event, self.facts(event))
        except ODD_SHAPES:
            return False

    def lets_through(self, event: Event, facts: Facts) -> bool:
        """Whether an event passes the filter, given the facts about its call."""
        if self._only is not None and event["type"] != self._only:
            # A refused round replaces the decision of its call.
            is_round = event["type"] == EventType.CALL_ROUND
            if self._only != EventType.TOOL_CALL_DECISION or not (is_round and _is_refused(event)):
                return False
        if self._calls_only and "call" not in facts:
            return False
        return matches(self._terms, facts)


def _is_refused(event: Event) -> bool:
    return bool((event.get("decision") or {}).get("action") != Action.ALLOW)


def _about(event: Event, call: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "at": parse_rfc3339(event["ts"]),
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
        action, reason = decision.get("action"), (decision.get("explain") or {}).get("reason_code")
        has_grant = bool(decision.get("grant"))
        found |= {
            "decision": action,
            "outcome": outcome_of(str(action), str(reason), has_grant=has_grant),
            "rule": decision.get("rule_id"),
            "reason": reason,
            "severity": decision.get("severity"),
            "would_be": (decision.get("would_be") or {}).get("action"),
            "taint": decision.get("taint"),
        }
        found |= _about_intent(decision.get("kernel") or {})
    if event["type"] == EventType.TOOL_CALL_END:
        found |= {
            "status": event.get("status"),
            "latency": event.get("latency_ms"),
            "bytes_out": event.get("bytes_out"),
            "error": (event.get("error") or {}).get("class"),
            "text": (event.get("preview") or {}).get("result_preview"),
        }
    return {name: value for name, value in found.items() if value is not None}


def _about_intent(kernel: dict[str, Any]) -> dict[str, Any]:
    return {
        "pack": kernel.get("pack"),
        "intent": kernel.get("intent_kind"),
        "intent_hash": kernel.get("intent_hash"),
        "kernel": kernel.get("kind"),
    }


def _about_call(call: dict[str, Any]) -> dict[str, Any]:
    return {
        "call": call.get("call_id"),
        "retry_of": call.get("retry_of"),
        "server": call.get("server_name"),
        "tool": call.get("tool_name"),
        "hash": call.get("args_hash"),
        "seq": call.get("seq"),
        "bytes_in": call.get("bytes_in"),
        "text": (call.get("preview") or {}).get("args_preview"),
    }
