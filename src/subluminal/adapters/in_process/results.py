"""What became of an intent, in the words of the door: its result, its error, what was changed."""

import inspect
from typing import Any

import msgspec
from msgspec import Struct

from subluminal.adapters.in_process.attempts import Judged
from subluminal.contracts.decision import Hint
from subluminal.contracts.vocabulary import Action
from subluminal.errors import SubluminalError
from subluminal.kernel.audit import AuditRecord
from subluminal.kernel.decisions import Decision as Verdict
from subluminal.kernel.decisions import DecisionKind
from subluminal.kernel.executions import LedgerEntry
from subluminal.kernel.refusals import told


class Done(Struct, frozen=True, kw_only=True):
    """What became of an intent."""

    action: Action
    """what the pack and the policies together say, as every door says it"""
    reason_code: str
    """code of the reason"""
    message: str
    """words for the model: why it was refused, or what the pack changed; empty if it ran as is"""
    hint: Hint | None
    """what the agent can do instead, with suggested arguments if there are any"""
    decision: Verdict | None
    """the pack's own decision; None if it was not asked"""
    record: AuditRecord | None
    """the kernel's record of that decision"""
    ledger_hit: LedgerEntry | None
    """the execution that had this intent before"""
    result: Any
    """what the handler returned"""
    call_id: str
    """id of the call in the record"""
    executed: bool
    """whether the handler ran"""


def changes_of(judged: Judged | None, executed: bool) -> str:
    """Returns what the pack changed about an intent that may run; empty if nothing."""
    first = judged.records[0].decision if judged is not None and judged.records else {}
    if first.get("kind") != DecisionKind.REWRITE:
        return ""
    how = "Executed" if executed else "To be executed"
    return f"{how} with changed arguments: {str(first.get('reason')).rstrip('.')}."


def finished(result: Any) -> Any:
    """Returns a result. Raises if it is a coroutine or another thing to await: nobody would."""
    if not inspect.isawaitable(result):
        return result
    if inspect.iscoroutine(result):
        result.close()
    raise SubluminalError(
        "the handler returned something to await, such as a coroutine, so it did not end",
        hint="give a function that runs it to its end",
    )


def said_by(error: BaseException) -> str:
    """Returns the name of an error and its text."""
    text = told(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def shown(result: Any) -> bytes:
    """Returns a result as JSON for its preview; of one that has no such form, its type."""
    try:
        return msgspec.json.encode(result)
    except Exception:  # noqa: BLE001 - it has run, whatever its result is
        return msgspec.json.encode(f"a value of type {type(result).__name__}")
