"""Reads JSON text strictly, and refuses text that two parsers may read differently.

Subluminal judges what it parsed, but the server acts on what it parsed: the two must agree
(canonical-profiles, byte-transparent).

The fast path is msgspec and a proof. If the text has no fractions, writing the value again can
only give a shorter text, and gives one if msgspec dropped a duplicate key. So equal lengths prove
that no key was lost. All other text goes to the exact path, which looks at every pair.
"""

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from subluminal.canonical.numbers import read_fraction
from subluminal.errors import AmbiguousJSON

MAX_DEPTH = 512
"""Nesting of containers. Deeper text is refused before it can exhaust a parser."""

_LONG_INTEGER = b"0" * 22
_DIGITS = bytes(ord("0") if chr(byte).isdigit() and byte < 128 else 0 for byte in range(256))
"""Maps every digit to 0. A search for 22 digits is then a search for text, seven times as fast."""
_CONTAINERS = (dict, list)
_encode = msgspec.json.Encoder().encode


class Document(NamedTuple):
    """A parsed value. `plain` means: no fraction, and no integer of more than 21 digits."""

    value: Any
    plain: bool


class _HasFraction(Exception):
    """Leaves the fast path's decoder."""


NOT_PLAIN = (_HasFraction, msgspec.MsgspecError, RecursionError, UnicodeDecodeError)
"""What a plain decoder raises. The text may still be valid: the exact path has to look at it."""


def _leave_fast_path(_literal: str) -> Any:
    raise _HasFraction


def plain_decoder(shape: Any) -> Callable[[bytes], Any]:
    """Returns a decoder of the fast path, for text that `may_be_plain`. It raises one of NOT_PLAIN.

    A decoded value is proven only if, written again, it is as long as the text.
    """
    return msgspec.json.Decoder(shape, float_hook=_leave_fast_path).decode


_decode_plain = plain_decoder(Any)


def may_be_plain(text: bytes) -> bool:
    """Whether the fast path may read a text: not too deep, and no integer of 22 digits or more."""
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
    """Whether counting brackets is enough to know that a text is not too deep."""
    # Each level takes two bytes, so a short text cannot be too deep.
    return len(text) <= 2 * MAX_DEPTH or text.count(b"{") + text.count(b"[") <= MAX_DEPTH


def _is_shallow(value: Any) -> bool:
    """Whether a value with many containers is still nested at most MAX_DEPTH deep."""
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
    import json  # takes 13 ms to load, and most shims never need it

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
        # CPython bounds the digits of an integer. json.loads raises no other ValueError.
        raise AmbiguousJSON("an integer has too many digits") from None
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


# The closing quote is optional. So an unclosed string is one match up to the end of the text, not a
# failed search from each quote inside it, which would take quadratic time (linear-patterns).
# Not compiled at import: few texts come this far, and every shim would start later.
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
    # In valid UTF-8, only an escape can contain a lone surrogate.
    if "\\u" not in characters:
        return
    try:
        _encode(value)
    except UnicodeEncodeError:
        raise AmbiguousJSON("a string has a lone surrogate") from None
