"""Writes a value as canonical bytes in one of three profiles, and hashes it (canonical-profiles).

Three paths give the same bytes. Each is tried only where its result is certain:
plain: msgspec alone, where `_is_plain` shows that msgspec writes what the profile demands;
prepared: numbers are written here and msgspec writes the rest, for values with fractions;
exact: `_Writer` writes everything. It takes any depth up to MAX_DEPTH and any key order.
"""

import hashlib
import unicodedata
from collections.abc import Callable, Iterable
from decimal import Decimal
from enum import StrEnum
from typing import Any

import msgspec

from subluminal.canonical.numbers import write_fraction, write_int
from subluminal.canonical.parsing import MAX_DEPTH
from subluminal.errors import AmbiguousJSON


class Profile(StrEnum):
    """How a value is written. Profiles differ in key order, strings and very large numbers."""

    PACK = "pack"
    """Interface Pack 1.9: keys by code point; every number keeps its exact value"""
    JCS = "jcs"
    """RFC 8785: keys by UTF-16 code unit; numbers are doubles"""
    JCS_NFC = "jcs_nfc"
    """`jcs` over NFC-normalised strings"""


new_hash = hashlib.sha256().copy
"""Returns an empty SHA-256, for code on the path of every call. A copy is faster than a new hash:
OpenSSL looks the algorithm up, under locks, each time one is constructed."""

_encode_sorted = msgspec.json.Encoder(order="sorted").encode
_encode_string = msgspec.json.Encoder().encode
_PLAIN_INTEGER = 10**21
_DOUBLE_INTEGER = 2**53
# Far below any recursion limit, and far above the nesting of real arguments.
_PREPARED_DEPTH = 64
_MAX_VALUES = 2**22
"""More than any text of 8 MiB has. Lists that are nested and shared can stand for 2^64 values."""
_ALWAYS_PLAIN = frozenset({str, bool, type(None)})
_STRINGS = frozenset({str})


def encode(value: Any, profile: Profile = Profile.PACK, *, plain: bool = False) -> bytes:
    """Writes `value` canonically. `plain` is that of the Document which the value comes from."""
    if profile is Profile.PACK:
        # UTF-8's byte order is code point order, so msgspec's sorted keys are already right.
        if plain or _is_plain(value, _PLAIN_INTEGER):
            return _encode_plain(value)
        return _encode_prepared(value, profile)
    simple = _is_plain(value, _DOUBLE_INTEGER)
    text = _encode_plain(value) if simple else _encode_prepared(value, profile)
    # ASCII has one normal form and one key order.
    return text if text.isascii() else _Writer(profile).write(value)


def digest(value: Any, profile: Profile = Profile.PACK, *, plain: bool = False) -> str:
    """Returns the SHA-256 of the canonical bytes, in lowercase hex."""
    return hashlib.sha256(encode(value, profile, plain=plain)).hexdigest()


def args_hash(args: dict[str, Any] | None, *, plain: bool = False) -> str:
    """Returns the Pack's args_hash. A call without `arguments` has the hash of `{}`."""
    return digest({} if args is None else args, Profile.PACK, plain=plain)


def _encode_plain(value: Any) -> bytes:
    try:
        return _encode_sorted(value)
    except UnicodeEncodeError:
        raise AmbiguousJSON("a string has a lone surrogate") from None


def _is_plain(root: Any, limit: int) -> bool:
    """Whether msgspec writes `root` exactly as the profile demands. Bounded, without recursion."""
    stack = [root]
    depth_left, values_left = MAX_DEPTH, _MAX_VALUES
    while stack:
        # Breadth first, so that the number of rounds is the depth.
        if not depth_left:
            return False
        depth_left -= 1
        below: list[Any] = []
        for value in stack:
            kind = type(value)
            if kind in _ALWAYS_PLAIN or (kind is int and -limit < value < limit):
                continue
            if kind is dict and _STRINGS.issuperset(map(type, value)):
                below += value.values()
            elif kind is list:
                below += value
            else:
                return False
            if len(below) > values_left:
                raise _too_many()
        values_left -= len(below)
        stack = below
    return True


def _check_size(root: Any) -> None:
    """Raises AmbiguousJSON for more values than a slow path should walk."""
    level, values_left = [root], _MAX_VALUES
    for _ in range(MAX_DEPTH + 1):  # deeper ones are refused by the exact path
        below: list[Any] = []
        for value in level:
            if type(value) in _ALWAYS_PLAIN:
                continue
            if isinstance(value, dict):
                below += value.values()
            elif isinstance(value, list | tuple):
                below += value
            if len(below) > values_left:
                raise _too_many()
        if not below:
            return
        values_left -= len(below)
        level = below


def _too_many() -> AmbiguousJSON:
    return AmbiguousJSON(f"more than {_MAX_VALUES} values")


class _Unusual(Exception):
    """The value needs the exact path: it is deep, or has a type that no JSON parser returns."""


def _encode_prepared(value: Any, profile: Profile) -> bytes:
    """Writes the numbers here and leaves the rest to msgspec, for most values with fractions."""
    _check_size(value)
    try:
        prepared = _prepare(value, profile is Profile.PACK, _PREPARED_DEPTH)
    except _Unusual:
        return _Writer(profile).write(value)
    return _encode_plain(prepared)


def _prepare(item: Any, exact: bool, depth_left: int) -> Any:
    """Returns a copy in which every number is already text. Recursive, so the depth is bounded."""
    kind = type(item)
    if kind in _ALWAYS_PLAIN:
        return item
    if kind is int:
        return msgspec.Raw(write_int(item, exact=exact).encode())
    if kind is float or kind is Decimal:
        return msgspec.Raw(write_fraction(item, exact=exact).encode())
    if not depth_left:
        raise _Unusual
    if kind is list:
        return [_prepare(member, exact, depth_left - 1) for member in item]
    if kind is dict and _STRINGS.issuperset(map(type, item)):
        return {name: _prepare(member, exact, depth_left - 1) for name, member in item.items()}
    raise _Unusual


class _Written(bytes):
    """Punctuation and keys, already written. A subclass, because a caller's bytes are not JSON."""


_COMMA = _Written(b",")


class _Writer:
    """The exact path for one profile. Its stack is explicit, so that MAX_DEPTH bounds it."""

    def __init__(self, profile: Profile) -> None:
        self._exact = profile is Profile.PACK
        self._nfc = profile is Profile.JCS_NFC
        self._key_order: Callable[[str], Any] = _code_points if self._exact else _utf16_units

    def write(self, root: Any) -> bytes:
        out: list[bytes] = []
        stack: list[Any] = [iter((root,))]
        closers: list[bytes] = []
        while stack:
            item = next(stack[-1], _END)
            if item is _END:
                stack.pop()
                if closers:
                    out.append(closers.pop())
                continue
            if type(item) is _Written:
                out.append(item)
                continue
            opened = self._open(item)
            if opened is None:
                out.append(self._scalar(item))
                continue
            if len(closers) >= MAX_DEPTH:
                raise AmbiguousJSON(f"nested deeper than {MAX_DEPTH} levels")
            opener, closer, inner = opened
            out.append(opener)
            closers.append(closer)
            stack.append(inner)
        return b"".join(out)

    def _open(self, item: Any) -> tuple[bytes, bytes, Any] | None:
        if isinstance(item, dict):
            return b"{", b"}", self._members(item)
        if isinstance(item, list | tuple):
            return b"[", b"]", _separated(item)
        return None

    def _members(self, item: dict[str, Any]) -> Iterable[Any]:
        normal: dict[str, Any] = {}
        for key, value in item.items():
            if not isinstance(key, str):
                raise AmbiguousJSON("a key is not a string")
            name = self._normal(key)
            if name in normal:
                raise AmbiguousJSON(f"duplicate key {name!a} after normalisation")
            normal[name] = value
        try:
            names = sorted(normal, key=self._key_order)
        except UnicodeEncodeError:
            raise AmbiguousJSON("a key has a lone surrogate") from None
        for position, name in enumerate(names):
            yield _Written((b"," if position else b"") + self._string(name) + b":")
            yield normal[name]

    def _scalar(self, item: Any) -> bytes:
        if item is None:
            return b"null"
        if isinstance(item, bool):
            return b"true" if item else b"false"
        if isinstance(item, str):
            return self._string(self._normal(item))
        if isinstance(item, int):
            return write_int(item, exact=self._exact).encode()
        if isinstance(item, float | Decimal):
            return write_fraction(item, exact=self._exact).encode()
        raise AmbiguousJSON(f"a value of type `{type(item).__name__}` is not JSON")

    def _normal(self, text: str) -> str:
        return unicodedata.normalize("NFC", text) if self._nfc else text

    def _string(self, text: str) -> bytes:
        try:
            return _encode_string(text)
        except UnicodeEncodeError:
            raise AmbiguousJSON("a string has a lone surrogate") from None


_END = object()


def _separated(items: Iterable[Any]) -> Iterable[Any]:
    for position, item in enumerate(items):
        if position:
            yield _COMMA
        yield item


def _code_points(text: str) -> str:
    return text


def _utf16_units(text: str) -> bytes:
    return text.encode("utf-16-be")
