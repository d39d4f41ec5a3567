"""Translates how a server answered an MCP call into a `CallEnding` of the core."""

from subluminal.adapters.mcp.replies import Reply
from subluminal.contracts.vocabulary import ErrorClass, Status
from subluminal.core.outcomes import given_up, refused
from subluminal.core.ruling import CallEnding

__all__ = ["FORWARDED", "TIMED_OUT", "answered", "given_up", "refused"]

FORWARDED = CallEnding(Status.OK, 0)
"""The outcome of a forwarded message whose answer, if any, cannot be identified."""

TIMED_OUT = CallEnding(
    Status.TIMEOUT,
    0,
    error_class=ErrorClass.TIMEOUT,
    error_message="the call took longer than call_timeout_ms",
)


def answered(reply: Reply) -> CallEnding:
    """Returns the outcome of a call that the server answered."""
    if not reply.is_error:
        return CallEnding(Status.OK, reply.size, reply.result, result_stream_hash=reply.stream_hash)
    return CallEnding(
        Status.ERROR,
        reply.size,
        reply.result,
        error_class=ErrorClass.UPSTREAM_ERROR,
        error_message=reply.error_message,
        error_code=reply.error_code,
        result_stream_hash=reply.stream_hash,
    )
