"""Strict JSON text to a value. What two parsers may read differently is refused (canonical-profiles, byte-transparent).

The fast path is msgspec and a proof: without fractions, re-encoding can only shrink the text, and
it shrinks if a key was dropped. So equal length means that no duplicate key was silently lost.
Everything else goes to the exact path, which looks at every pair.
"""

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from subluminal.canonical.numbers import read_fraction
from subluminal.errors import AmbiguousJSON

MAX_DEPTH = 512
"""Containers inside containers; deeper text is refused before it can exhaust a parser."""

_LONG_INTEGER = b"0" * 22
_DIGITS = bytes(ord("0") if chr(byte).isdigit() and byte < 128 else 0 for byte in range(256))
"""Every digit to a 0: a search for 22 of them is then a search for text, seven times as fast."""
_CONTAINERS = (dict, list)
_encode = msgspec.json.Encoder().encode


class Document(NamedTuple):
    """A parsed value. `plain`: no fraction, and no integer that needs care when written."""

    value: Any
    plain: bool


class _HasFraction(Exception):
    """Raised inside the fast path's decoder, to leave it."""


NOT_PLAIN = (_HasFraction, msgspec.MsgspecError, RecursionError, UnicodeDecodeError)
"""What a plain decoder raises where the exact path has to look: it says what is wrong, if it is."""


def _leave_fast_path(_literal: str) -> Any:
    raise _HasFraction


def plain_decoder(shape: Any) -> Callable[[bytes], Any]:
    """A decoder of the fast path, for text that `may_be_plain`. Raises one of NOT_PLAIN.

    What it gives is proven only when everything in it, written again, is as long as the text.
    """
    return msgspec.json.Decoder(shape, float_hook=_leave_fast_path).decode


_decode_plain = plain_decoder(Any)


def may_be_plain(text: bytes) -> bool:
    """Whether the fast path may read a text: certainly not too deep, and no integer needs care."""
    return _is_flat(text) and _LONG_INTEGER not in text.translate(_DIGITS)


def parse(text: bytes) -> Document:
    """Reads JSON text, or raises AmbiguousJSON."""
    if _LONG_INTEGER not in text.translate(_DIGITS):
        try:
            value = _decode_plain(text)
        except NOT_PLAIN:
            pass
        else:
            if len(_encode(value)) == len(text) and (_is_flat(text) or _is_shallow(value)):
                return Document(value, True)
    return Document(_parse_exactly(text), False)


def _is_flat(text: bytes) -> bool:
    """Whether its brackets alone show that a text is not too deep."""
    # Each level takes two bytes, so a short text need not be counted.
    return len(text) <= 2 * MAX_DEPTH or text.count(b"{") + text.count(b"[") <= MAX_DEPTH


def _is_shallow(value: Any) -> bool:
    """Whether a value that has many containers has not too many inside of each other."""
    level = [value] if type(value) in _CONTAINERS else []
    for _ in range(MAX_DEPTH):
        if not level:
            return True
        level = [
            inner
            for each in level
            for inner in (each.values() if type(each) is dict else each)
            if type(inner) in _CONTAINERS
        ]
    return not level


def _parse_exactly(text: bytes) -> Any:
    import json  # costs 13 ms to load, and most shims never need it

    try:
        characters = text.decode("utf-8")
    except UnicodeDecodeError as error:
        raise AmbiguousJSON(f"byte {error.start} is not UTF-8") from None
    if characters.startswith("\ufeff"):
        raise AmbiguousJSON("JSON text must not start with a byte order mark")
    _check_depth(characters)
    try:
        value = json.loads(
            characters,
            parse_float=read_fraction,
            parse_constant=_refuse_constant,
            object_pairs_hook=_object_of,
        )
    except json.JSONDecodeError as error:
        raise AmbiguousJSON(
            f"not JSON: {error.msg.lower().removesuffix(' at')}"
            f" at line {error.lineno} column {error.colno}"
        ) from None
    except ValueError:
        # CPython bounds the digits of an integer; no other ValueError comes out of json.loads.
        raise AmbiguousJSON("an integer has more digits than we read") from None
    _check_surrogates(characters, value)
    return value


def _object_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        last = {key: position for position, (key, _) in enumerate(pairs)}
        twice = next(key for position, (key, _) in enumerate(pairs) if last[key] != position)
        raise AmbiguousJSON(f"duplicate key {twice!a}")
    return result


def _refuse_constant(name: str) -> Any:
    raise AmbiguousJSON(f"{name} is not JSON")


# The closing quote is optional: a string that never ends is one match to the end of the text, not
# a failed search from each quote inside it, which would take quadratic time (linear-patterns).
# Not compiled here: few texts come this far, and every shim would wait for it at its start.
_BRACKETS = r'"[^"\\]*(?:\\.[^"\\]*)*"?|[\[\]{}]'


def _check_depth(characters: str) -> None:
    if characters.count("{") + characters.count("[") <= MAX_DEPTH:
        return
    depth = 0
    for found in re.finditer(_BRACKETS, characters, re.DOTALL):
        mark = characters[found.start()]
        if mark in "[{":
            depth += 1
            if depth > MAX_DEPTH:
                raise AmbiguousJSON(f"nested deeper than {MAX_DEPTH} levels")
        elif mark != '"':
            depth -= 1


def _check_surrogates(characters: str, value: Any) -> None:
    # Only an escape can smuggle a lone surrogate into valid UTF-8.
    if "\\u" not in characters:
        return
    try:
        _encode(value)
    except UnicodeEncodeError:
        raise AmbiguousJSON("a string has a lone surrogate") from None
