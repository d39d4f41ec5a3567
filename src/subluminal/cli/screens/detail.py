"""One call, whole, as `sub show` prints it."""

import json
from typing import Any

from subluminal.cli.output import shown
from subluminal.cli.screens import cells
from subluminal.cli.screens.cells import Cell
from subluminal.cli.screens.lists import Screen
from subluminal.contracts.vocabulary import Action, EventType

_LABEL = 10
_MAX_LINES = 40
"""Of a preview; `--json` has all of it."""


def print_call(screen: Screen, detail: dict[str, Any]) -> None:
    """What was asked, decided and answered."""
    call = detail["call"]
    events = {event["type"]: event for event in detail["events"]}
    name = f"{call['server_name']}/{call['tool_name']}"
    screen.out.line(screen.out.paint(shown(f"{name}  {call['call_id']}"), "bold"))
    decided = cells.decision(call["decision"], call["would_be"])
    _field(screen, "decision", decided, _why(call, events))
    if call["decision"] in (None, Action.ALLOW):
        took = cells.duration(call["latency_ms"])
        _field(screen, "status", cells.status(call["status"]), _took(call, took))
    _error(screen, events)
    _hint(screen, detail["hint"])
    _field(screen, "when", Cell(call["ts"]), "")
    _field(screen, "run", Cell(call["run_id"]), f"call {call['seq']} of the run")
    _field(screen, "args_hash", Cell(call["args_hash"]), "")
    preview = call["preview"]
    cut_off = " (truncated)" if preview["truncated"] else ""
    _text(screen, f"arguments, {cells.size(call['bytes_in'])}{cut_off}", preview["args_preview"])
    if preview["result_preview"] is not None:
        _text(screen, f"result, {cells.size(call['bytes_out'])}", preview["result_preview"])
    if preview["redaction_flags"]:
        _field(screen, "masked", Cell(", ".join(preview["redaction_flags"])), "")


def _why(call: dict[str, Any], events: dict[str, Any]) -> str:
    rule = f"rule {call['rule_id']}, " if call["rule_id"] else ""
    decision = (events.get(EventType.TOOL_CALL_DECISION) or {}).get("decision") or {}
    summary = (decision.get("explain") or {}).get("summary")
    policy = (decision.get("policy") or {}).get("policy_id")
    where = f" (policy {policy})" if policy and policy != "none" else ""
    told = f"{rule}{call['reason_code'] or ''}{where}"
    return f"{told}: {summary}" if summary else told


def _took(call: dict[str, Any], took: str) -> str:
    if call["status"] is None:
        return "still under way"
    return "forwarded, and never ended" if took == cells.NOTHING else f"after {took}"


def _error(screen: Screen, events: dict[str, Any]) -> None:
    error = (events.get(EventType.TOOL_CALL_END) or {}).get("error")
    if error and error.get("class") != "policy_block":
        _field(screen, "error", Cell(error.get("class"), "red"), error.get("message", ""))


def _hint(screen: Screen, hint: dict[str, Any] | None) -> None:
    if hint is None:
        return
    _field(screen, "hint", Cell(hint["hint_kind"], "cyan"), f"({hint['outcome']})")
    _text(screen, "what the agent was told", hint["hint_text"])
    if hint["suggested_args"] is not None:
        _text(screen, "suggested arguments", json.dumps(hint["suggested_args"]))


def _field(screen: Screen, label: str, value: Cell, more: str) -> None:
    painted = screen.out.paint(value, value.colour) if value.colour else str(value)
    name = screen.out.paint(f"{label:<{_LABEL}}", "dim")
    screen.out.line(f"  {name}  {painted}  {shown(more)}".rstrip())


def _text(screen: Screen, label: str, text: str | None) -> None:
    screen.out.line("  " + screen.out.paint(label, "dim"))
    if text is None:
        screen.out.line("    " + screen.out.paint("not kept", "dim"))
        return
    lines = _pretty(text).split("\n")
    for line in lines[:_MAX_LINES]:
        screen.out.line("    " + shown(line))
    if len(lines) > _MAX_LINES:
        left = len(lines) - _MAX_LINES
        screen.out.line("    " + screen.out.paint(f"{left} more lines; see --json", "dim"))


def _pretty(text: str) -> str:
    """JSON indented; anything else as it is."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return json.dumps(value, indent=2, ensure_ascii=False)
