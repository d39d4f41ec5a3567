"""A run's summary from its events: what it did, what it was refused, how that went."""

from collections.abc import Iterable
from typing import Any

from subluminal.contracts.vocabulary import Action, EventType, Status

Event = dict[str, Any]

MAX_REFUSED = 200
"""Refusals that are listed one by one; all are counted."""
UNKNOWN = "UNKNOWN"


def summarise(events: Iterable[Event]) -> dict[str, Any]:
    """Counts one run. Calls that were forwarded and never ended are `UNKNOWN`."""
    tally = _Tally()
    for event in events:
        tally.add(event)
    return tally.summary()


class _Tally:
    def __init__(self) -> None:
        self._head: dict[str, Any] = {}
        self._start: dict[str, Any] = {}
        self._end: dict[str, Any] = {}
        self._decisions: dict[str, int] = {}
        self._statuses: dict[str, int] = {}
        self._tools: dict[str, dict[str, int]] = {}
        self._refused: list[dict[str, Any]] = []
        self._open: set[str] = set()
        self._events = 0

    def add(self, event: Event) -> None:
        self._events += 1
        if not self._head:
            names = ("run_id", "agent_id", "client", "env", "principal", "workload")
            self._head = {name: event[name] for name in names if name in event}
        match event["type"]:
            case EventType.RUN_START:
                self._start = event["run"]
            case EventType.RUN_END:
                self._end = event["run"]
            case EventType.TOOL_CALL_DECISION:
                self._decide(event)
            case EventType.TOOL_CALL_END:
                self._finish(event)

    def _decide(self, event: Event) -> None:
        call, decision = event["call"], event["decision"]
        action = decision["action"]
        self._decisions[action] = self._decisions.get(action, 0) + 1
        tool = self._tool(call)
        tool["calls"] += 1
        if action == Action.ALLOW:
            self._open.add(call["call_id"])
            return
        tool["refused"] += 1
        if len(self._refused) < MAX_REFUSED:
            self._refused.append(
                {
                    "ts": event["ts"],
                    "call_id": call["call_id"],
                    "server_name": call["server_name"],
                    "tool_name": call["tool_name"],
                    "action": action,
                    "rule_id": decision["rule_id"],
                    "reason_code": decision["explain"]["reason_code"],
                    "summary": decision["explain"]["summary"],
                }
            )

    def _finish(self, event: Event) -> None:
        call = event["call"]
        if call["call_id"] not in self._open:
            return
        self._open.remove(call["call_id"])
        status = event["status"]
        self._statuses[status] = self._statuses.get(status, 0) + 1
        self._tool(call)["errors"] += status != Status.OK

    def _tool(self, call: dict[str, Any]) -> dict[str, int]:
        name = f"{call['server_name']}/{call['tool_name']}"
        return self._tools.setdefault(name, {"calls": 0, "refused": 0, "errors": 0})

    def summary(self) -> dict[str, Any]:
        statuses = self._statuses | ({UNKNOWN: len(self._open)} if self._open else {})
        return {
            **self._head,
            "status": self._end.get("status"),
            "reason": self._end.get("reason"),
            "started_at": self._start.get("started_at"),
            "ended_at": self._end.get("ended_at"),
            "mode": self._start.get("mode"),
            "policy": self._start.get("policy"),
            "events": self._events,
            "totals": self._end.get("summary"),
            "decisions": self._decisions,
            "statuses": statuses,
            "tools": self._tools,
            "refused": self._refused,
        }


def as_text(summary: dict[str, Any]) -> list[str]:
    """The summary for people, in Markdown, a line each."""
    policy = summary["policy"] or {}
    lines = [
        f"# Run {summary.get('run_id')}",
        "",
        f"- status: {summary['status'] or 'RUNNING'}"
        + (f" ({summary['reason']})" if summary["reason"] else ""),
        f"- agent: {summary.get('agent_id')} ({summary.get('client')}, {summary.get('env')})",
        f"- time: {summary['started_at'] or '?'} to {summary['ended_at'] or 'now'}",
        f"- policy: {policy.get('policy_id', 'none')} {policy.get('policy_version', '')}, "
        f"{summary['mode'] or 'observe'}",
        f"- decisions: {_counts(summary['decisions'])}",
        f"- ends of forwarded calls: {_counts(summary['statuses'])}",
        "",
        "| tool | calls | refused | errors |",
        "|---|---:|---:|---:|",
    ]
    for name, counts in sorted(summary["tools"].items()):
        lines.append(
            f"| {_cell(name)} | {counts['calls']} | {counts['refused']} | {counts['errors']} |"
        )
    if summary["refused"]:
        lines += ["", "| refused | by | because |", "|---|---|---|"]
    for row in summary["refused"]:
        tool = _cell(f"{row['server_name']}/{row['tool_name']}")
        by = _cell(str(row["rule_id"] or row["reason_code"]))
        lines.append(f"| {tool} {row['action']} | {by} | {_cell(row['summary'])} |")
    return lines


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items()) or "none"


def _cell(text: str) -> str:
    """What a tool wrote, as one cell of a table."""
    return text.replace("|", "\\|").replace("\n", " ").replace("\r", " ")
