"""What a door and the core tell each other about one call (Pack 7.1).

`begin` returns a `Ruling`; the door gives it back to `finish` with a `CallEnding`.
"""

from typing import TYPE_CHECKING

from msgspec import Struct

from subluminal.contracts.call import ToolCall
from subluminal.contracts.decision import Decision, PolicyRef
from subluminal.contracts.gate import Assessment
from subluminal.contracts.targets import Targets
from subluminal.contracts.vocabulary import ErrorClass, Status
from subluminal.policy.visit import Call

if TYPE_CHECKING:
    from subluminal.core.enforcer import Enforcer
    from subluminal.core.levels import CallLevel


def asked_of(call: ToolCall) -> Call:
    """Returns a call as the policies are asked about it. `Enforcer.begin` does the same itself."""
    return Call(
        *(call.server_name, call.tool_name, call.args, call.args_hash),
        provider=call.provider,
        given=call.given,
    )


class Handed(Struct, gc=False):
    """What a ruling has to do with handovers (`core.handovers`)."""

    begun_by: str = ""
    """shim id of the door that decided the call; empty if this door did"""
    taken: str = ""
    """file that says that this door has taken the call over; empty if it has not"""
    offer: str = ""
    """file that offers the call to later doors; empty if there is none"""


class Ruling(Struct, gc=False):
    """What `begin` decided about a call."""

    call: ToolCall
    call_id: str
    assessment: Assessment
    started_ns: int
    enforcer: "Enforcer"
    """the enforcer that decided the call, and that will record its end"""
    finished: bool = False
    is_ending: bool = False
    """whether a thread is ending the call; only hosts with threads use it"""
    handed: Handed | None = None
    """set once the call was taken over from another door, or offered to others"""
    targets: Targets | None = None
    """what the call touches, if a rule asked for it"""
    level: "CallLevel | None" = None
    """what the call has to do with the level of its run, if a policy speaks of it"""

    @property
    def decision(self) -> Decision:
        """What to do with the call."""
        return self.assessment.decision

    @property
    def policy(self) -> PolicyRef:
        """The policy that made the decision."""
        return self.assessment.policy

    @property
    def is_allowed(self) -> bool:
        """Whether the door forwards the call."""
        return self.assessment.forwarded

    @property
    def run_id(self) -> str:
        """The run that the call belongs to."""
        return self.enforcer.run.run_id

    @property
    def tool_name(self) -> str:
        """The call's tool with secrets masked: an agent can put anything into a tool's name."""
        return self.enforcer.shown_name(self.call)


class CallEnding(Struct, frozen=True):
    """How a call ended, whatever its protocol."""

    status: Status
    bytes_out: int
    """size of the answer in bytes"""
    result: bytes | None = b""
    """text for the preview; None if it was too large to inspect"""
    error_class: ErrorClass | None = None
    error_message: str = ""
    error_code: int | str | None = None
    result_stream_hash: str | None = None
    """SHA-256 of a result that was too large to keep"""
    executed_args_hash: str | None = None
    """hash of the arguments that were executed, if they are not those that were decided"""
