"""Functions with the signature of another function: Python itself checks how they are called.

The body of a coroutine or generator runs late. If it checked its arguments there, a wrong call
would fail at the first item, and not at the call. So the wrapper of such a function is compiled
with the parameters of that function, as `dataclasses` compiles `__init__`.
"""

import functools
import inspect
from collections.abc import Callable
from typing import Any

_COROUTINE = """
async def {name}{parameters}:
    return await {work}({given})
"""
_GENERATOR = """
def {name}{parameters}:
    return (yield from {work}({given}))
"""
_ASYNC_GENERATOR = """
async def {name}{parameters}:
    stream = await {work}({given})
    while await stream.advance():
        try:
            stream.send((yield stream.item))
        except BaseException as error:
            await stream.throw(error)
"""

Work = Callable[[tuple[Any, ...], dict[str, Any]], Any]
"""Takes the arguments of a call by position, and those by name."""


def coroutine_like(function: Callable[..., Any], work: Work) -> Callable[..., Any]:
    """Returns a coroutine function that awaits `work`."""
    return _like(function, _COROUTINE, work)


def generator_like(function: Callable[..., Any], work: Work) -> Callable[..., Any]:
    """Returns a generator function that yields from `work`."""
    return _like(function, _GENERATOR, work)


def async_generator_like(function: Callable[..., Any], work: Work) -> Callable[..., Any]:
    """Returns an asynchronous generator function. `work` is awaited for an `AsyncStream`."""
    return _like(function, _ASYNC_GENERATOR, work)


class _Name(str):
    """A default value in the text of a signature."""

    __repr__ = str.__str__


def _like(function: Callable[..., Any], template: str, work: Work) -> Callable[..., Any]:
    signature = inspect.signature(function)
    own = list(signature.parameters.values())
    taken = {each.name for each in own}
    free = (name for n in range(10**6) if (name := f"_{n}") not in taken)
    name, work_name = next(free), next(free)
    names: dict[str, Any] = {work_name: work}
    parameters = []
    for each in own:
        default: Any = each.default
        if default is not each.empty:
            names[default_name := next(free)] = default
            default = _Name(default_name)
        parameters.append(each.replace(annotation=each.empty, default=default))
    text = template.format(
        name=name,
        parameters=inspect.Signature(parameters),
        work=work_name,
        given=f"({_positional(own)}), {{{_named(own)}}}",
    )
    exec(text, names)  # of the function, the text has the parameters' names only
    wrapper: Callable[..., Any] = functools.wraps(function)(names[name])
    return wrapper


def _positional(parameters: list[inspect.Parameter]) -> str:
    found = ""
    for each in parameters:
        if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD):
            found += f"{each.name}, "
        elif each.kind is each.VAR_POSITIONAL:
            found += f"*{each.name}, "
    return found


def _named(parameters: list[inspect.Parameter]) -> str:
    found = ""
    for each in parameters:
        if each.kind is each.KEYWORD_ONLY:
            found += f"{each.name!r}: {each.name}, "
        elif each.kind is each.VAR_KEYWORD:
            found += f"**{each.name}, "
    return found
