"""Functions with the signature of another function: Python itself checks how they are called.

The body of a coroutine or generator runs late. If it checked its arguments there, a wrong call
would fail at the first item, and not at the call. So the wrapper of such a function is compiled
with the parameters of that function, as `dataclasses` compiles `__init__`.
"""

import functools
import inspect
from collections.abc import Callable, Sequence
from itertools import count
from keyword import iskeyword
from typing import Any, NamedTuple

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

_ANYTHING = [
    inspect.Parameter("positional", inspect.Parameter.VAR_POSITIONAL),
    inspect.Parameter("named", inspect.Parameter.VAR_KEYWORD),
]

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


class Written(NamedTuple):
    """Parameters as source text."""

    text: str
    """with parentheses, without annotations: `(order, amount=_0)`"""
    names: dict[str, Any]
    """the default values, by the names that stand for them in the text"""


class _Name(str):
    """The name of a default value, which stands for it in the text of a signature."""

    __repr__ = str.__str__


def written(parameters: Sequence[inspect.Parameter]) -> Written | None:
    """Writes parameters as source text; None if a name cannot stand there."""
    if not all(each.name.isidentifier() and not iskeyword(each.name) for each in parameters):
        return None
    taken = {each.name for each in parameters}
    free = (name for number in count() if (name := f"_{number}") not in taken)
    names: dict[str, Any] = {}
    plain = []
    for each in parameters:
        default = each.default
        if default is not each.empty:
            names[name := next(free)] = default
            default = _Name(name)
        plain.append(each.replace(annotation=each.empty, default=default))
    return Written(str(inspect.Signature(plain)), names)


def _like(function: Callable[..., Any], template: str, work: Work) -> Callable[..., Any]:
    own = list(inspect.signature(function).parameters.values())
    found = None if _says_another(function) else written(own)
    if found is None:
        own, found = _ANYTHING, written(_ANYTHING)
        assert found is not None
    taken = {*found.names, *(each.name for each in own)}
    name, work_name = [each for n in range(len(taken) + 2) if (each := f"_{n}") not in taken][:2]
    text = template.format(
        name=name,
        parameters=found.text,
        work=work_name,
        given=f"({_positional(own)}), {{{_named(own)}}}",
    )
    names = {**found.names, work_name: work}
    exec(text, names)  # of the function, the text has the parameters' names only
    wrapper: Callable[..., Any] = functools.wraps(function)(names[name])
    return wrapper


def _says_another(function: Callable[..., Any]) -> bool:
    """Whether a function says that it has the signature of another one, as decorated ones do.

    How such a function wants its arguments, by position or by name, is not known.
    """
    while isinstance(function, functools.partial):
        function = function.func
    return hasattr(function, "__wrapped__") or hasattr(function, "__signature__")


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
