"""Makes patterns for all the forms in which a secret value may be written.

The forms are raw, JSON-escaped (nested to any depth), URL-encoded, HTML-escaped, hexadecimal, and
base64 in both alphabets, at any alignment, wrapped at 16 columns or more. Patterns are byte
patterns in RE2's syntax (Latin-1). INVARIANT: a pattern contains the value, so it must never be
printed or reach an error message.
"""

from binascii import b2a_base64
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

MIN_ANYWHERE_CHARS = 6
"""A value of this length or more is masked wherever it occurs, in every form."""

MIN_ALONE_CHARS = 4
"""A shorter value of at least this length is masked only where it stands alone, raw.

Below this length a value is not masked at all: masking `1` or `on` would destroy every preview and
hide nothing.
"""

FRAGMENT_BYTES = 512
"""A longer value is searched for in pieces of this size, so that a part of it is found too."""

MIN_LINE_CHARS = 16
"""Lines of at least this length are searched for separately: a log may show only one of them."""

EXPANSION = 16
"""A form is at most this many times as long as the value: `\\\\x41` per byte, nested twice."""

LEFT_EDGE = rb"(?:^|[^0-9A-Za-z]|\\[nrtbf]|\\+u[0-9A-Fa-f]{4}|\\+x[0-9A-Fa-f]{2}|%[0-9A-Fa-f]{2})"
"""Where a word can begin in escaped text: the `n` of `\\n` does not belong to the next word."""

_ANCHOR = 8
"""Number of characters of a form that the prefilter searches for."""

_ALNUM = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
_PLAIN = _ALNUM | frozenset(b"-._~")
"""Bytes that no encoder escapes (RFC 3986, unreserved)."""

_SHORT_ESCAPES = {"\n": b"n", "\r": b"r", "\t": b"t", "\b": b"b", "\f": b"f"}
_ENTITIES = {"&": b"amp", "<": b"lt", ">": b"gt", '"': b"quot|#34", "'": b"apos|#39|#x27"}

# Bytes may be separated, as in dumps, or escaped one by one.
_HEX_GAP = rb"(?:[ :-]|\\+x|\\+u00|%)?"
_BASE64_EDGE = rb"[A-Za-z0-9+/_-]?"
_BASE64_WRAP = rb"(?:[\r\n]|\\+[rn])*"
_BASE64_ALSO = {
    ord("+"): rb"(?:[+-]|%2[bB]|\\+u002[bB])",
    ord("/"): rb"(?:\\*[/_]|%2[fF]|\\+u002[fF])",
}


class Form(NamedTuple):
    """One way of writing a value. The prefilter hits every text that the pattern hits."""

    prefilter: bytes
    pattern: Callable[[], bytes]
    """makes the pattern; called only when the prefilter hits, because patterns are large"""


def forms_of(value: str) -> list[Form]:
    """Returns the forms of a value; none if it is too short to be recognised in text."""
    if len(value) < MIN_ALONE_CHARS:
        return []
    if len(value) < MIN_ANYWHERE_CHARS:
        alone = LEFT_EDGE + b"(" + _written(value) + rb")(?:[^0-9A-Za-z]|$)"
        return [Form(_written(value), lambda: alone)]
    return [form for piece in _pieces(value) for form in _forms_of_piece(piece)]


def _pieces(value: str) -> list[str]:
    pieces = [value]
    if len(value) > FRAGMENT_BYTES:
        count = -(-len(value) // FRAGMENT_BYTES)
        size = -(-len(value) // count)
        pieces = [value[at : at + size] for at in range(0, len(value), size)]
    lines = [line.strip() for line in value.splitlines()]
    if len(lines) > 1:
        pieces += [line for line in lines if MIN_LINE_CHARS <= len(line) <= FRAGMENT_BYTES]
    return list(dict.fromkeys(pieces))


def _forms_of_piece(value: str) -> list[Form]:
    # The anchor is the end of a secret: tokens of one kind share their beginning.
    forms = [Form(_written(value[-_ANCHOR:]), partial(_written, value))]
    for raw in dict.fromkeys(_before_packing(value)):
        forms.append(Form(_hexadecimal(raw[-_ANCHOR:]), partial(_hexadecimal, raw)))
        anchors = [_base64_anchor(raw, shift) for shift in range(3)]
        forms.append(Form(b"|".join(anchors), partial(_base64_any, raw)))
    return forms


def _before_packing(value: str) -> list[bytes]:
    """Returns what an encoder may have been given: the value, or an escaped form of it."""
    raw = _bytes(value)
    if all(byte in _PLAIN for byte in raw):
        return [raw]
    import json  # needed only for values that an encoder escapes

    return [
        raw,
        json.dumps(value).encode()[1:-1],
        _bytes(json.dumps(value, ensure_ascii=False))[1:-1],
        b"".join(b"%c" % byte if byte in _PLAIN else b"%%%02X" % byte for byte in raw),
    ]


def _bytes(value: str) -> bytes:
    # A variable that is not UTF-8 reaches Python with surrogate escapes (PEP 383).
    return value.encode("utf-8", "surrogateescape")


def _written(value: str) -> bytes:
    return b"".join(_char(char) for char in value)


def _char(char: str) -> bytes:
    raw = _bytes(char)
    if len(raw) == 1 and raw[0] in _PLAIN:
        return _literal(raw)
    if char == "\\":
        # Nesting multiplies backslashes, so any number of them matches.
        return rb"(?:\\+|%(?:25)*5[cC]|\\+u005[cC])"
    ways = [
        rb"\\*" + _literal(raw) if char in "\"'/" else _literal(raw),
        b"".join(rb"%%(?:25)*%b" % _hex_byte(byte) for byte in raw),
        b"".join(rb"\\+u" + b"".join(map(_hex_byte, unit)) for unit in _utf16(char)),
        b"".join(rb"\\+x" + _hex_byte(byte) for byte in raw),
    ]
    if char == " ":
        ways.append(rb"\+")
    if char in _SHORT_ESCAPES:
        ways.append(rb"\\+" + _SHORT_ESCAPES[char])
    if char in _ENTITIES:
        ways.append(b"&(?:amp;)*(?:" + _ENTITIES[char] + b");")
    return b"(?:" + b"|".join(ways) + b")"


def _literal(raw: bytes) -> bytes:
    return b"".join(b"%c" % byte if byte in _ALNUM else rb"\x%02x" % byte for byte in raw)


def _utf16(char: str) -> list[bytes]:
    units = char.encode("utf-16-be", "surrogatepass")
    return [units[at : at + 2] for at in range(0, len(units), 2)]


def _hex_byte(byte: int) -> bytes:
    return b"(?i:%02x)" % byte


def _hexadecimal(raw: bytes) -> bytes:
    # The first byte includes its prefix; otherwise half an escape would be left.
    return rb"(?:\\+x|\\+u00|%)?" + _HEX_GAP.join(_hex_byte(byte) for byte in raw)


def _base64_any(raw: bytes) -> bytes:
    return b"|".join(_base64(raw, shift) for shift in range(3))


def _base64(raw: bytes, shift: int) -> bytes:
    own = _BASE64_WRAP.join(_BASE64_ALSO.get(c, b"%c" % c) for c in _base64_own(raw, shift))
    # The characters at the edges hold a few bits of the value, so they are masked too.
    before = _BASE64_EDGE if shift else b""
    return before + own + _BASE64_EDGE


def _base64_anchor(raw: bytes, shift: int) -> bytes:
    """Returns the end of the encoded value in two halves: a line break can split only one."""
    end = _base64_own(raw, shift)[-2 * _ANCHOR :]
    middle = len(end) // 2
    return b"|".join(
        b"".join(_BASE64_ALSO.get(c, b"%c" % c) for c in half)
        for half in (end[:middle], end[middle:])
    )


def _base64_own(raw: bytes, shift: int) -> bytes:
    """Returns the base64 characters that depend on the value alone.

    `shift` is the offset of the value within its first group of three bytes.
    """
    encoded = b2a_base64(b"\0" * shift + raw, newline=False)
    first = -(-8 * shift // 6)
    last = 8 * (shift + len(raw)) // 6
    return encoded[first:last]
