"""The arguments of a guarded call: bound to their names, and in a JSON form.

Rules, hashes and records need JSON. Dataclasses, models of pydantic, attrs classes, enums, dates,
paths, bytes and the like have a JSON form. A value that has none makes the whole call one that is
too large to inspect: rules about arguments follow `decision_on_error`.
"""

import inspect
import os
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Struct

from subluminal.adapters.in_process.guarding.signatures import written
from subluminal.canonical import encode, new_hash

_PLAIN = frozenset({str, int, bool, float, type(None)})
_SURE, _NAMES = frozenset({str, bool, type(None)}), frozenset({str})
_Parameter = inspect.Parameter

_Bind = Callable[..., dict[str, Any]]
"""Takes the arguments of a function, and returns them by name."""


class Arguments(Struct, frozen=True):
    """Arguments as the core takes them."""

    args: dict[str, Any] | None
    """None if they cannot be inspected"""
    text: bytes | None
    """the same as canonical JSON"""
    args_hash: str
    size: int


def arguments_of(given: dict[str, Any], most_bytes: int) -> Arguments:
    """Returns arguments in their JSON form; more than `most_bytes` of it are not inspected."""
    try:
        kinds = set(map(type, given.values()))
        plain = given if kinds <= _PLAIN else _json_form(given)
        text = encode(plain, plain=kinds <= _SURE and _NAMES.issuperset(map(type, given)))
    except Exception:  # noqa: BLE001 - a value's own code may raise anything
        # Nobody can tell whether two such calls are equal, so no two of them are.
        return Arguments(None, None, os.urandom(32).hex(), 0)
    digest = new_hash()
    digest.update(text)
    args_hash = digest.hexdigest()
    if len(text) > most_bytes:
        return Arguments(None, None, args_hash, len(text))
    return Arguments(plain, text, args_hash, len(text))


def _json_form(value: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(
        value, str_keys=True, order="deterministic", enc_hook=unusual
    )
    whole = msgspec.json.encode(value, enc_hook=unusual)
    if len(whole) != len(msgspec.json.encode(found)):
        raise ValueError("two keys are one in JSON")  # rules would not see one of the values
    return found


def unusual(value: Any) -> Any:
    """Returns the form of a value that msgspec does not know. Raises TypeError."""
    dump = getattr(type(value), "model_dump", None)
    if dump is not None:  # pydantic
        return dump(value, mode="json")
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, str):  # a subclass; what it says of itself may differ from what it is
        return str.__str__(value)
    if isinstance(value, int | float):
        return int.__int__(value) if isinstance(value, int) else float.__float__(value)
    raise TypeError(f"a value of type {type(value).__name__} has no JSON form")


class Binder:
    """Binds the arguments of a function to the names of its parameters."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._signature = inspect.signature(function)
        parameters = list(self._signature.parameters.values())
        is_method = _is_method(function, parameters)
        self._left_out = parameters[0].name if is_method else None
        kinds = {each.kind: each.name for each in parameters}
        self._rest = kinds.get(_Parameter.VAR_KEYWORD)
        self.names = frozenset(each.name for each in parameters[is_method:])
        """the names of the parameters, `self` left out"""
        before_slash = _Parameter.POSITIONAL_ONLY in kinds
        is_quick = self._rest is None or not before_slash
        self._quick = _compiled(parameters, self._left_out) if is_quick else None

    def bind(self, positional: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
        """Returns all arguments by name, defaults included. Raises TypeError as a call would."""
        if self._quick is not None:
            try:
                return self._quick(*positional, **named)
            except TypeError:
                pass  # `inspect` says what is wrong
        return self._by_signature(positional, named)

    def _by_signature(self, positional: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
        bound = self._signature.bind(*positional, **named)
        bound.apply_defaults()
        found = dict(bound.arguments)
        if self._left_out is not None:
            del found[self._left_out]
        if self._rest is not None:
            rest = found.pop(self._rest)
            # A keyword may have the name of a parameter before a `/`: both must be seen.
            found |= {self._rest: rest} if found.keys() & rest else rest
        return found


def _compiled(parameters: list[inspect.Parameter], left_out: str | None) -> _Bind | None:
    """Returns a function with these parameters, which returns its arguments by name.

    It does what `inspect` does, twenty times as fast. None if a name cannot stand in source text.
    """
    found = written(parameters)
    if found is None:
        return None
    rest = [f"**{each.name}" for each in parameters if each.kind is _Parameter.VAR_KEYWORD]
    own = [each.name for each in parameters if each.kind is not _Parameter.VAR_KEYWORD]
    members = rest + [f"{name!r}: {name}" for name in own if name != left_out]
    source = f"lambda {found.text[1:-1]}: {{{', '.join(members)}}}"
    bind: _Bind = eval(source, found.names)
    return bind


def _is_method(function: Callable[..., Any], parameters: list[inspect.Parameter]) -> bool:
    """Whether the first parameter is the object or class that the function belongs to."""
    if not parameters or parameters[0].name not in ("self", "cls"):
        return False
    owner, _, _ = getattr(function, "__qualname__", "").rpartition(".")
    return bool(owner) and not owner.endswith("<locals>")
