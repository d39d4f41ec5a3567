"""What a refused call raises. The text is the sentence that a shim would tell the model."""

import copyreg
from typing import Any

from subluminal.config.places import Places
from subluminal.contracts.call import ToolCall
from subluminal.contracts.decision import Decision
from subluminal.contracts.vocabulary import Action, Outcome
from subluminal.core.controls.approvals import pending
from subluminal.core.refusal_text import message_of
from subluminal.core.ruling import Ruling
from subluminal.policy.outcomes import outcome_of

_NAME = "subluminal"
"""Where programs import these from: tracebacks name them so."""


class Refused(Exception):
    """A call was refused, and did not run."""

    __module__ = _NAME

    def __init__(
        self,
        message: str,
        decision: Decision,
        *,
        call_id: str,
        run_id: str,
        approval_id: str | None = None,
        call: ToolCall | None = None,
    ) -> None:
        super().__init__(message)
        self.decision = decision
        self.call = call
        """the call that was refused, with its arguments"""
        self.call_id = call_id
        self.run_id = run_id
        self.approval_id = approval_id
        """the pending approval, which `sub approve` takes; None if nobody was asked"""

    def __reduce__(self) -> tuple[Any, ...]:
        """Pools of processes pickle what a function raises; one that cannot be read breaks them."""
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]

    @property
    def rule_id(self) -> str | None:
        """The rule that decided; None if no rule did."""
        return self.decision.rule_id

    @property
    def reason_code(self) -> str:
        """The code of the reason."""
        return self.decision.reason_code

    @property
    def hint(self) -> str | None:
        """What the agent can do instead, in words."""
        return None if self.decision.hint is None else self.decision.hint.hint_text

    @property
    def suggested_args(self) -> dict[str, Any] | None:
        """Arguments with which the call would pass."""
        return None if self.decision.hint is None else self.decision.hint.suggested_args

    @property
    def backoff_ms(self) -> int | None:
        """How long to wait before a retry, in milliseconds."""
        return self.decision.backoff_ms

    @property
    def outcome(self) -> Outcome:
        """The decision in Agent-SPM's words."""
        found = outcome_of(self.decision.action, self.decision.reason_code)
        assert found is not None  # every action of this version has one
        return found


class Blocked(Refused):
    """The call is forbidden."""

    __module__ = _NAME


class Throttled(Refused):
    """The call came too soon: `backoff_ms` says when to retry."""

    __module__ = _NAME


class Rejected(Refused):
    """The call is refused as it is; `hint` says what would pass."""

    __module__ = _NAME


class RunTerminated(Refused):
    """The run is over: every further call of it is refused."""

    __module__ = _NAME


_TYPES: dict[Action, type[Refused]] = {
    Action.BLOCK: Blocked,
    Action.THROTTLE: Throttled,
    Action.REJECT_WITH_HINT: Rejected,
    Action.TERMINATE_RUN: RunTerminated,
}


def refusal_of(ruling: Ruling, places: Places) -> Refused:
    """Returns what to raise for a call that was refused."""
    decision = ruling.decision
    return _TYPES[decision.action](
        message_of(decision, ruling.call.args),
        decision,
        call_id=ruling.call_id,
        run_id=ruling.run_id,
        approval_id=_approval_id(ruling, places),
        call=ruling.call,
    )


def _approval_id(ruling: Ruling, places: Places) -> str | None:
    """Returns the approval that a refused call waits for, or None."""
    if ruling.decision.action is not Action.REJECT_WITH_HINT:
        return None
    request = pending(places, ruling)
    return None if request is None else request.approval.approval_id
