"""The gates of one run, in the order in which a call passes them (`contracts.gate.GateName`).

    stops     the kill switch                     one comparison while nothing is stopped
    plugins   what an installation adds           costs nothing while there are none
    policy    every layer, with the counters
    grants    a person's approvals                loaded when a rule first refuses a call

The enforcer asks them under the run's lock. Plugins and policy are the engine of
`policy.evaluation`: a reload replaces it, and explain and replay use it too. Stops and grants are
here.
"""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from subluminal.config.places import encode_name
from subluminal.contracts.control import KILLED
from subluminal.contracts.decision import Decision, Terminate
from subluminal.contracts.vocabulary import Action, ReasonCode, Severity
from subluminal.core.controls.stops import REVOKED, Stop
from subluminal.policy.refusing import blocked

if TYPE_CHECKING:
    from subluminal.core.controls.approvals import Approvals


class _NothingStopped:
    """The stand-in for the kill switch where there is no home directory."""

    words = (0,)
    calm = 0

    def make_safe(self) -> None:
        return

    def find(self, _server_name: str, _tool_name: str) -> Stop | None:
        return None


class Gates(NamedTuple):
    """The gates before and behind the engine."""

    stops: Any = _NothingStopped()
    """a kill_switch.StopView, or its stand-in"""
    open_approvals: "Callable[[], Approvals] | None" = None
    """opens the grants when a rule first refuses a call; most runs never need them"""
    approvals_path: str = ""
    """the run's folder of requests and grants; most runs have none. An agent whose budget is spent
    may try again and again, so a refusal by a limit opens nothing while the folder is missing."""


NO_GATES = Gates()
"""No stops and no grants: for an engine alone."""


def approvals_folder(state_dir: str, run_id: str) -> str:
    """Returns the folder of a run's requests and grants."""
    return os.path.join(state_dir, "approvals", encode_name(run_id))


_LOST = "the state of this run was removed, although the run has journals"
STATE_LOST = Decision(
    action=Action.TERMINATE_RUN,
    rule_id=None,
    severity=Severity.CRITICAL,
    reason_code=ReasonCode.STATE_LOST,
    summary=f"{_LOST}; only a person can let it go on",
    terminate=Terminate(terminate_code=ReasonCode.STATE_LOST, terminate_message=_LOST),
)
"""The refusal of every call of a run that has lost its state."""


NOT_EXECUTED = blocked(
    ReasonCode.BATCH_REFUSED, "not executed: another call of the same batch was refused"
)
"""The decision about a call that passes, in a batch that does not."""


def switched_off(summary: str) -> Decision:
    """Returns the refusal of every call of a process whose environment pulls the kill switch."""
    return Decision(
        action=Action.TERMINATE_RUN,
        rule_id=None,
        severity=Severity.CRITICAL,
        reason_code=ReasonCode.KILL_SWITCH,
        summary=summary,
        terminate=Terminate(terminate_code=KILLED, terminate_message=summary),
    )


def refusal_of(stop: Stop) -> Decision:
    """Returns the decision about a stopped call.

    Calls of a tool or of a revoked agent are blocked; anything wider ends the run.
    """
    if stop.scope == REVOKED:
        return blocked(ReasonCode.AGENT_REVOKED, stop.sentence)
    if stop.scope == "tool" and not stop.problem:
        return blocked(ReasonCode.KILL_SWITCH, stop.sentence)
    is_run = stop.scope == "run" and not stop.problem
    return Decision(
        action=Action.TERMINATE_RUN,
        rule_id=None,
        severity=Severity.CRITICAL,
        reason_code=ReasonCode.RUN_TERMINATED if is_run else ReasonCode.KILL_SWITCH,
        summary=stop.sentence,
        terminate=Terminate(terminate_code=KILLED, terminate_message=stop.sentence),
    )


def terminated(code: str, message: str) -> Decision:
    """Returns the refusal of every call of a run that was ended."""
    return Decision(
        action=Action.TERMINATE_RUN,
        rule_id=None,
        severity=Severity.CRITICAL,
        reason_code=ReasonCode.RUN_TERMINATED,
        summary=f"this run was ended: {message}",
        terminate=Terminate(terminate_code=code, terminate_message=message),
    )
