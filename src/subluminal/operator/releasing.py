"""Intents as a service: release one whose execution ended in a way that nobody recorded."""

import os
import re
from typing import Any, NamedTuple

from subluminal.adapters.in_process.executions import KeptRow, existing_executions
from subluminal.config.loading import load_settings
from subluminal.config.places import Places
from subluminal.contracts.control import Released
from subluminal.contracts.events import IntentReleased
from subluminal.core.controls.acts import OPERATOR_RUN, identity_in, record_act
from subluminal.core.runs.names import journal_dir
from subluminal.errors import SubluminalError, UsageError
from subluminal.kernel.executions import ExecutionStatus
from subluminal.trust.identity.machine import local_user

_HASH = re.compile("[0-9a-f]{8,64}")
_LIST = "`sub query intents --status unknown` lists what can be released"


class ReleasedIntent(NamedTuple):
    """An intent that may execute again."""

    row: KeptRow
    """the execution as it was"""
    act: Released
    is_recorded: bool
    """whether the act is in a journal"""

    def plain(self) -> dict[str, Any]:
        """Returns what `--json` prints."""
        entry, holder = self.row
        return {
            "intent_hash": entry.intent_hash,
            "intent_kind": entry.kind,
            "session_id": entry.session_id,
            "claimed_at": entry.at,
            "status": entry.status.value,
            "holder": {"host": holder.host, "pid": holder.pid},
            "by": self.act.by,
            "reason": self.act.reason,
        }


def release_intent(places: Places, prefix: str, reason: str) -> ReleasedIntent:
    """Releases the one intent whose hash begins so, if its execution is `unknown`.

    Raises SubluminalError.
    """
    if not _HASH.fullmatch(prefix):
        raise UsageError(
            f"`{prefix}` is not the hash of an intent",
            hint="write at least the first 8 of its 64 hexadecimal digits, in lower case",
        )
    if not reason.strip():
        raise UsageError("the reason is empty", hint="say how you know that it may run again")
    row = _freed(places, prefix)
    entry = row.entry
    act = Released(
        intent_hash=entry.intent_hash,
        intent_kind=entry.kind,
        session_id=entry.session_id,
        claimed_at=entry.at,
        by=local_user(),
        reason=reason,
    )
    run_id = entry.session_id
    if not run_id or not os.path.isdir(journal_dir(places, run_id)):
        run_id = OPERATOR_RUN
    done = record_act(places, run_id, identity_in(places, run_id), IntentReleased, intent=act)
    return ReleasedIntent(row, act, done)


def _freed(places: Places, prefix: str) -> KeptRow:
    """Removes the execution from the ledger; returns it as it was."""
    setting = load_settings(places.settings).kernel.executions
    if setting == "off":
        raise SubluminalError("no executions are kept: `[kernel] executions` is `off`")
    ledger = existing_executions(setting, places)
    if ledger is None:
        raise _unknown(prefix)
    try:
        found = ledger.find(prefix, 2)
        if len(found) > 1:
            raise SubluminalError(
                f"`{prefix}` matches more than one intent", hint="give more of the hash"
            )
        row = ledger.free(found[0].entry.intent_hash) if found else None
    finally:
        ledger.close()
    if row is None:
        raise _unknown(prefix)
    _refuse_unless_unknown(row)
    return row


def _unknown(prefix: str) -> SubluminalError:
    return SubluminalError(f"there is no execution of an intent `{prefix}`", hint=_LIST)


def _refuse_unless_unknown(row: KeptRow) -> None:
    entry = row.entry
    if entry.status is ExecutionStatus.DONE:
        raise SubluminalError(
            f"intent `{entry.intent_hash}` is done: it executed, claimed at {entry.at}",
            hint="to execute it once more, propose it with a new nonce",
        )
    if entry.status is ExecutionStatus.CLAIMED:
        raise SubluminalError(
            f"intent `{entry.intent_hash}` is executing: {row.holder} claimed it at {entry.at}",
            hint="wait for that process, or end it first",
        )
