"""Translates how an MCP call ended into an `Outcome` of the core."""

from subluminal.adapters.mcp.replies import Reply
from subluminal.contracts.vocabulary import Action, ErrorClass, ErrorCode, Status
from subluminal.core.ruling import Outcome

FORWARDED = Outcome(Status.OK, 0)
"""The outcome of a forwarded message whose answer, if any, cannot be identified."""

TIMED_OUT = Outcome(
    Status.TIMEOUT,
    0,
    error_class=ErrorClass.TIMEOUT,
    error_message="the call took longer than call_timeout_ms",
)

_CODES = {
    Action.BLOCK: ErrorCode.POLICY_BLOCKED,
    Action.THROTTLE: ErrorCode.POLICY_THROTTLED,
    Action.REJECT_WITH_HINT: ErrorCode.REJECT_WITH_HINT,
    Action.TERMINATE_RUN: ErrorCode.RUN_TERMINATED,
}


def answered(reply: Reply) -> Outcome:
    """Returns the outcome of a call that the server answered."""
    if not reply.is_error:
        return Outcome(Status.OK, reply.size, reply.result, result_stream_hash=reply.stream_hash)
    return Outcome(
        Status.ERROR,
        reply.size,
        reply.result,
        error_class=ErrorClass.UPSTREAM_ERROR,
        error_message=reply.error_message,
        error_code=reply.error_code,
        result_stream_hash=reply.stream_hash,
    )


def refused(message: str, size: int, action: Action, status: Status = Status.ERROR) -> Outcome:
    """Returns the outcome of a call that was refused with an answer of `size` bytes."""
    return Outcome(
        status,
        size,
        error_class=ErrorClass.POLICY_BLOCK,
        error_message=message,
        error_code=int(_CODES[action]),
    )


def given_up(status: Status, message: str, error_class: ErrorClass | None = None) -> Outcome:
    """Returns the outcome of a call that gets no answer, or whose client no longer waits."""
    if error_class is None:
        is_timeout = status is Status.TIMEOUT
        error_class = ErrorClass.TIMEOUT if is_timeout else ErrorClass.UNKNOWN
    return Outcome(status, 0, error_class=error_class, error_message=message)
