"""The cells of tables: decisions, statuses, times, durations, ids and sizes as short text."""

from typing import Any

from subluminal.cli.output import shown
from subluminal.contracts.vocabulary import Action, ErrorClass, RunStatus, Severity, Status, Taint
from subluminal.ledger.filter.fields import RUNNING, UNKNOWN
from subluminal.operator import amounts
from subluminal.timestamps import parse_rfc3339

NOTHING = "-"

_DECISIONS: dict[str, tuple[str, str]] = {
    Action.ALLOW: ("ALLOW", "green"),
    Action.THROTTLE: ("THROTTLE", "yellow"),
    Action.REJECT_WITH_HINT: ("HINT", "cyan"),
    Action.BLOCK: ("BLOCK", "red"),
    Action.TERMINATE_RUN: ("TERMINATE", "magenta"),
}
_STATUS_COLOURS: dict[str, str] = {
    Status.ERROR: "red",
    Status.TIMEOUT: "red",
    Status.CANCELLED: "yellow",
    UNKNOWN: "magenta",
    RunStatus.FAILED: "red",
    RunStatus.TERMINATED: "magenta",
    RunStatus.SUCCEEDED: "green",
    RUNNING: "blue",
}
_SEVERITY_COLOURS: dict[str, str] = {Severity.WARN: "yellow", Severity.CRITICAL: "red"}
_KERNEL_DECISIONS = {
    "EXECUTE": ("EXECUTE", "green"),
    "REFUSE": ("REFUSE", "red"),
    "ESCALATE": ("ESCALATE", "cyan"),
    "REQUEST_CONFIRMATION": ("CONFIRM", "cyan"),
    "DEFER": ("DEFER", "yellow"),
    "REWRITE": ("REWRITE", "cyan"),
}
_EXECUTION_COLOURS = {"claimed": "blue", "done": "green", "unknown": "magenta"}
_AGES = ((604_800_000, "w"), (86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1_000, "s"))


class Cell(str):
    """The text of one cell, safe to print, and its colour on a terminal."""

    colour: str

    def __new__(cls, text: object = NOTHING, colour: str = "") -> "Cell":
        made = super().__new__(cls, shown(str(text)))
        made.colour = colour
        return made


def decision(action: str | None, would_be: str | None = None) -> Cell:
    """Formats a decision as one word. What observe mode would have done gets a question mark."""
    if would_be:
        word, colour = _DECISIONS.get(would_be, (would_be, ""))
        return Cell(f"{word}?", colour)
    if not action:
        return Cell()
    word, colour = _DECISIONS.get(action, (action, ""))
    return Cell(word, colour)


def status(word: str | None) -> Cell:
    """Formats the status of a call or a run."""
    return Cell(word or NOTHING, _STATUS_COLOURS.get(word or "", ""))


def outcome(word: str | None, error_class: str | None) -> Cell:
    """Formats the status of a call; UNKNOWN if nobody knows its outcome, as the filter says."""
    return status(UNKNOWN if is_lost(word, error_class) else word)


def took(word: str | None, error_class: str | None, latency_ms: int | None) -> Cell:
    """Formats how long a call took; nobody knows that of a lost one."""
    return Cell() if is_lost(word, error_class) else duration(latency_ms)


def is_lost(word: str | None, error_class: str | None) -> bool:
    """Whether the outcome of a call is unknown, because its shim was killed."""
    return word == Status.ERROR and error_class == ErrorClass.UNKNOWN


def why(summary: dict[str, Any] | None) -> str:
    """Returns why a run ended as it did, or which server of it failed; empty if all went well."""
    told = summary or {}
    if told.get("reason"):
        return str(told["reason"])
    failure = told.get("server_failure") or {}
    said = f": {failure['stderr']}" if failure.get("stderr") else ""
    return f"{failure['detail']}{said}" if failure.get("detail") else ""


def decided_by(call: dict[str, Any]) -> str | None:
    """Returns the rule that decided a call; without a rule, why the call was refused."""
    is_refused = call["decision"] not in (None, Action.ALLOW)
    rule: str | None = call["rule_id"] or (call["reason_code"] if is_refused else None)
    return rule


def severity(word: str | None) -> Cell:
    """Formats a severity."""
    return Cell(word or NOTHING, _SEVERITY_COLOURS.get(word or "", ""))


def kernel_decision(kind: str | None) -> Cell:
    """Formats the decision of a pack as one short word."""
    word, colour = _KERNEL_DECISIONS.get(kind or "", (kind or NOTHING, ""))
    return Cell(word, colour)


def execution(status: str | None) -> Cell:
    """Formats how far an execution is."""
    return Cell(status or NOTHING, _EXECUTION_COLOURS.get(status or "", ""))


def taint(level: str | None) -> Cell:
    """Formats a level."""
    return Cell(level or NOTHING, "yellow" if level == Taint.UNTRUSTED else "")


def short_hash(digest: str) -> str:
    """Shortens a hash to its beginning, which is how commands take it."""
    return digest[:12]


def moment(ts: str | None, now_ms: int | None) -> Cell:
    """Formats a time: as an age on a terminal, else as it was recorded."""
    if not ts:
        return Cell()
    if now_ms is None:
        return Cell(ts)
    return Cell(age(now_ms - parse_rfc3339(ts)), "dim")


def age(ms: int) -> str:
    """Formats an age in its largest unit."""
    for size, unit in _AGES:
        if ms >= size:
            return f"{ms // size}{unit}"
    return "now"


def duration(ms: int | None) -> Cell:
    """Formats a duration in at most five characters, up to a day."""
    if ms is None:
        return Cell()
    if ms < 1_000:
        return Cell(f"{ms}ms")
    if ms < 60_000:
        return Cell(f"{ms / 1_000:.1f}s")
    minutes, seconds = divmod(ms // 1_000, 60)
    if minutes < 60:
        return Cell(f"{minutes}m{seconds:02}")
    return Cell(f"{minutes // 60}h{minutes % 60:02}")


def size(count: int | None) -> str:
    """Formats a number of bytes."""
    return NOTHING if count is None else amounts.size(count)


def short_id(name: str) -> str:
    """Shortens an id to its end, which `sub show` accepts. Names that people chose stay whole."""
    return name if len(name) <= 12 else name[-8:]
