"""The gates of one run, in the order in which a call passes them (`contracts.gate.GateName`).

    stops     the kill switch                     one comparison while nothing is stopped
    plugins   what an installation adds           nothing while there is none
    policy    every layer, with the counters
    grants    a person's answers                  loaded when a rule first refuses a call

The enforcer asks them under the run's lock. Plugins and policy are the engine of
`policy.evaluation`, which a reload replaces, and which explain and replay ask as well; the other
two are here.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from subluminal.contracts.control import KILLED
from subluminal.contracts.decision import Decision, Terminate
from subluminal.contracts.vocabulary import Action, ReasonCode, Severity
from subluminal.core.controls.kill_switch import Stop

if TYPE_CHECKING:
    from subluminal.core.controls.approvals import Approvals


class _NothingStopped:
    """Stands in for the kill switch where there is no home to stop anything in."""

    words = (0,)
    calm = 0

    def find(self, _server_name: str, _tool_name: str) -> Stop | None:
        return None


class Gates(NamedTuple):
    """The gates before and behind the engine."""

    stops: Any = _NothingStopped()
    """a kill_switch.StopView, or its stand-in"""
    open_approvals: "Callable[[], Approvals] | None" = None
    """opens the grants when a rule first refuses a call: most runs never need them"""


NO_GATES = Gates()
"""For an engine alone: nothing stops it, and nobody grants anything."""


def refusal_of(stop: Stop) -> Decision:
    """The decision about a call that a person has stopped: a run is over, a tool is blocked."""
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
