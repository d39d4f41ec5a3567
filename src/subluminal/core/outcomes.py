"""The outcomes of calls that no server answered: refused, cancelled, timed out."""

from subluminal.contracts.vocabulary import Action, ErrorClass, ErrorCode, Status
from subluminal.core.ruling import CallEnding

_CODES = {
    Action.BLOCK: ErrorCode.POLICY_BLOCKED,
    Action.THROTTLE: ErrorCode.POLICY_THROTTLED,
    Action.REJECT_WITH_HINT: ErrorCode.REJECT_WITH_HINT,
    Action.TERMINATE_RUN: ErrorCode.RUN_TERMINATED,
}


def refused(message: str, size: int, action: Action, status: Status = Status.ERROR) -> CallEnding:
    """Returns the outcome of a call that was refused with an answer of `size` bytes."""
    return CallEnding(
        status,
        size,
        error_class=ErrorClass.POLICY_BLOCK,
        error_message=message,
        error_code=int(_CODES[action]),
    )


def given_up(status: Status, message: str, error_class: ErrorClass | None = None) -> CallEnding:
    """Returns the outcome of a call that gets no answer, or whose client no longer waits."""
    if error_class is None:
        is_timeout = status is Status.TIMEOUT
        error_class = ErrorClass.TIMEOUT if is_timeout else ErrorClass.UNKNOWN
    return CallEnding(status, 0, error_class=error_class, error_message=message)
