"""One guarded call around a tool of a framework, sync or async.

Frameworks turn the exception of a tool into a result with an error text. The record must say ERROR
nevertheless: `Found` tells the result from the failure that it reports. The other way round, some
exceptions are not failures: with them a tool stops until a person answers, and is called again.
"""

import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

from subluminal.adapters.in_process.guarding.calls import GuardedCall

_R = TypeVar("_R")
Pauses = tuple[type[Exception], ...]


class Found(NamedTuple):
    """What a tool's result says, for the record."""

    result: Any
    failure: str | None = None
    """the text of a failure that the result reports"""


class ToolFailed(Exception):
    """A tool reported a failure as its result. Only the record sees this exception."""


class Paused(BaseException):
    """A tool stopped, to be called again later: the record says CANCELLED, and breakers count no
    error. Only the record sees this exception.
    """

    def __init__(self, cause: Exception) -> None:
        super().__init__(f"the tool paused: {type(cause).__name__}")
        self.cause = cause


def missing(module: str, package: str, error: ImportError) -> ImportError:
    """Returns the one error of a framework that is not installed."""
    said = f"subluminal.integrations.{module} needs {package}: pip install '{package}' ({error})"
    return ImportError(said, name=error.name, path=error.path)


def arguments(given: object) -> dict[str, Any]:
    """Returns the arguments of a call, which some frameworks have as JSON text."""
    if isinstance(given, str):
        with suppress(ValueError):  # the framework will tell the model; rules see the text
            given = json.loads(given or "{}")
    return given if isinstance(given, dict) else {"input": given}


def guarded_call(
    call: GuardedCall,
    run: Callable[[], _R],
    read: Callable[[_R], Found],
    pauses: Pauses = (),
) -> _R:
    """Runs a tool inside of its call, and returns its result. Raises Refused.

    `pauses` are the exceptions with which a tool stops, to be called again later.
    """
    found: list[_R] = []
    try:
        with call:
            try:
                found.append(run())
            except pauses as pause:
                raise Paused(pause) from None
            _keep(call, read(found[0]))
    except ToolFailed:
        pass
    except Paused as paused:
        raise paused.cause from None
    return found[0]


async def guarded_call_async(
    call: GuardedCall,
    run: Callable[[], Awaitable[_R]],
    read: Callable[[_R], Found],
    pauses: Pauses = (),
) -> _R:
    """The same for a coroutine."""
    found: list[_R] = []
    try:
        async with call:
            try:
                found.append(await run())
            except pauses as pause:
                raise Paused(pause) from None
            _keep(call, read(found[0]))
    except ToolFailed:
        pass
    except Paused as paused:
        raise paused.cause from None
    return found[0]


def _keep(call: GuardedCall, found: Found) -> None:
    if found.failure is not None:
        raise ToolFailed(found.failure)
    call.result = found.result
