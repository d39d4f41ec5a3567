"""Whether a person has already approved an intent: a look at the grants when a pack asks.

This is only a look. The grant is used, and its uses are counted, when the call is decided under the
run's lock (`core.controls.approvals`). If it is gone by then, the call is refused.
"""

import os
import time
from typing import NamedTuple

from subluminal.config.places import Places
from subluminal.contracts.vocabulary import Layer
from subluminal.core.controls.approval_files import ApprovalFiles, Slot
from subluminal.core.controls.sealed import KeyUnusable, SealBroken, seal_key
from subluminal.core.gates import approvals_folder


class Confirmed(NamedTuple):
    """A person's yes to a call."""

    at: str
    """when the call was refused, and the person asked"""
    token: str
    """id of the grant"""
    question: str
    """what the person was asked, with secrets masked"""


def find_confirmation(
    places: Places, run_id: str, server_name: str, intent_kind: str, args_hash: str
) -> Confirmed | None:
    """Returns the person's yes to exactly this call; None if none is in force."""
    if not os.path.isdir(approvals_folder(places.state, run_id)):
        return None  # nobody was ever asked
    slot = Slot(server_name, intent_kind, args_hash, Layer.PACK, intent_kind)
    try:
        files = ApprovalFiles.of_run(places.state, run_id, seal_key(places.state))
        found = files.standing(slot.name, time.time_ns() // 1_000_000)
    except (SealBroken, KeyUnusable, OSError):
        return None  # deciding the call finds the same problem, and records it
    if found is None or found.answer is None or found.state != "approved":
        return None
    asked = found.request.approval
    return Confirmed(asked.requested_at, str(found.answer.given.grant_id), asked.message)
