"""What a person may do to a run while it runs, as one of its shims meets it: stops, approvals."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from subluminal.contracts.control import KILLED
from subluminal.contracts.decision import Decision, Terminate
from subluminal.contracts.vocabulary import Action, ReasonCode, Severity
from subluminal.core.controls.kill_switch import Stop

if TYPE_CHECKING:
    from subluminal.core.controls.approvals import Approvals


class Controls(NamedTuple):
    """The kill switch and the approvals of one run."""

    stops: Any
    """a kill_switch.StopView, or what stands in for one"""
    open_approvals: "Callable[[], Approvals] | None"
    """loads them when a rule first refuses a call: most runs never need them"""


class _NothingStopped:
    """Where there is no home to stop anything in."""

    words = (0,)
    calm = 0

    def find(self, _server_name: str, _tool_name: str) -> Stop | None:
        return None


NO_CONTROLS = Controls(_NothingStopped(), None)


def refusal_of(stop: Stop) -> Decision:
    """What a call is told that a person has stopped: a run is over, a tool is blocked."""
    if stop.scope == "tool" and not stop.problem:
        return Decision(
            action=Action.BLOCK,
            rule_id=None,
            severity=Severity.CRITICAL,
            reason_code=ReasonCode.KILL_SWITCH,
            summary=stop.sentence,
        )
    is_run = stop.scope == "run" and not stop.problem
    return Decision(
        action=Action.TERMINATE_RUN,
        rule_id=None,
        severity=Severity.CRITICAL,
        reason_code=ReasonCode.RUN_TERMINATED if is_run else ReasonCode.KILL_SWITCH,
        summary=stop.sentence,
        terminate=Terminate(terminate_code=KILLED, terminate_message=stop.sentence),
    )
