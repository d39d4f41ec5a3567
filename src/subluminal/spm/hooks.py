"""Calls what the program gave: hooks of plugins and callbacks, sync or async."""

import inspect
from collections.abc import Callable, Coroutine
from contextlib import suppress
from contextvars import copy_context
from typing import Any, Protocol, TypeVar

_T = TypeVar("_T")

OnError = Callable[[BaseException, str], object]


class SecurityPlugin(Protocol):
    """A plugin: any object with a name. It may have `version` and `fail_open`.

    And the hooks `initialize`, `before_check`, `after_decision`, `after_execution`, `destroy`.
    """

    @property
    def name(self) -> str:
        """The name, unique among the plugins of a program."""


class Callbacks:
    """Calls callbacks of the program whose failure changes no decision, and reports failures."""

    def __init__(self, on_error: OnError | None) -> None:
        self._on_error = on_error

    async def tell(self, callback: Callable[..., Any] | None, *told: Any, where: str) -> None:
        """Calls a callback, if there is one."""
        if callback is None:
            return
        try:
            await resolved(callback(*told))
        except Exception as error:  # noqa: BLE001 - the decision is made, whatever others do
            await self.failed(error, where)

    async def failed(self, error: BaseException, where: str) -> None:
        """Reports a failure of a plugin or a callback."""
        if self._on_error is None:
            return
        with suppress(Exception):  # nobody is left who could be told
            await resolved(self._on_error(error, where))


async def resolved(value: Any) -> Any:
    """Returns a value, awaited if it is awaitable."""
    return await value if inspect.isawaitable(value) else value


async def asked(callback: Callable[..., Any], *about: Any, timeout_ms: int) -> Any:
    """Returns the answer of a callback that may take long. Raises TimeoutError.

    A function that is not a coroutine runs in a thread of its own, so that nobody else waits. It
    cannot be ended: after the timeout its answer is not looked at.
    """
    import asyncio

    async def ask() -> Any:
        if inspect.iscoroutinefunction(callback):
            return await callback(*about)
        return await resolved(await in_thread(callback, *about))

    return await asyncio.wait_for(ask(), timeout_ms / 1000)


async def in_thread(function: Callable[..., Any], *given: Any) -> Any:
    """Calls a function in a thread that keeps neither the loop nor the interpreter from ending."""
    import asyncio
    import threading

    loop, context = asyncio.get_running_loop(), copy_context()
    future: asyncio.Future[Any] = loop.create_future()

    def settle(value: Any, error: BaseException | None) -> None:
        if future.done():
            return
        if error is None:
            future.set_result(value)
        else:
            future.set_exception(error)

    def run() -> None:
        value, failure = None, None
        try:
            value = context.run(function, *given)
        except BaseException as error:  # noqa: BLE001 - raised where the answer is awaited
            failure = error
        try:
            loop.call_soon_threadsafe(settle, value, failure)
        except RuntimeError:
            return  # the loop is closed: nobody waits any more

    threading.Thread(target=run, name="subluminal-callback", daemon=True).start()
    return await future


def run_here(work: Coroutine[Any, Any, _T]) -> _T:
    """Runs a coroutine to its end, also if this thread has a running loop."""
    import asyncio

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    import threading

    found: list[_T] = []
    failed: list[BaseException] = []
    context = copy_context()

    def run() -> None:
        try:
            found.append(context.run(asyncio.run, work))
        except BaseException as error:  # noqa: BLE001 - raised below
            failed.append(error)

    thread = threading.Thread(target=run, name="subluminal-check")
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return found[0]
