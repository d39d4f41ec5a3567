"""The arguments of a guarded call: bound to their names, and in a JSON form.

Rules, hashes and records need JSON. Dataclasses, models of pydantic, attrs classes, enums, dates,
paths, bytes and the like have a JSON form. A value that has none makes the whole call one that is
too large to inspect: rules about arguments follow `decision_on_error`.
"""

import inspect
import os
from collections.abc import Callable
from hashlib import sha256
from typing import Any, NamedTuple

import msgspec

from subluminal.canonical import encode

_PLAIN = frozenset({str, int, bool, float, type(None)})
_EASY = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class Arguments(NamedTuple):
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
        plain = given if _PLAIN.issuperset(map(type, given.values())) else _json_form(given)
        text = encode(plain)
    except Exception:  # noqa: BLE001 - a value's own code may raise anything
        # Nobody can tell whether two such calls are equal, so no two of them are.
        return Arguments(None, None, os.urandom(32).hex(), 0)
    args_hash = sha256(text).hexdigest()
    if len(text) > most_bytes:
        return Arguments(None, None, args_hash, len(text))
    return Arguments(plain, text, args_hash, len(text))


def _json_form(value: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(
        value, str_keys=True, order="deterministic", enc_hook=unusual
    )
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
        self.signature = inspect.signature(function)
        parameters = list(self.signature.parameters.values())
        is_method = _is_method(function, parameters)
        self._left_out = parameters[0].name if is_method else None
        kinds = {each.kind: each.name for each in parameters}
        self._rest = kinds.get(inspect.Parameter.VAR_KEYWORD)
        self._skipped = int(is_method)
        own = parameters[self._skipped :]
        self._is_easy = all(each.kind in _EASY for each in own)
        self._in_order = tuple(each.name for each in own if each.kind is _EASY[0])
        self.names = frozenset(each.name for each in own)
        """the names of the parameters, `self` left out"""
        self._defaults = {each.name: each.default for each in own if each.default is not each.empty}

    def bind(self, positional: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
        """Returns all arguments by name, defaults included. Raises TypeError as a call would."""
        if not self._is_easy:
            return self._by_signature(positional, named)
        # What follows does what `inspect` does, for plain parameters, ten times as fast.
        own = positional[1:] if self._skipped else positional
        if len(own) > len(self._in_order) or len(positional) < self._skipped:
            return self._by_signature(positional, named)
        found = self._defaults | dict(zip(self._in_order, own, strict=False))
        if named:
            if not self.names.issuperset(named) or not named.keys().isdisjoint(
                self._in_order[: len(own)]
            ):
                return self._by_signature(positional, named)
            found |= named
        if len(found) != len(self.names):
            return self._by_signature(positional, named)
        return found

    def _by_signature(self, positional: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
        bound = self.signature.bind(*positional, **named)
        bound.apply_defaults()
        found = dict(bound.arguments)
        if self._left_out is not None:
            del found[self._left_out]
        if self._rest is not None:
            rest = found.pop(self._rest)
            # A keyword that has the name of another parameter can only be one before a `/`.
            found = {**rest, **found}
        return found


def _is_method(function: Callable[..., Any], parameters: list[inspect.Parameter]) -> bool:
    """Whether the first parameter is the object or class that the function belongs to."""
    if not parameters or parameters[0].name not in ("self", "cls"):
        return False
    owner, _, _ = getattr(function, "__qualname__", "").rpartition(".")
    return bool(owner) and not owner.endswith("<locals>")
