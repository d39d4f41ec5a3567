"""`summary.md`: a run's summary for the page of a CI job.

Text from an agent, a tool or a policy is put into code spans, where it cannot become markup, a
mention or a link. The caller makes control characters visible.
"""

from collections.abc import Iterable
from typing import Any

from subluminal.contracts.vocabulary import Action

MAX_ROWS = 100
"""Most rows of a table. CI pages have a size limit; summary.json has all rows."""
MAX_CHARS = 200


def code(text: object) -> str:
    """Returns text as a code span on one line, for a table cell."""
    line = " ".join(str(text).replace("`", "'").split())
    if len(line) > MAX_CHARS:
        line = f"{line[:MAX_CHARS]}…"
    # A bar ends a table cell even inside a code span.
    return f"`{line}`".replace("|", "\\|") if line else "–"


def as_markdown(summary: dict[str, Any]) -> list[str]:
    """Returns the lines of the page."""
    return [
        *_head(summary),
        *_totals(summary),
        *_silent(summary),
        *_violations(summary),
        *_rules(summary),
        *_tools(summary),
        *_policies(summary),
    ]


def _head(summary: dict[str, Any]) -> list[str]:
    verdict = summary["verdict"]
    status = str(summary["status"] or "RUNNING")
    asked = [f"{name} {verdict[name]}" for name in ("strict", "fail_on") if name in verdict]
    held = "policy held" if verdict["holds"] else "policy violated"
    lines = [f"## Agent run: {held if asked else status}", ""]
    if verdict["because"]:
        lines.append(f"- failed: {code('; '.join(verdict['because']))}")
    agent = f"{code(summary.get('agent_id'))} ({summary.get('client')}, {summary.get('env')})"
    reason = f": {code(summary['reason'])}" if summary["reason"] else ""
    policy = summary["policy"] or {"policy_id": "none", "policy_version": ""}
    named = f"{code(policy['policy_id'])} {code(policy['policy_version'])}"
    modes = ", ".join([str(summary["mode"] or "observe"), *asked])
    return [
        *lines,
        f"- agent {agent}, run {code(summary.get('run_id'))}",
        f"- ended {status}{reason}",
        f"- policy {named}, {modes}",
        f"- from {summary['started_at'] or '?'} to {summary['ended_at'] or 'now'}",
        "",
    ]


def _totals(summary: dict[str, Any]) -> list[str]:
    decisions, latency = summary["decisions"], summary["latency_ms"]
    calls = sum(decisions.values())
    allowed = decisions.get(Action.ALLOW, 0)
    throttled = decisions.get(Action.THROTTLE, 0)
    errors = sum(n for status, n in summary["statuses"].items() if status != "OK")
    times = [str(latency.get(name, "–")) for name in ("p50", "p95", "max")]
    cells = [calls, allowed, calls - allowed - throttled, throttled, errors, *times]
    return _table(
        ["calls", "allowed", "refused", "throttled", "errors", "p50 ms", "p95 ms", "max ms"],
        [[str(cell) for cell in cells]],
    )


def _silent(summary: dict[str, Any]) -> list[str]:
    rows = [
        [
            code(each["server_name"] or "not known"),
            "**fails the run**" if each["fails"] else "tolerated",
            code(each["detail"]),
        ]
        for each in summary["silent_servers"]
    ]
    header = ["server", "", "why"]
    return ["### Servers that were not seen", "", *_table(header, rows)] if rows else []


def _violations(summary: dict[str, Any]) -> list[str]:
    rows = [
        [
            str(each["seq"] or "–"),
            code(f"{each['server_name']}/{each['tool_name']}"),
            f"{_WOULD[each['kind']]}{each['action']}",
            code(each["rule_id"] or each["reason_code"]),
            f"**{each['severity']}**" if each["severity"] == "critical" else each["severity"],
            code(each["summary"]),
        ]
        for each in summary["violations"][:MAX_ROWS]
    ]
    total = summary["violations_total"]
    if not total:
        return ["No violations.", ""]
    title = ["### Violations", ""]
    header = ["call", "tool", "decision", "rule", "severity", "why"]
    return title + _table(header, rows, total)


_WOULD = {
    "refused": "",
    "throttled": "",
    "observed": "observed, would be ",
    "flagged": "flagged, ",
    "ungoverned": "no policy, ",
}


def _rules(summary: dict[str, Any]) -> list[str]:
    rules = summary["rules"]
    rows = [
        [
            code(rule["rule_id"]),
            rule["kind"] or "–",
            rule["severity"],
            str(rule["calls"]),
            str(rule["violations"]),
        ]
        for rule in rules[:MAX_ROWS]
    ]
    header = ["rule", "kind", "severity", "calls", "violations"]
    return ["### Rules", "", *_table(header, rows, len(rules))] if rows else []


def _tools(summary: dict[str, Any]) -> list[str]:
    tools = summary["tools"]
    counted = ("calls", "refused", "throttled", "errors")
    rows = [
        [
            code(name),
            *(str(found[each]) for each in counted),
            str(found["latency_ms"].get("p95", "–")),
        ]
        for name, found in list(tools.items())[:MAX_ROWS]
    ]
    header = ["tool", *counted, "p95 ms"]
    return ["### Tools", "", *_table(header, rows, len(tools))] if rows else []


def _policies(summary: dict[str, Any]) -> list[str]:
    rows = [
        [
            code(policy["policy_id"]),
            code(policy["policy_version"]),
            policy["mode"],
            code(", ".join(policy["layers"])),
            code(policy["policy_hash"]),
        ]
        for policy in summary["policies"]
    ]
    header = ["policy", "version", "mode", "layer", "policy_hash"]
    return ["### Policies", "", *_table(header, rows)] if rows else []


def _table(header: list[str], rows: Iterable[list[str]], total: int | None = None) -> list[str]:
    lines = [_row(header), _row(["---"] * len(header)), *map(_row, rows)]
    left_out = 0 if total is None else total - (len(lines) - 2)
    more = ["", f"… and {left_out} more, in summary.json."] if left_out > 0 else []
    return [*lines, *more, ""]


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"
