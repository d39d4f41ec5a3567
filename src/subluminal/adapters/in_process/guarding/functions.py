"""Guarded functions: plain ones, coroutines, generators and asynchronous generators.

A guarded function has the signature and the kind of the function that it guards, so that frameworks
that inspect it see no difference.
"""

import functools
import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from types import AsyncGeneratorType, GeneratorType
from typing import Any
from weakref import finalize

from subluminal.adapters.in_process.guarding.calls import GuardedCall
from subluminal.adapters.in_process.guarding.refused import Refused
from subluminal.adapters.in_process.guarding.signatures import (
    async_generator_like,
    coroutine_like,
    generator_like,
)

_STREAMS = (GeneratorType, AsyncGeneratorType)
_VALUES = frozenset({str, int, bool, float, bytes, dict, list, tuple, type(None)})
"""Types of most results. Looking for a member that a type does not have takes a microsecond."""
MAX_KEPT = 64
"""Most items of a stream that are kept for its preview."""

Enter = Callable[[tuple[Any, ...], dict[str, Any]], GuardedCall]
"""Returns the call of a function with these arguments; it has not begun."""
Told = Callable[[Exception], Any]
"""Returns what to return in place of a refusal, or raises it."""


class Stream:
    """What is kept of the items that a generator has yielded."""

    def __init__(self) -> None:
        self.items: list[Any] = []
        self.number = 0

    def keep(self, item: Any) -> Any:
        """Keeps an item, and returns it."""
        self.number += 1
        if len(self.items) < MAX_KEPT:
            self.items.append(item)
        return item

    @property
    def result(self) -> Any:
        """The items, or as many as are kept and their number."""
        if self.number == len(self.items):
            return self.items
        return {"items": self.number, "first": self.items}


def guarded(function: Callable[..., Any], enter: Enter, told: Told) -> Callable[..., Any]:
    """Returns a guarded function of the same kind. `told` turns a refusal into a result."""
    inner = innermost(function)
    if not inspect.isroutine(inner):
        inner = getattr(inner, "__call__", inner)  # noqa: B004 - its kind, not whether there is one
    if inspect.isasyncgenfunction(inner):
        return _async_generator(function, enter, told)
    if inspect.iscoroutinefunction(inner):
        return _coroutine(function, enter, told)
    if inspect.isgeneratorfunction(inner):
        return _generator(function, enter, told)
    return _plain(function, enter, told)


def _plain(function: Callable[..., Any], enter: Enter, told: Told) -> Callable[..., Any]:
    @functools.wraps(function)
    def run(*positional: Any, **named: Any) -> Any:
        call = enter(positional, named)
        try:
            call.begin()
        except Refused as refused:
            return told(refused)
        try:
            call.result = result = function(*positional, **named)
        except BaseException as error:
            call.end(error)
            raise
        kind = type(result)
        if kind not in _VALUES and (kind in _STREAMS or hasattr(kind, "__await__")):
            call.result = None
            return _continued(call, result)
        call.end(None)
        return result

    return run


def innermost(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the function below partial applications."""
    while isinstance(function, functools.partial):
        function = function.func
    return function


def _continued(call: GuardedCall, result: Any) -> Any:
    """Returns what ends a call, of a plain function that returned a stream or an awaitable."""
    dropped: list[finalize[..., Any]] = []
    found: Any
    if isinstance(result, GeneratorType):
        found = _iterated(call, result, dropped)
    elif isinstance(result, AsyncGeneratorType):
        found = _async_relayed(AsyncStream(call, result), dropped)
    else:
        found = _awaited(call, result, dropped)
    # Python runs nothing of a stream that nobody begins: the call would never end.
    dropped.append(finalize(found, call.abandon, GeneratorExit("nobody used the result")))
    dropped[0].atexit = False
    return found


async def _awaited(call: GuardedCall, result: Any, dropped: "list[finalize[..., Any]]") -> Any:
    """Ends a call with what a plain function gave its caller to await."""
    dropped.pop().detach()
    try:
        call.result = found = await result
    except BaseException as error:
        await call.end_async(error)
        raise
    await call.end_async(None)
    return found


def _coroutine(function: Callable[..., Any], enter: Enter, told: Told) -> Callable[..., Any]:
    async def run(positional: tuple[Any, ...], named: dict[str, Any]) -> Any:
        call = enter(positional, named)
        try:
            await call.__aenter__()
        except Refused as refused:
            return told(refused)
        try:
            call.result = found = await function(*positional, **named)
        except BaseException as error:
            await call.end_async(error)
            raise
        await call.end_async(None)
        return found

    return coroutine_like(function, run)


def _generator(function: Callable[..., Any], enter: Enter, told: Told) -> Callable[..., Any]:
    def run(positional: tuple[Any, ...], named: dict[str, Any]) -> Generator[Any, Any, Any]:
        call = enter(positional, named)
        try:
            call.begin()
        except Refused as refused:
            yield told(refused)
            return None
        return (yield from _relayed(call, function(*positional, **named)))

    return generator_like(function, run)


def _iterated(
    call: GuardedCall, inner: Generator[Any, Any, Any], dropped: "list[finalize[..., Any]]"
) -> Generator[Any, Any, Any]:
    dropped.pop().detach()
    return (yield from _relayed(call, inner))


def _relayed(call: GuardedCall, inner: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
    """Does what `yield from inner` does, keeps the items, and ends the call with the stream."""
    kept = Stream()
    try:
        value = yield from _kept(inner, kept)
    except BaseException as error:
        call.end(error)
        raise
    call.result = kept.result
    call.end(None)
    return value


def _kept(inner: Generator[Any, Any, Any], kept: Stream) -> Generator[Any, Any, Any]:
    step = functools.partial(next, inner)
    while True:
        try:
            item = step()
        except StopIteration as stop:
            return stop.value
        try:
            sent = yield kept.keep(item)
        except GeneratorExit:
            inner.close()
            raise
        except BaseException as error:  # noqa: BLE001 - thrown into the generator, as by hand
            step = functools.partial(inner.throw, error)
        else:
            step = functools.partial(inner.send, sent)


class AsyncStream:
    """An asynchronous generator whose end is that of a call."""

    def __init__(self, call: GuardedCall | None, inner: AsyncGenerator[Any, Any]) -> None:
        """`call` is None if it has ended already."""
        self._call = call
        self._inner = inner
        self._kept = Stream()
        self._step: Awaitable[Any] = inner.__anext__()
        self.item: Any = None
        """the item to yield next"""

    async def advance(self) -> bool:
        """Waits for the next item; False at the end of the stream."""
        try:
            self.item = self._kept.keep(await self._step)
        except StopAsyncIteration:
            await self._end(None)
            return False
        except BaseException as error:
            await self._end(error)
            raise
        return True

    def send(self, value: Any) -> None:
        """Sends a value into the generator, with the next step."""
        self._step = self._inner.asend(value)

    async def throw(self, error: BaseException) -> None:
        """Throws an error into the generator, with the next step. GeneratorExit closes it."""
        if not isinstance(error, GeneratorExit):
            self._step = self._inner.athrow(error)
            return
        try:
            await self._inner.aclose()
        except BaseException as failure:
            await self._end(failure)
            raise
        await self._end(error)
        raise error

    async def _end(self, error: BaseException | None) -> None:
        if self._call is not None:
            self._call.result = self._kept.result if error is None else None
            await self._call.end_async(error)


async def _async_relayed(
    stream: AsyncStream, dropped: "list[finalize[..., Any]]"
) -> AsyncGenerator[Any, Any]:
    dropped.pop().detach()
    while await stream.advance():
        try:
            stream.send((yield stream.item))
        except BaseException as error:  # noqa: BLE001 - thrown into the generator, as above
            await stream.throw(error)


def _async_generator(function: Callable[..., Any], enter: Enter, told: Told) -> Callable[..., Any]:
    async def run(positional: tuple[Any, ...], named: dict[str, Any]) -> AsyncStream:
        call = enter(positional, named)
        try:
            await call.__aenter__()
        except Refused as refused:
            return AsyncStream(None, _only(told(refused)))
        return AsyncStream(call, function(*positional, **named))

    return async_generator_like(function, run)


async def _only(item: Any) -> AsyncGenerator[Any, Any]:
    yield item
