"""Compares a recorded call with its replay: what was decided, what would be, what changes."""

from enum import StrEnum
from typing import Any, NamedTuple

from subluminal.contracts.vocabulary import Action
from subluminal.policy.replay.recorded import RecordedCall, Said

_ALLOW = Action.ALLOW


class Change(StrEnum):
    """How the replayed decision about a call differs from the recorded one."""

    SAME = "same"
    """the same decision"""
    NEWLY_BLOCKED = "newly_blocked"
    """the call passed, and would be refused"""
    NEWLY_ALLOWED = "newly_allowed"
    """the call was refused, and would pass"""
    CHANGED = "changed"
    """the call passes or is refused as before, but by another rule, reason or action"""
    UNDETERMINED = "undetermined"
    """the record does not contain what the policy would test"""


class Doubt(StrEnum):
    """Why a call is undetermined."""

    ARGUMENTS = "arguments"
    """arguments or targets that a rule tests are not in the record: redacted, cut, not recorded"""
    COUNTERS = "counters"
    """a counter depends on a call that is undetermined or not in the record"""
    POLICY = "policy"
    """the policy of another layer is not in the record, and might have refused the call"""
    PACK = "pack"
    """the pack that a rule asks is not installed here, or not with that fingerprint"""
    AGENT = "agent"
    """facts about the agent that a rule asks for are not in the record"""
    GIVEN = "given"
    """what the program said of the call, and a rule tests, is masked or cut in the record"""


class Replayed(NamedTuple):
    """One call that was decided again."""

    call: RecordedCall
    """the call as recorded"""
    change: Change
    """how the decision differs"""
    now: Said | None
    """the replayed decision; None if undetermined"""
    depends_on: str | None
    """call_id of the first call of the run whose answer would have differed; from then on the
    agent might have acted differently"""
    doubt: Doubt | None = None
    """why the call is undetermined"""
    risk_classes: frozenset[str] = frozenset()
    """risk classes in the replay"""

    def plain(self) -> dict[str, Any]:
        """Returns what `--json` prints."""
        call = self.call
        row = {
            "run_id": call.run_id,
            "call_id": call.call_id,
            "seq": call.seq,
            "server_name": call.server_name,
            "tool_name": call.tool_name,
            "change": self.change.value,
            "was": call.decision.said.plain(),
            "now": None if self.now is None else self.now.plain(),
            "depends_on": self.depends_on,
        }
        return row if self.doubt is None else {**row, "doubt": self.doubt.value}


def change_of(was: Said, now: Said | None) -> Change:
    """Compares the recorded decision with the replayed one."""
    if now is None:
        return Change.UNDETERMINED
    if was == now:
        return Change.SAME
    if (was.action is _ALLOW) is (now.action is _ALLOW):
        return Change.CHANGED
    return Change.NEWLY_BLOCKED if was.action is _ALLOW else Change.NEWLY_ALLOWED


def diverges(was: Said, now: Said | None) -> bool:
    """Whether the agent would have got another answer. A call that passes shows no decision."""
    if now is None or was == now:
        return False
    return not (was.action is _ALLOW and now.action is _ALLOW)
