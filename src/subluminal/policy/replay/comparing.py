"""What a replayed call is told as: the change, what was, what would be, and on what it depends."""

from enum import StrEnum
from typing import Any, NamedTuple

from subluminal.contracts.vocabulary import Action
from subluminal.policy.replay.recorded import RecordedCall, Said

_ALLOW = Action.ALLOW


class Change(StrEnum):
    """How a call would have gone, against the record."""

    SAME = "same"
    NEWLY_BLOCKED = "newly_blocked"
    """it passed, and would be refused"""
    NEWLY_ALLOWED = "newly_allowed"
    """it was refused, and would pass"""
    CHANGED = "changed"
    """passed or refused as before, by another rule, for another reason or in another way"""
    UNDETERMINED = "undetermined"
    """the record does not hold what the policy would look at"""


class Doubt(StrEnum):
    """Why a call is undetermined."""

    ARGUMENTS = "arguments"
    """they are not on record where a rule looks: redacted, cut, or not recorded"""
    COUNTERS = "counters"
    """a counter depends on a call that is undetermined or not on record"""
    POLICY = "policy"
    """another layer of that run is not on record, and might have refused"""


class Replayed(NamedTuple):
    """One call, decided again."""

    call: RecordedCall
    change: Change
    now: Said | None
    """None where it is undetermined"""
    depends_on: str | None
    """call_id of the run's first divergence: after it the agent would have acted otherwise"""
    doubt: Doubt | None = None
    risk_classes: frozenset[str] = frozenset()

    def plain(self) -> dict[str, Any]:
        """What `--json` prints."""
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
    """Compares what was said with what would be said. Passing or not comes first."""
    if now is None:
        return Change.UNDETERMINED
    if was == now:
        return Change.SAME
    if (was.action is _ALLOW) is (now.action is _ALLOW):
        return Change.CHANGED
    return Change.NEWLY_BLOCKED if was.action is _ALLOW else Change.NEWLY_ALLOWED


def diverges(was: Said, now: Said | None) -> bool:
    """Whether the agent would have been told something else; a call that passes tells nothing."""
    if now is None or was == now:
        return False
    return not (was.action is _ALLOW and now.action is _ALLOW)
