"""Plain JSON values: copied out of structs, mappings and tuples, and hashed canonically.

The kernel keeps payloads, details and records as plain JSON, so that what is written is what was
decided on. Everything here is bounded: no depth, cycle or number of values takes it down.
"""

import hashlib
from collections.abc import Mapping
from decimal import Decimal
from enum import StrEnum
from itertools import islice
from math import isfinite
from typing import Any

import msgspec

from subluminal.canonical import MAX_DEPTH, AmbiguousJSON, Profile, encode
from subluminal.kernel.taint import MAX_VALUES

_EXACT = frozenset({str, int, bool, float, type(None)})
_CONTAINERS = frozenset({dict, list, tuple})
_QUICK_DEPTH = 16
_QUICK_VALUES = 1000


def canonical_json(value: Any) -> bytes:
    """Writes a value as RFC 8785 does, with strings in NFC. Takes structs of the kernel too."""
    return encode(plain_json(value), Profile.JCS_NFC)


def sha256_canonical(value: Any) -> str:
    """Returns the SHA-256 of `canonical_json`, in lowercase hex."""
    return hashlib.sha256(canonical_json(value)).hexdigest()


def plain_json(root: Any) -> Any:
    """Copies a value into plain dicts, lists, strings and numbers. Bounded, without recursion.

    Raises AmbiguousJSON for a value that JSON does not have, and for one that is too deep, cyclic
    or too large.
    """
    try:
        return _quick_copy(root, _QUICK_DEPTH, [_QUICK_VALUES])
    except _Unusual:
        return _patient_copy(root)


class _Unusual(Exception):
    """The value is deep or large, or has a type that no JSON parser returns."""


def _quick_copy(value: Any, depth_left: int, values_left: list[int]) -> Any:
    """Copies a small value of exact JSON types, or of our own structs: nearly all values."""
    kind = type(value)
    if kind in _EXACT:
        return value
    if isinstance(value, msgspec.Struct):
        value, kind = members_of(value), dict
    elif isinstance(value, StrEnum):
        return str.__str__(value)
    if kind not in _CONTAINERS or not depth_left:
        raise _Unusual
    values_left[0] -= len(value)
    if values_left[0] < 0:
        raise _Unusual
    below = depth_left - 1
    if kind is not dict:
        return [_quick_copy(member, below, values_left) for member in value]
    copy = {}
    for name, member in value.items():
        if type(name) is not str:
            raise _Unusual
        copy[name] = _quick_copy(member, below, values_left)
    return copy


def _patient_copy(root: Any) -> Any:
    holder: list[Any] = [None]
    level: list[tuple[Any, Any, Any]] = [(holder, 0, root)]
    values_left = MAX_VALUES
    for _ in range(MAX_DEPTH + 2):
        below: list[tuple[Any, Any, Any]] = []
        for target, place, item in level:
            value = members_of(item) if isinstance(item, msgspec.Struct) else item
            if isinstance(value, Mapping):
                made: Any = {}
                # One more than allowed: a mapping may have items without end.
                for name, member in islice(value.items(), values_left + 1):
                    below.append((made, _new_name(made, name), member))
            elif isinstance(value, list | tuple):
                elements = _elements(value)
                made = [None] * len(elements)
                below += [(made, index, element) for index, element in enumerate(elements)]
            else:
                made = _plain_scalar(value)
            target[place] = made
            if len(below) > values_left:
                raise AmbiguousJSON(f"more than {MAX_VALUES} values")
        if not below:
            return holder[0]
        values_left -= len(below)
        level = below
    raise AmbiguousJSON(f"nested deeper than {MAX_DEPTH} levels")


def _elements(value: list[Any] | tuple[Any, ...]) -> list[Any]:
    """Returns the elements that a list or tuple has, whatever a subclass says of them."""
    return [*(list.__iter__(value) if isinstance(value, list) else tuple.__iter__(value))]


def _new_name(made: dict[str, Any], name: Any) -> str:
    """Makes room for a member and returns its plain name."""
    if not isinstance(name, str):
        raise AmbiguousJSON("a key is not a string")
    plain = str.__str__(name)
    if plain in made:
        raise AmbiguousJSON(f"the key {plain!a} is there twice")
    made[plain] = None
    return plain


def members_of(struct: msgspec.Struct) -> dict[str, Any]:
    """Returns the members of a struct as its JSON has them, one level deep."""
    config = struct.__struct_config__
    members: dict[str, Any] = {}
    if config.tag_field is not None:
        members[config.tag_field] = config.tag
    names = zip(struct.__struct_fields__, struct.__struct_encode_fields__, strict=True)
    for name, wire_name in names:
        value = getattr(struct, name)
        # The only default that our structs leave out is None.
        if value is not None or not config.omit_defaults:
            members[wire_name] = value
    return members


def _plain_scalar(value: Any) -> Any:
    if type(value) in _EXACT:
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int.__index__(value)
    if isinstance(value, float):
        return float.__float__(value)
    if isinstance(value, Decimal) and value.is_finite() and isfinite(float(value)):
        return float(value)
    raise AmbiguousJSON(f"a value of type `{type(value).__name__}` is not JSON")
