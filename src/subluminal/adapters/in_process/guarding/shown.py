"""What a result looks like in the record: JSON, and no more of it than a preview can use.

A function may return gigabytes. Only as much is encoded as a preview looks at.
"""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any

import msgspec
from msgspec import Struct

from subluminal.adapters.in_process.guarding.arguments import unusual

_SMALL = frozenset({int, bool, float, type(None)})
_PER_ITEM = 2
"""Least bytes that an item of a list takes: a digit and a comma."""


class Shown(Struct, frozen=True):
    """A result as JSON."""

    text: bytes
    size: int
    """how large the whole is, as far as that is known without encoding it"""


def shown(value: Any, most: int) -> Shown:
    """Returns a result as JSON, cut after about `most` bytes; of a part without JSON, its type."""
    kind = type(value)
    try:
        if (kind is str and len(value) <= most) or kind in _SMALL:
            text = msgspec.json.encode(value)
            return Shown(text, len(text))
        if kind is str or kind is bytes:
            size = len(value) + 2 if kind is str else 4 * -(-len(value) // 3) + 2
            return Shown(msgspec.json.encode(value[: max(most, 1)]), size)
        text = msgspec.json.encode(_cut(value, _Left(most)), enc_hook=_unusual)
    except Exception:  # noqa: BLE001 - the call has run, whatever its result is
        text = msgspec.json.encode(_type_of(value))
    return Shown(text, len(text))


def _unusual(value: Any) -> Any:
    """Returns the form of a part that msgspec does not know; its type, if it has no form."""
    try:
        return unusual(value)
    except Exception:  # noqa: BLE001 - a value's own code may raise anything
        return _type_of(value)


def _type_of(value: Any) -> str:
    return f"a value of type {type(value).__name__}"


class _Left:
    """How many bytes may still be used."""

    def __init__(self, most: int) -> None:
        self.most = most


def _cut(value: Any, left: _Left) -> Any:
    """Returns a value with as many of its parts as there is room for."""
    if isinstance(value, str | bytes | bytearray | memoryview):
        part = value[: max(left.most, 1)]
        left.most -= len(part) + _PER_ITEM
        return part
    left.most -= _PER_ITEM
    if isinstance(value, Mapping):
        return {_key(key, left): _cut(each, left) for key, each in _while_room(value.items(), left)}
    if isinstance(value, Sequence | Set):
        return [_cut(each, left) for each in _while_room(value, left)]
    if getattr(type(value), "__pydantic_root_model__", False):
        return _cut(value.root, left)
    fields = _fields(value)
    if fields is not None:
        return {name: _cut(each, left) for name, each in _while_room(fields.items(), left)}
    return value


def _key(key: Any, left: _Left) -> Any:
    return _cut(key, left) if isinstance(key, str) else key


def _while_room(items: Any, left: _Left) -> Iterator[Any]:
    for each in items:
        if left.most <= 0:
            return
        yield each


def _fields(value: Any) -> dict[str, Any] | None:
    """Returns the fields of a dataclass, an attrs class, a struct or a model of pydantic."""
    kind = type(value)
    if dataclasses.is_dataclass(kind):
        names = [each.name for each in dataclasses.fields(kind)]
    elif hasattr(kind, "__attrs_attrs__"):
        names = [each.name for each in kind.__attrs_attrs__]
    elif hasattr(kind, "__struct_fields__"):
        names = list(kind.__struct_fields__)
    elif hasattr(kind, "__pydantic_fields__"):
        names = [name for name, each in kind.__pydantic_fields__.items() if not each.exclude]
    else:
        return None
    return {name: getattr(value, name) for name in names if hasattr(value, name)}
