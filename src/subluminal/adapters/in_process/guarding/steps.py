"""Work that is written once, and that functions and coroutines both do.

The work is a generator. It yields a step whenever it has to wait or calls code of the program, and
gets back what came of it. `run` takes the steps in a thread, `run_async` in a task.
"""

import inspect
import time
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextvars import copy_context
from typing import Any, NamedTuple, Protocol, TypeVar

_T = TypeVar("_T")

Settle = Callable[[Any, BaseException | None], None]
"""Gets what a function returned, or what it raised."""


class Pause(NamedTuple):
    """Wait for so long."""

    seconds: float


class Ask(NamedTuple):
    """Call a function of the program, and wait for what it returns."""

    function: Callable[..., Any]
    given: tuple[Any, ...]


class Start(NamedTuple):
    """Call a function of the program in the background; gives a `Started`.

    A coroutine function runs as a task of the caller's loop, if the caller is a coroutine. Anything
    else runs in a thread of its own, which keeps nobody from ending. `settle` is called in a thread
    in both cases.
    """

    function: Callable[..., Any]
    given: tuple[Any, ...]
    settle: Settle


Steps = Generator[Pause | Ask | Start, Any, _T]


class Started(Protocol):
    """Something that runs in the background."""

    def cancel(self) -> object:
        """Ends it, if it can be ended."""


class _Uncancellable:
    def cancel(self) -> None:
        """A thread cannot be ended. What it returns is not looked at."""


def run(steps: Steps[_T]) -> _T:
    """Takes all steps in this thread; returns what the work returns."""
    try:
        step = next(steps)
        while True:
            try:
                found = _taken(step)
            except BaseException as error:  # noqa: BLE001 - the work itself sees to it
                step = steps.throw(error)
            else:
                step = steps.send(found)
    except StopIteration as stop:
        value: _T = stop.value
        return value


async def run_async(steps: Steps[_T]) -> _T:
    """Takes all steps in this task; returns what the work returns."""
    try:
        step = next(steps)
        while True:
            try:
                found = await _taken_async(step)
            except BaseException as error:  # noqa: BLE001 - the work itself sees to it
                step = steps.throw(error)
            else:
                step = steps.send(found)
    except StopIteration as stop:
        value: _T = stop.value
        return value


def _taken(step: Pause | Ask | Start) -> Any:
    if isinstance(step, Pause):
        time.sleep(step.seconds)
        return None
    if isinstance(step, Ask):
        found = step.function(*step.given)
        return in_thread(found) if inspect.isawaitable(found) else found
    _background(step, _with_own_loop)
    return _Uncancellable()


async def _taken_async(step: Pause | Ask | Start) -> Any:
    if isinstance(step, Ask):
        found = step.function(*step.given)
        return await found if inspect.isawaitable(found) else found
    import asyncio

    if isinstance(step, Pause):
        return await asyncio.sleep(step.seconds)
    if _is_async(step.function):
        return asyncio.get_running_loop().create_task(_as_task(step))
    loop = asyncio.get_running_loop()
    _background(
        step,
        lambda found: asyncio.run_coroutine_threadsafe(_awaiting(found), loop).result(),
    )
    return _Uncancellable()


async def _as_task(step: Start) -> None:
    value, failure = None, None
    try:
        value = await step.function(*step.given)
    except BaseException as error:
        import asyncio

        if not isinstance(error, Exception | asyncio.CancelledError):
            raise
        failure = error  # if nobody waits any more, the answer is not looked at
    start_thread(step.settle, value, failure)


def _background(step: Start, resolve: Callable[[Awaitable[Any]], Any]) -> None:
    def work() -> None:
        value, failure = None, None
        try:
            value = step.function(*step.given)
            if inspect.isawaitable(value):
                value = resolve(value)
        except BaseException as error:  # noqa: BLE001 - code of the program, such as `sys.exit`
            failure = error
        step.settle(value, failure)

    start_thread(work)


def start_thread(function: Callable[..., object], *given: Any) -> Any:
    """Calls a function in a thread that keeps the interpreter from ending by nothing."""
    import threading

    context = copy_context()
    thread = threading.Thread(
        target=context.run, args=(function, *given), name="subluminal", daemon=True
    )
    thread.start()
    return thread


def in_thread(awaitable: Awaitable[_T]) -> _T:
    """Awaits something in a thread with a loop of its own; returns or raises what came of it."""
    found: list[_T] = []
    failed: list[BaseException] = []

    def work() -> None:
        try:
            found.append(_with_own_loop(awaitable))
        except BaseException as error:  # noqa: BLE001 - raised below
            failed.append(error)

    start_thread(work).join()
    if failed:
        raise failed[0]
    return found[0]


def _with_own_loop(awaitable: Awaitable[_T]) -> _T:
    import asyncio

    return asyncio.run(_awaiting(awaitable))


def _awaiting(awaitable: Awaitable[_T]) -> Coroutine[Any, Any, _T]:
    async def work() -> _T:
        return await awaitable

    return work()


def _is_async(function: Callable[..., Any]) -> bool:
    called = getattr(function, "__call__", None)  # noqa: B004 - its kind, not whether there is one
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(called)
