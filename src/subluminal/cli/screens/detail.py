"""One call or one run in full, as `sub show` prints it. A run shows its calls along a timeline."""

import json
from typing import Any

from subluminal.cli.output import shown
from subluminal.cli.screens import cells
from subluminal.cli.screens.cells import Cell
from subluminal.cli.screens.intents import (
    count_decisions,
    is_refused_by_pack,
    pack_said,
    print_kernel,
)
from subluminal.cli.screens.lists import WIDE, Row
from subluminal.cli.screens.tables import Column, Screen, cut
from subluminal.contracts.vocabulary import Action, EnvSource, EventType, Outcome
from subluminal.core.runs.meta import RESERVED
from subluminal.counts import counted
from subluminal.ledger.filter.fields import RUNNING
from subluminal.timestamps import parse_rfc3339

_MAX_LINES = 40
"""Lines of a preview that are printed; `--json` has all of them."""
_RUN_LABEL = 8
_MAX_META = 80
"""Characters of one entry of a run's meta; `--json` has all of them."""
_BAR = 16
_BLOCK, _POINT = "━", "╸"
_ENV_SOURCES = {
    EnvSource.GIVEN: "as given",
    EnvSource.CI: "by its CI system",
    EnvSource.TERMINAL: "started in a terminal",
    EnvSource.DESKTOP: "started from a desktop",
    EnvSource.DEFAULT: "by default",
}


def print_call(screen: Screen, detail: dict[str, Any]) -> None:
    """Prints what a call asked for, how it was decided and what it returned."""
    call = detail["call"]
    events = {event["type"]: event for event in detail["events"]}
    rounds = [event for event in detail["events"] if event["type"] == EventType.CALL_ROUND]
    name = f"{call['server_name']}/{call['tool_name']}"
    screen.out.line(screen.out.paint(shown(f"{name}  {call['call_id']}"), "bold"))
    decided = cells.decision(call["decision"], call["would_be"])
    screen.field("decision", decided, _why(call, events))
    if call["outcome"] not in (None, Outcome.ALLOW, Outcome.DENY):
        screen.field("outcome", Cell(call["outcome"]))
    if call["taint"] is not None:
        screen.field("taint", Cell(call["taint"]), "level of the run before this call")
    print_kernel(screen, detail)
    if call["decision"] in (None, Action.ALLOW):
        took = cells.took(call["status"], call["error_class"], call["latency_ms"])
        ended = cells.outcome(call["status"], call["error_class"])
        screen.field("status", ended, _took(call, took))
    if rounds:
        screen.field("rounds", Cell(str(1 + len(rounds))), _rounds(rounds))
    _error(screen, events)
    _hint(screen, detail["hint"])
    screen.field("when", Cell(call["ts"]))
    screen.field("run", Cell(call["run_id"]), f"call {call['seq']} of the run")
    if call["retry_of"] is not None:
        screen.field("retry of", Cell(call["retry_of"]), "which was refused")
    if detail["retries"]:
        screen.field("retried", Cell(", ".join(detail["retries"])))
    screen.field("args_hash", Cell(call["args_hash"]))
    preview = call["preview"]
    cut_off = " (truncated)" if preview["truncated"] else ""
    _text(screen, f"arguments, {cells.size(call['bytes_in'])}{cut_off}", preview["args_preview"])
    if preview["result_preview"]:
        _text(screen, f"result, {cells.size(call['bytes_out'])}", preview["result_preview"])
    if preview["redaction_flags"]:
        screen.field("masked", Cell(", ".join(preview["redaction_flags"])))


def _why(call: dict[str, Any], events: dict[str, Any]) -> str:
    rule = f"rule {call['rule_id']}, " if call["rule_id"] else ""
    last = events.get(EventType.TOOL_CALL_DECISION) or {}
    if call["decision"] != Action.ALLOW:
        last = events.get(EventType.CALL_ROUND) or last
    decision = last.get("decision") or {}
    summary = (decision.get("explain") or {}).get("summary")
    policy = (decision.get("policy") or {}).get("policy_id")
    where = f" (policy {policy})" if policy and policy != "none" else ""
    told = f"{rule}{call['reason_code'] or ''}{where}"
    return f"{told}: {summary}" if summary else told


def _rounds(rounds: list[dict[str, Any]]) -> str:
    last = rounds[-1]
    if last["decision"]["action"] == Action.ALLOW:
        return "the server asked for input before it answered"
    return f"round {last['call']['round']} was refused; the rounds before it were forwarded"


def _took(call: dict[str, Any], took: str) -> str:
    if call["status"] is None:
        return "still running"
    return "forwarded; its outcome is unknown" if took == cells.NOTHING else f"after {took}"


def _error(screen: Screen, events: dict[str, Any]) -> None:
    error = (events.get(EventType.TOOL_CALL_END) or {}).get("error")
    if error and error.get("class") != "policy_block":
        screen.field("error", Cell(error.get("class"), "red"), error.get("message", ""))


def _hint(screen: Screen, hint: dict[str, Any] | None) -> None:
    if hint is None:
        return
    screen.field("hint", Cell(hint["hint_kind"], "cyan"), f"({hint['outcome']})")
    _text(screen, "what the agent was told", hint["hint_text"])
    if hint["suggested_args"] is not None:
        _text(screen, "suggested arguments", json.dumps(hint["suggested_args"]))


def _text(screen: Screen, label: str, text: str | None) -> None:
    screen.out.line("  " + screen.out.paint(label, "dim"))
    if text is None:
        screen.out.line("    " + screen.out.paint("not recorded", "dim"))
        return
    lines = _pretty(text).split("\n")
    for line in lines[:_MAX_LINES]:
        screen.out.line("    " + shown(line))
    if len(lines) > _MAX_LINES:
        left = len(lines) - _MAX_LINES
        screen.out.line("    " + screen.out.paint(f"{left} more lines; see --json", "dim"))


def _pretty(text: str) -> str:
    """Returns JSON indented, and any other text unchanged."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return json.dumps(value, indent=2, ensure_ascii=False)


def print_run(screen: Screen, run: Row, calls: list[Row], *, is_cut: bool) -> None:
    """Prints a run, then one line per call, oldest first."""
    _head(screen, run)
    levels = _levels(calls)
    if levels:
        _run_field(screen, "taint", levels)
    intents = count_decisions(calls)
    if intents:
        _run_field(screen, "intents", intents)
    if not calls:
        screen.out.line("\n  no calls")
        return
    began = parse_rfc3339(run["started_at"])
    end = max(parse_rfc3339(call["ts"]) + (call["latency_ms"] or 0) for call in calls)
    columns = [
        Column("AT", right=True),
        Column("CALL"),
        Column("DECISION"),
        Column("TOOL", shrinks_to=12),
        Column("STATUS"),
        Column("TIME", right=True),
        Column("WHY", shrinks_to=8),
    ]
    has_levels = any(map(_level, calls))
    if has_levels:
        columns.append(Column("TAINT", needs=WIDE))
    if screen.width is not None:
        # What a pack said needs the room of the timeline on a narrow terminal.
        columns.insert(1, Column("TIMELINE", needs=WIDE if intents else 0))
    screen.out.line()
    screen.table(
        columns,
        [
            [*_row(screen, call, began, end), *([cells.taint(_level(call))] if has_levels else [])]
            for call in calls
        ],
    )
    if is_cut:
        screen.out.talk(
            f"These are the first {len(calls)} calls. See all with"
            f" `sub query calls --run {run['run_id']}`."
        )


def _levels(calls: list[Row]) -> str:
    """Returns the levels that the calls of a run met, in order; empty if no policy asked for it."""
    told: list[str] = []
    last = None
    for call in calls:
        level = call["taint"]
        if level is not None and level != last:
            told.append(f"{level} from call {call['seq']}" if told else level)
            last = level
    return ", ".join(told)


def _head(screen: Screen, run: Row) -> None:
    out = screen.out
    status = screen.painted(cells.status(run["status"] or RUNNING))
    out.line(f"{out.paint(shown('run ' + run['run_id']), 'bold')}  {status}")
    totals = run["summary"] or {}
    why = cells.why(totals)
    if why:
        _run_field(screen, "why", why)
    meta: dict[str, Any] = run["metadata"] or {}
    source = meta.get("env_source")
    env = f"{run['env']} ({_ENV_SOURCES.get(source, source)})" if source else run["env"]
    by = f", by {run['principal']}" if run["principal"] else ""
    _run_field(screen, "agent", run["agent_id"])
    if run["agent"]:
        _run_field(screen, "trust", _trust(run["agent"]))
    _run_field(screen, "client", f"{run['client']} in {env}{by}")
    workload: dict[str, Any] = run["workload"] or {}
    place = [str(workload[name]) for name in ("repo", "branch", "job_id") if workload.get(name)]
    if place or workload.get("repo_path"):
        _run_field(screen, "workload", " ".join(place) or str(workload["repo_path"]))
    if run["policy_id"] and run["policy_id"] != "none":
        _run_field(screen, "policy", f"{run['policy_id']} {run['policy_version']}, {run['mode']}")
    if meta.get("parent_run_id"):
        _run_field(screen, "parent", str(meta["parent_run_id"]))
    told = [cut(f"{key}={value}", _MAX_META) for key, value in meta.items() if key not in RESERVED]
    if told:
        _run_field(screen, "meta", " ".join(told))
    _run_field(screen, "began", run["started_at"])
    if totals:
        _run_field(
            screen,
            "calls",
            f"{totals['calls_total']}: {totals['calls_allowed']} allowed, "
            f"{totals['calls_blocked']} refused, {totals['calls_throttled']} throttled; "
            f"{counted(totals['errors_total'], 'error')}; "
            f"took {cells.duration(totals['duration_ms'])}",
        )


def _trust(agent: dict[str, Any]) -> str:
    """Returns how far an agent was trusted when its run began, and what proved it."""
    proof = agent["proof"]
    told = [agent["trust_level"] if agent["registered"] else "untrusted: no active registration"]
    if proof["kind"] == "attested":
        told.append(f"attested by {proof['issuer']} as {proof['subject']}")
    else:
        told.append("launched by `sub run`" if proof["kind"] == "launched" else "no proof")
    if proof.get("problem"):
        told.append(f"a token was refused: {proof['problem']}")
    if agent["delegation_depth"]:
        told.append(f"delegated, depth {agent['delegation_depth']}")
    return "; ".join(told)


def _run_field(screen: Screen, label: str, value: str) -> None:
    screen.field(label, Cell(value), width=_RUN_LABEL)


def _row(screen: Screen, call: Row, began: int, end: int) -> list[Cell]:
    at = parse_rfc3339(call["ts"]) - began
    is_refused = call["decision"] not in (None, Action.ALLOW)
    decision = cells.decision(call["decision"], call["would_be"])
    row = [
        Cell(f"+{cells.duration(max(0, at))}"),
        screen.id(call["call_id"]),
        decision,
        Cell(f"{call['server_name']}/{call['tool_name']}"),
        Cell() if is_refused else cells.outcome(call["status"], call["error_class"]),
        Cell()
        if is_refused
        else cells.took(call["status"], call["error_class"], call["latency_ms"]),
        Cell(_decided_by(call)),
    ]
    if screen.width is not None:
        row.insert(1, _bar(at, call["latency_ms"] or 0, end - began, decision.colour))
    return row


def _decided_by(call: Row) -> str:
    """Returns the rule that decided a call, else why it was refused, and what a pack said."""
    kernel = call["kernel"]
    if kernel and is_refused_by_pack(kernel, call["rule_id"]):
        return pack_said(kernel)
    said = pack_said(kernel) if kernel else ""
    return " ".join(filter(None, [cells.decided_by(call), said])) or cells.NOTHING


def _level(call: Row) -> str | None:
    """Returns the level of the run before a call; if it is not on record, that of the intent."""
    level: str | None = call["taint"] or (call["kernel"] and call["kernel"]["taint"])
    return level


def _bar(at_ms: int, took_ms: int, whole_ms: int, colour: str) -> Cell:
    """Draws when the call ran within its run, at least as a point."""
    scale = _BAR / max(1, whole_ms)
    start = min(_BAR - 1, max(0, int(at_ms * scale)))
    size = min(_BAR - start, int(took_ms * scale))
    bar = _BLOCK * size or _POINT
    return Cell(" " * start + bar, colour)
