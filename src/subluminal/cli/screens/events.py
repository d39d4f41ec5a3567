"""One line per event, for `sub tail`. An event that tells a person nothing new has no line.

An event that only a newer version can read has a line that says so.
"""

import time
from collections.abc import Callable
from typing import Any

from subluminal.cli.output import Output, terminal_width
from subluminal.cli.screens import cells
from subluminal.cli.screens.cells import Cell
from subluminal.cli.screens.intents import is_refused_by_pack, pack_said
from subluminal.cli.screens.tables import cut, width_of
from subluminal.contracts.versions import is_newer_major
from subluminal.contracts.vocabulary import (
    Action,
    AgentState,
    ApprovalAnswer,
    EventType,
    SwitchState,
    TaintCause,
)
from subluminal.counts import counted
from subluminal.ledger.filter.matching import ODD_SHAPES
from subluminal.timestamps import parse_rfc3339

_TELLING_STATES = ("killed", "degraded", "failed", "silent")
_WORD = 9
"""Width of the longest decision."""
_MAX_RUNS = 1_024
"""Most policies and agents of runs that are remembered at once."""

Event = dict[str, Any]
Facts = dict[str, Any]
Told = tuple[Cell, str] | None
"""The word and the text of a line."""


class EventLines:
    """Formats events as lines for one terminal or pipe; `margin` columns stay free."""

    def __init__(self, out: Output, margin: int = 0) -> None:
        self._out = out
        self._width = terminal_width() - margin if out.out_is_terminal else None
        self._in_force: dict[tuple[str, str], object] = {}

    def line(self, event: Event, facts: Facts) -> str | None:
        """Returns the line of an event, if it has one; `facts` is what is known of its call."""
        told = self._told(event, facts)
        if told is None:
            return None
        word, text = told
        run = str(event.get("run_id", ""))
        head = f"{self._time(event['ts'])}  {Cell(self._id(run))}  "
        padding = " " * max(0, _WORD - len(word))
        room = 10_000 if self._width is None else self._width - width_of(head) - _WORD - 2
        painted = self._out.paint(word, word.colour) if word.colour else str(word)
        return f"{head}{painted}{padding}  {cut(Cell(text), max(8, room))}"

    def _told(self, event: Event, facts: Facts) -> Told:
        try:
            return None if self._is_known(event) else _tell(event, facts)
        except ODD_SHAPES:
            return _unknown(event)

    def _is_known(self, event: Event) -> bool:
        """Whether another shim of the run has already reported this policy, or this agent."""
        reported: object
        if event["type"] == EventType.POLICY_LOADED and "policy" in event:
            about, reported = event["load"]["layer"], event["policy"]["policy_hash"]
        elif event["type"] == EventType.AGENT_RESOLVED:
            about, reported = "agent", event["agent"]
        elif event["type"] == EventType.RUN_START and event["run"].get("agent"):
            about, reported = "agent", event["run"]["agent"]
        else:
            return False
        key = (event["run_id"], about)
        if self._in_force.get(key) == reported and event["type"] != EventType.RUN_START:
            return True
        if len(self._in_force) >= _MAX_RUNS:
            self._in_force.clear()
        self._in_force[key] = reported
        return False

    def _id(self, run: str) -> str:
        return run if self._width is None else f"{cells.short_id(run):<8}"

    def _time(self, ts: str) -> str:
        if self._width is None:
            return ts
        local = time.localtime(parse_rfc3339(ts) // 1000)
        return f"{local.tm_hour:02}:{local.tm_min:02}:{local.tm_sec:02}"


def _tell(event: Event, facts: Facts) -> Told:
    if event["type"] in _SILENT:
        return None
    if is_newer_major(str(event.get("v", ""))):
        text = f"of Interface Pack {event['v']}, which this `sub` cannot read: upgrade it"
        return Cell("NEWER", "yellow"), f"{event['type']} {text}"
    tell = _TELLERS.get(event["type"])
    return tell(event, facts) if tell else _unknown(event)


def _unknown(event: Event) -> Told:
    return Cell("EVENT", "dim"), f"{event['type']}: see it with --json"


def _decision(event: Event, facts: Facts) -> Told:
    decision = event["decision"]
    would_be = (decision.get("would_be") or {}).get("action")
    tool = f"{facts.get('server', '?')}/{facts.get('tool', '?')}"
    if facts.get("retry_of"):
        tool = f"{tool} (retry of {cells.short_id(facts['retry_of'])})"
    kernel = decision.get("kernel")
    if kernel:
        tool = f"{tool} {kernel['taint']}  {pack_said(kernel)}"
    if decision["action"] == Action.ALLOW and not would_be:
        grant = decision.get("grant")
        who = f"granted by {grant['approver']}: " if grant else ""
        return cells.decision(decision["action"]), f"{tool}  {who}{facts.get('text', '')}"
    why = decision.get("rule_id") or decision["explain"]["reason_code"]
    summary = decision["explain"]["summary"]
    hint = (decision.get("hint") or {}).get("hint_text")
    told = hint if hint and hint != summary else summary
    if kernel and is_refused_by_pack(kernel, decision.get("rule_id")):
        return cells.decision(decision["action"], would_be), f"{tool}: {told}"
    return cells.decision(decision["action"], would_be), f"{tool}  {why}: {told}"


def _round(event: Event, facts: Facts) -> Told:
    told = _decision(event, facts)
    return None if told is None else (told[0], f"{told[1]} (round {event['call']['round']})")


def _end(event: Event, facts: Facts) -> Told:
    if facts.get("decision") not in (None, Action.ALLOW):
        return None  # the line of its decision is enough
    tool = f"{facts.get('server', '?')}/{facts.get('tool', '?')}"
    error = event.get("error") or {}
    took = cells.took(event["status"], error.get("class"), event["latency_ms"])
    told = f"{tool}  {took}  {error.get('message', '')}".rstrip()
    return cells.outcome(event["status"], error.get("class")), told


def _run_start(event: Event, _facts: Facts) -> Told:
    run = event["run"]
    policy = run["policy"]
    trust = f" ({_trust(run['agent'])})" if run.get("agent") else ""
    who = f"agent {event['agent_id']}{trust}, client {event['client']}"
    if run.get("policy_problem"):
        return Cell("START", "red"), f"{who}, every call is refused: {run['policy_problem']}"
    named = "no policy" if policy["policy_id"] == "none" else f"policy {policy['policy_id']}"
    return Cell("START", "blue"), f"{who}, {run['mode']}, {named}"


def _run_end(event: Event, _facts: Facts) -> Told:
    run = event["run"]
    totals = run["summary"]
    text = (
        f"{counted(totals['calls_total'], 'call')}, {totals['calls_blocked']} refused, "
        f"{totals['calls_throttled']} throttled, {cells.duration(totals['duration_ms'])}"
    )
    why = run.get("reason") or cells.why(totals)
    return cells.status(run["status"]), f"{text}: {why}" if why else text


def _health(event: Event, _facts: Facts) -> Told:
    health = event["health"]
    # A server that ended because it was told to has no detail.
    has_failed = health["state"] == "exited" and "detail" in health
    if health["state"] not in _TELLING_STATES and not has_failed:
        return None
    lost = f"{health['events_lost']} events lost" if health.get("events_lost") else ""
    told = str(health.get("detail") or lost)
    if health["state"] == "silent" and "server_name" in health:
        told = f"{health['server_name']}: {told}"
    said = f": {health['stderr']}" if health.get("stderr") else ""
    return Cell(health["state"], "yellow"), told + said


def _policy(event: Event, _facts: Facts) -> Told:
    load = event["load"]
    if load["ok"]:
        policy = event.get("policy") or {}
        text = f"{policy.get('policy_id')} {policy.get('policy_version')} ({load['layer']})"
        return Cell("POLICY", "blue"), text
    return Cell("POLICY", "red"), f"refused ({load['layer']}): {load.get('problem', '')}"


def _injection(event: Event, _facts: Facts) -> Told:
    injection = event["injection"]
    if injection["success"]:
        return None
    why = injection.get("detail") or "could not be injected into the server"
    return Cell("SECRET", "red"), f"{injection['inject_as']}: {why}"


def _approval_requested(event: Event, _facts: Facts) -> Told:
    call, approval = event["call"], event["approval"]
    tool = f"{call['server_name']}/{call['tool_name']}"
    text = f"`sub approve {approval['approval_id']}`  {tool}  {approval['rule_id']}"
    return Cell("WAITS", "yellow"), text


def _approval_decided(event: Event, _facts: Facts) -> Told:
    given = event["approval"]
    approved = given["answer"] == ApprovalAnswer.APPROVED
    word = Cell("APPROVED", "green") if approved else Cell("DENIED", "red")
    reason = f": {given['reason']}" if given.get("reason") else ""
    return word, f"{given['server_name']}/{given['tool_name']}  by {given['by']}{reason}"


def _grant_refused(event: Event, _facts: Facts) -> Told:
    call, grant = event["call"], event["grant"]
    tool = f"{call['server_name']}/{call['tool_name']}"
    return Cell("GRANT", "red"), f"{tool}  refused ({grant['problem']}): {grant['detail']}"


def _kill_switch(event: Event, _facts: Facts) -> Told:
    switch = event["switch"]
    killed = switch["state"] == SwitchState.KILLED
    what = f"{switch['scope']} {switch.get('target', '')}".rstrip()
    reason = f": {switch['reason']}" if switch.get("reason") else ""
    text = f"{what} by {switch['by']}{' (hard)' if switch['hard'] else ''}{reason}"
    return (Cell("KILLED", "red") if killed else Cell("REVIVED", "green")), text


def _prompt(event: Event, _facts: Facts) -> Told:
    return Cell("PROMPT", "dim"), f"{event['prompt']['bytes']} bytes"


def _taint_changed(event: Event, _facts: Facts) -> Told:
    taint = event["taint"]
    server = taint.get("server_name")
    where = f"  {server}/{taint.get('tool_name', '')}" if server else ""
    typed = "sub taint set" if taint["by"] == TaintCause.COMMAND else taint["by"]
    by = taint.get("rule_id") or typed
    reason = f": {taint['reason']}" if taint.get("reason") else ""
    text = f"{taint['from']} -> {taint['to']} at call {taint['seq']}{where}  by {by}{reason}"
    return Cell("TAINT", "yellow"), text


def _intent_released(event: Event, _facts: Facts) -> Told:
    intent = event["intent"]
    what = f"{intent['intent_kind']} {intent['intent_hash'][:12]}"
    return Cell("RELEASED", "yellow"), f"{what} by {intent['by']}: {intent['reason']}"


def _agent_changed(event: Event, _facts: Facts) -> Told:
    agent = event["agent"]
    revoked = agent["state"] == AgentState.REVOKED
    word = Cell("REVOKED", "red") if revoked else Cell("AGENT", "yellow")
    reason = f": {agent['reason']}" if agent.get("reason") else ""
    trust = "" if revoked else f": {agent['trust_level']}, unattested {agent['unattested']},"
    return word, f"{agent['agent_id']}{trust} by {agent['by']}{reason}"


def _agent_resolved(event: Event, _facts: Facts) -> Told:
    agent = event["agent"]
    text = f"{agent['agent_id']} from call {event['seq'] + 1} on: {_trust(agent)}"
    return Cell("AGENT", "yellow"), text


def _trust(agent: dict[str, Any]) -> str:
    proof = agent["proof"]
    problem = f": {proof['problem']}" if proof.get("problem") else ""
    return f"{agent['trust_level']}, proof {proof['kind']}{problem}"


_SILENT = frozenset(
    [
        EventType.TOOL_CALL_START,
        EventType.HINT_ISSUED,
        EventType.BREAKER_TRIP,
        EventType.TOOLS_LISTED,
        EventType.AUDIT_RECORD,
    ]
)
"""Events without a line of their own: a decision tells of the same."""
_TELLERS: dict[str, Callable[[Event, Facts], Told]] = {
    EventType.TOOL_CALL_DECISION: _decision,
    EventType.CALL_ROUND: _round,
    EventType.PROMPT_SUBMITTED: _prompt,
    EventType.TOOL_CALL_END: _end,
    EventType.RUN_START: _run_start,
    EventType.RUN_END: _run_end,
    EventType.SHIM_HEALTH: _health,
    EventType.POLICY_LOADED: _policy,
    EventType.SECRET_INJECTION: _injection,
    EventType.APPROVAL_REQUESTED: _approval_requested,
    EventType.APPROVAL_DECIDED: _approval_decided,
    EventType.GRANT_REFUSED: _grant_refused,
    EventType.KILL_SWITCH: _kill_switch,
    EventType.TAINT_CHANGED: _taint_changed,
    EventType.INTENT_RELEASED: _intent_released,
    EventType.AGENT_CHANGED: _agent_changed,
    EventType.AGENT_RESOLVED: _agent_resolved,
}
