"""What a pack said about a call: for one line of `sub tail`, and in full for `sub show`."""

from collections import Counter
from typing import Any

from subluminal.cli.screens import cells
from subluminal.cli.screens.cells import Cell
from subluminal.cli.screens.lists import Row
from subluminal.cli.screens.tables import Screen
from subluminal.contracts.vocabulary import EventType, Transport
from subluminal.counts import counted

_EXECUTE = "EXECUTE"
_REWRITE = "REWRITE"
_EXECUTIONS = {
    "claimed": "it runs now",
    "done": "it ran to its end; a retry is refused",
    "unknown": "it failed or died half way; a person must say what happened",
}


def pack_said(kernel: dict[str, Any]) -> str:
    """Returns the decision of a pack in a few words, such as `REFUSE too.much`."""
    kind = cells.kernel_decision(kernel.get("kind") or kernel.get("decision_kind"))
    code = f" {kernel['refusal_code']}" if kernel.get("refusal_code") else ""
    return f"{kind}{code}{' (only compared)' if kernel.get('divergence') else ''}"


def is_refused_by_pack(kernel: dict[str, Any], rule_id: str | None) -> bool:
    """Whether the refusal of a call is the pack's own, and no rule's."""
    kind = kernel.get("kind") or kernel.get("decision_kind")
    return rule_id is None and kind != _EXECUTE and not kernel.get("divergence")


def print_kernel(screen: Screen, detail: dict[str, Any]) -> None:
    """Prints what a pack decided about a call, and what became of it."""
    call = detail["call"]
    kernel = call["kernel"]
    if kernel is None:
        return
    audits = [one["audit"] for one in detail["events"] if one["type"] == EventType.AUDIT_RECORD]
    decision = _decision(detail["events"])
    code = f"{kernel['refusal_code']}, " if kernel["refusal_code"] else ""
    guard = f", guard {kernel['guard']}" if kernel["guard"] else ""
    where = f"{code}{kernel['pack']}@{kernel['version']} {kernel['intent_kind']}{guard}"
    screen.field("kernel", cells.kernel_decision(kernel["decision_kind"]), where)
    said = (decision.get("kernel") or {}).get("basis") or []
    if said:
        screen.field("basis", Cell(", ".join(map(str, said))))
    by = f", by {kernel['principal']}" if kernel["principal"] else ""
    nonce = f", nonce {kernel['nonce']}" if kernel["nonce"] else ""
    digest = Cell(cells.short_hash(kernel["intent_hash"]))
    screen.field("intent", digest, f"{kernel['taint']}{by}{nonce}")
    if kernel["divergence"]:
        told = "only compared: the agent's own code decided"
        screen.field("divergence", Cell(kernel["divergence"]), told)
    if decision.get("defer"):
        wait = cells.duration(decision["defer"]["timeout_ms"])
        screen.field("defer", Cell(decision["defer"]["signal"]), f"for at most {wait}")
    first = audits[0].get("decision") or {} if audits else {}
    if first.get("kind") == _REWRITE:
        screen.field("rewritten", Cell(first.get("reason")), "before it was decided again")
    _execution(screen, detail, kernel)
    if audits or call["transport"] == Transport.IN_PROCESS:
        screen.field("audit", *_audits(audits))


def _decision(events: list[dict[str, Any]]) -> dict[str, Any]:
    """Returns the last decision with what a pack said."""
    found = [event["decision"] for event in events if "decision" in event]
    return next((one for one in reversed(found) if one.get("kernel")), {})


def _execution(screen: Screen, detail: dict[str, Any], kernel: Row) -> None:
    problem, status = detail.get("execution_problem"), detail["execution"]
    if problem:
        screen.field("execution", Cell("not known", "red"), problem)
    elif status:
        more = _EXECUTIONS.get(status, "")
        if status == "unknown":
            digest = cells.short_hash(kernel["intent_hash"])
            more += f": `sub intent release {digest} --reason …`"
        screen.field("execution", cells.execution(status), more)


def _audits(audits: list[dict[str, Any]]) -> tuple[Cell, str]:
    if not audits:
        return Cell(), "no audit record was kept"
    masked = sum(bool((audit.get("metadata") or {}).get("redacted")) for audit in audits)
    return Cell(counted(len(audits), "record")), f"({masked} redacted)" if masked else ""


def count_decisions(calls: list[Row]) -> str:
    """Returns how many calls of a run got which decision of a pack; empty if none did."""
    kinds = Counter(call["kernel"]["decision_kind"] for call in calls if call["kernel"])
    told = ", ".join(f"{count} {cells.kernel_decision(kind)}" for kind, count in kinds.items())
    return f"{kinds.total()}: {told}" if kinds else ""
