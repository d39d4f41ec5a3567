"""The summary of a run, made from its events alone: calls, refusals, outcomes and the verdict."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import msgspec

from subluminal.contracts.codec import NO_EVENT, decode_event
from subluminal.contracts.vocabulary import (
    Action,
    ErrorClass,
    EventType,
    Outcome,
    RunStatus,
    Status,
)
from subluminal.counts import counted
from subluminal.export.chain import ChainRecord
from subluminal.export.policies import RuleCounts, RuleRow, UsedPolicies
from subluminal.export.violations import (
    NO_DEMANDS,
    SILENT_STATE,
    Demands,
    SilentServer,
    Violation,
    silent_in,
    violation_in,
)
from subluminal.policy.outcomes import outcome_of
from subluminal.timestamps import parse_rfc3339

Event = dict[str, Any]

MAX_VIOLATIONS = 5_000
"""Most violations that are listed one by one. All are counted."""
MAX_SILENT = 200
"""Most servers that are listed as not seen."""
UNKNOWN = "UNKNOWN"
"""Status of a call that was forwarded and whose outcome is unknown: its shim was killed."""

_QUANTILES = (("p50", 50), ("p95", 95), ("p99", 99))
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)", re.ASCII)
_HEAD = ("run_id", "agent_id", "client", "env", "principal", "workload")
_ACTIONS = [action.value for action in Action]
_OUTCOMES = [outcome.value for outcome in Outcome]
_STATUSES = [*(status.value for status in Status), UNKNOWN]


class Summary:
    """Counts the events of one run, which must come in the order of `ordering`."""

    def __init__(self, demands: Demands | None = None) -> None:
        """`demands` replace those in the run_start event, which the agent could have written."""
        self.policies = UsedPolicies()
        self.chain = ChainRecord()
        self.violations: list[Violation] = []
        self.silent: list[SilentServer] = []
        self.demands = demands or NO_DEMANDS
        self._has_demands = demands is not None
        self._rules = RuleCounts()
        self._head: dict[str, Any] = {}
        self._start: dict[str, Any] = {}
        self._end: dict[str, Any] = {}
        self._events = 0
        self._lost = 0
        self._damaged = 0
        self._killed = 0
        self._violations = 0
        self._failing = 0
        self._decisions: Counter[str] = Counter()
        self._outcomes: Counter[str] = Counter()
        self._statuses: Counter[str] = Counter()
        self._reasons: Counter[str] = Counter()
        self._servers: defaultdict[str, Counter[str]] = defaultdict(_nothing)
        self._tools: defaultdict[str, Counter[str]] = defaultdict(_nothing)
        self._latencies = _Latencies()
        self._tool_latencies: dict[str, _Latencies] = {}
        self._seqs: dict[str, int] = {}
        self._open: dict[str, _Open] = {}

    def add(self, line: bytes) -> None:
        """Adds one event."""
        self._events += 1
        try:
            self.chain.add(line)
            if decode_event(line) is None:
                return  # a newer version wrote it
            event = msgspec.json.decode(line)
        except NO_EVENT:
            self._damaged += 1
            return
        self._count(event, line)

    def _count(self, event: Event, line: bytes) -> None:
        if not self._head:
            self._head = {name: event[name] for name in _HEAD if name in event}
        match event["type"]:
            case EventType.RUN_START:
                self._start = event["run"]
                if not self._has_demands:
                    self.demands = Demands.recorded(self._start.get("meta") or {})
            case EventType.RUN_END:
                # The last run_end counts (shared-runs), whichever shim wrote it.
                self._end = max(event["run"], self._end, key=lambda end: end.get("ended_at", ""))
            case EventType.TOOL_CALL_START:
                self._seqs[event["call"]["call_id"]] = event["call"]["seq"]
            case EventType.TOOL_CALL_DECISION | EventType.CALL_ROUND:
                self._decide(event)
            case EventType.TOOL_CALL_END:
                self._finish(event)
            case EventType.POLICY_LOADED:
                self.policies.add(line)
            case EventType.SHIM_HEALTH:
                self._note(event["health"])

    def _note(self, health: Event) -> None:
        self._lost += health.get("events_lost", 0)
        self._killed += health["state"] == "killed"
        if health["state"] == SILENT_STATE and len(self.silent) < MAX_SILENT:
            self.silent.append(silent_in(health, self.demands))

    def _decide(self, event: Event) -> None:
        call, decision = event["call"], event["decision"]
        if event["type"] == EventType.CALL_ROUND:
            self._decide_round(event)
            return
        seq = self._seqs.pop(call["call_id"], 0)
        action, reason_code = decision["action"], decision["explain"]["reason_code"]
        outcome = outcome_of(action, reason_code, has_grant="grant" in decision)
        self._decisions[action] += 1
        self._count_outcome(outcome)
        self._reasons[reason_code] += 1
        for counts in self._counts_of(call):
            counts["calls"] += 1
            counts["throttled"] += action == Action.THROTTLE
            counts["refused"] += action not in (Action.ALLOW, Action.THROTTLE)
        if action == Action.ALLOW:
            self._open[call["call_id"]] = _Open(_tool(call), seq, reason_code, outcome)
        self._judge(event, seq)

    def _decide_round(self, event: Event) -> None:
        """Counts a call as refused if a further round of it was refused, and not as allowed."""
        call, decision = event["call"], event["decision"]
        action = decision["action"]
        was = self._open.get(call["call_id"])
        if action == Action.ALLOW or was is None:
            return
        del self._open[call["call_id"]]
        reason_code = decision["explain"]["reason_code"]
        self._decisions[Action.ALLOW] -= 1
        self._decisions[action] += 1
        self._count_outcome(was.outcome, -1)
        self._count_outcome(outcome_of(action, reason_code))
        self._reasons[was.reason_code] -= 1
        self._reasons[reason_code] += 1
        for counts in self._counts_of(call):
            counts["throttled"] += action == Action.THROTTLE
            counts["refused"] += action != Action.THROTTLE
        self._judge(event, was.seq)

    def _count_outcome(self, outcome: Outcome | None, number: int = 1) -> None:
        if outcome is not None:
            self._outcomes[outcome] += number

    def _judge(self, event: Event, seq: int) -> None:
        decision = event["decision"]
        violation = violation_in(event, seq, self.demands)
        self._rules.add(decision, violation)
        if violation is not None:
            self._violations += 1
            self._failing += violation.fails
            if len(self.violations) < MAX_VIOLATIONS:
                self.violations.append(violation)

    def _finish(self, event: Event) -> None:
        call = event["call"]
        was = self._open.pop(call["call_id"], None)
        if was is None:
            return
        status, tool = event["status"], was.tool
        for counts in self._counts_of(call):
            counts["errors"] += status != Status.OK
        if status == Status.ERROR and event.get("error", {}).get("class") == ErrorClass.UNKNOWN:
            self._statuses[UNKNOWN] += 1
            return
        self._statuses[status] += 1
        self._latencies.add(event["latency_ms"])
        self._tool_latencies.setdefault(tool, _Latencies()).add(event["latency_ms"])

    def _counts_of(self, call: Event) -> tuple[Counter[str], Counter[str]]:
        return self._servers[call["server_name"]], self._tools[_tool(call)]

    def as_dict(self) -> dict[str, Any]:
        """Returns the summary. The order of lists and objects does not depend on time."""
        end, start, totals = self._end, self._start, self._end.get("summary")
        open_calls = Counter({UNKNOWN: len(self._open)}) if self._open else Counter[str]()
        return {
            **self._head,
            "status": end.get("status"),
            "reason": end.get("reason"),
            "verdict": self.verdict(),
            "started_at": _moment(start.get("started_at")),
            "ended_at": _moment(end.get("ended_at")),
            "mode": start.get("mode"),
            "policy": start.get("policy"),
            "policies": [policy.as_dict() for policy in self.policies.all()],
            "events": self._events,
            "events_lost": self._lost,
            "totals": totals,
            "decisions": _in_order(self._decisions, _ACTIONS),
            "outcomes": _in_order(self._outcomes, _OUTCOMES),
            "statuses": _in_order(self._statuses + open_calls, _STATUSES),
            "reasons": dict(sorted((+self._reasons).items())),
            "rules": [msgspec.to_builtins(row) for row in self.rules()],
            "servers": {name: dict(found) for name, found in sorted(self._servers.items())},
            "tools": {
                name: {
                    **found,
                    "latency_ms": self._tool_latencies.get(name, _Latencies()).summary(),
                }
                for name, found in sorted(self._tools.items())
            },
            "latency_ms": self._latencies.summary(),
            "silent_servers": [msgspec.to_builtins(each) for each in self.silent],
            "violations_total": self._violations,
            "violations": [msgspec.to_builtins(each) for each in self.violations],
        }

    def rules(self) -> list[RuleRow]:
        """Returns what each rule did, in the order of the policies."""
        return self._rules.rows(self.policies)

    def verdict(self) -> dict[str, Any]:
        """Returns whether the run met its demands, and the reasons if it did not."""
        because = list(self._broken())
        return {**self.demands.meta(), "holds": not because, "because": because}

    def _broken(self) -> Iterable[str]:
        if self._failing:
            yield counted(self._failing, "violation")
        if self.demands.strict is None:
            return
        if self._end.get("status") == RunStatus.TERMINATED:
            yield "the run was terminated"
        for file, problem in sorted(self.policies.problems):
            yield f"the policy `{file}` could not be loaded: {problem}"
        if any(each.fails and each.server_name is None for each in self.silent):
            yield "it is not known which servers ran"
        unseen = sum(each.fails and each.server_name is not None for each in self.silent)
        if unseen:
            yield f"{counted(unseen, 'server')} not seen"
        yield from self._gaps()

    def _gaps(self) -> Iterable[str]:
        """Yields gaps in the record, which prevent it from proving that the policy held."""
        if not self._start or not self._end:
            yield "the record lacks its run_start or run_end event"
        if self._lost:
            yield f"{counted(self._lost, 'event')} could not be recorded"
        if self._damaged:
            yield f"{counted(self._damaged, 'line')} of the record cannot be read"
        for shim_id in sorted(self.chain.broken):
            yield f"the record of shim `{shim_id}` was changed"
        # A shim that was killed may have counted a call that it had no time to record.
        asked = self._end.get("summary", {}).get("calls_total", 0) - self._killed
        missing = asked - sum(self._decisions.values())
        if missing > 0:
            yield f"missing from the record: {counted(missing, 'call')}"


def summarise(lines: Iterable[bytes], demands: Demands | None = None) -> Summary:
    """Counts the events of one run."""
    summary = Summary(demands)
    for line in lines:
        summary.add(line)
    return summary


def _moment(text: str | None) -> str | None:
    """Returns a time if it is valid RFC 3339; None for anything else an event may contain."""
    if text is None or not _TIME.fullmatch(text):
        return None
    try:
        parse_rfc3339(text)
    except ValueError:
        return None
    return text


def _nothing() -> Counter[str]:
    return Counter({"calls": 0, "refused": 0, "throttled": 0, "errors": 0})


def _tool(call: Event) -> str:
    return f"{call['server_name']}/{call['tool_name']}"


def _in_order(counts: Counter[str], names: list[str]) -> dict[str, int]:
    known = {name: counts[name] for name in names if counts[name]}
    return known | dict(sorted((name, n) for name, n in counts.items() if name not in names))


class _Open(NamedTuple):
    """A call that was forwarded and has not ended."""

    tool: str
    seq: int
    reason_code: str
    outcome: Outcome | None


class _Latencies:
    """Latencies, counted by millisecond so that a million calls fit into memory."""

    def __init__(self) -> None:
        self._counts: Counter[int] = Counter()

    def add(self, latency_ms: int) -> None:
        self._counts[latency_ms] += 1

    def summary(self) -> dict[str, int]:
        """Returns count, quantiles by nearest rank, and maximum; only the count if it is 0."""
        total = self._counts.total()
        if not total:
            return {"count": 0}
        found = {"count": total}
        for name, percent in _QUANTILES:
            found[name] = _at(self._counts, -(-total * percent // 100))
        return found | {"max": max(self._counts)}


def _at(counts: Mapping[int, int], rank: int) -> int:
    passed = 0
    for latency_ms in sorted(counts):
        passed += counts[latency_ms]
        if passed >= rank:
            break
    return latency_ms
