"""What passes between an adapter and the core about one call (Pack 7.1): a ruling, an outcome."""

from msgspec import Struct

from subluminal.contracts.call import ToolCall
from subluminal.contracts.decision import Decision
from subluminal.contracts.vocabulary import ErrorClass, Status
from subluminal.policy.evaluation import Evaluation


class Ruling(Struct, gc=False):
    """What `begin` says about a call; the adapter gives it back to `finish`."""

    call: ToolCall
    call_id: str
    evaluation: Evaluation
    started_ns: int
    finished: bool = False

    @property
    def decision(self) -> Decision:
        """What to do with the call."""
        return self.evaluation.decision

    @property
    def is_allowed(self) -> bool:
        """Whether the adapter forwards the call."""
        return self.evaluation.forwarded

    @property
    def is_watched(self) -> bool:
        """Whether a breaker wants to know how the call ends, even if it ends well."""
        for visit in self.evaluation.visits:  # asked of every call: no generator
            for breaker in visit.watches:
                if breaker.watches_latency:
                    return True
        return False


class Outcome(Struct, frozen=True):
    """How a call ended, in no protocol's words."""

    status: Status
    bytes_out: int
    result: bytes | None = b""
    """what may be previewed; None if it was too large to inspect"""
    error_class: ErrorClass | None = None
    error_message: str = ""
    error_code: int | str | None = None
    result_stream_hash: str | None = None
