r"""Fits masks into JSON text, so that JSON stays JSON.

A mask could cut an escape in half, cover a quote that ends a string, or stand where a number was.
The functions work on a *view*: the text with every `\\` and `\"` blanked, byte for byte, so that
each remaining `"` is structure and each remaining `\` begins another escape.
"""

from collections.abc import Iterator

Span = tuple[int, int]

_STRUCTURE = frozenset(b',:{}[] \t\r\n"')
_PAIR_FIRST, _PAIR_SECOND = 0x01, 0x02
_PAIR = b"\x01\x02"
_LONGEST_ESCAPE = 6


def looks_like_json(data: bytes) -> bool:
    """Returns True if a text begins like JSON, so that masks must be fitted into it."""
    return data[:64].lstrip(b" \t\r\n")[:1] in (b"{", b"[", b'"')


def view_of(data: bytes) -> bytes:
    """Returns the view of a text; it has the same length."""
    return data.replace(b"\\\\", _PAIR).replace(b'\\"', _PAIR)


def whole_escapes(view: bytes, span: Span) -> Span:
    """Widens a span so that it cuts no escape in half."""
    start, end = span
    return _escape_start(view, start), _escape_end(view, end)


def whole_chars(data: bytes, span: Span) -> Span:
    """Widens a span so that it cuts no UTF-8 character in half."""
    start, end = span
    while start > 0 and data[start] & 0xC0 == 0x80:
        start -= 1
    while end < len(data) and data[end] & 0xC0 == 0x80:
        end += 1
    return start, end


def _escape_start(view: bytes, at: int) -> int:
    if view[at] == _PAIR_SECOND:
        return at - 1
    begin = view.rfind(b"\\", max(0, at - _LONGEST_ESCAPE + 1), at + 1)
    if begin < 0 or at >= _after_escape(view, begin):
        return at
    # Half a surrogate pair is not a character, so the other half is included.
    return begin - _LONGEST_ESCAPE if _is_pair(view, begin - _LONGEST_ESCAPE) else begin


def _escape_end(view: bytes, at: int) -> int:
    if view[at - 1] == _PAIR_FIRST:
        return at + 1
    begin = view.rfind(b"\\", max(0, at - _LONGEST_ESCAPE), at)
    if begin < 0 or at > _after_escape(view, begin):
        return at
    end = begin + 2 * _LONGEST_ESCAPE if _is_pair(view, begin) else _after_escape(view, begin)
    return min(end, len(view))


def _is_pair(view: bytes, at: int) -> bool:
    """Returns True if a surrogate pair, written as two escapes, begins here."""
    return (
        at >= 0
        and view[at : at + 3].lower() == b"\\ud"
        and view[at + 3 : at + 4].lower() in (b"8", b"9", b"a", b"b")
        and view[at + 6 : at + 9].lower() == b"\\ud"
        and view[at + 9 : at + 10].lower() in (b"c", b"d", b"e", b"f")
    )


def _after_escape(view: bytes, begin: int) -> int:
    return begin + (_LONGEST_ESCAPE if view[begin + 1 : begin + 2] == b"u" else 2)


def inside_one_string(view: bytes, span: Span) -> bool:
    """Returns True if a span lies within one string, which is the common and simple case."""
    start, end = span
    return view.find(b'"', start, end) < 0 and view.count(b'"', 0, start) % 2 == 1


def split_at_structure(view: bytes, span: Span) -> Iterator[tuple[Span, bool]]:
    """Yields the parts of a span that hold content, each with True if it is outside of strings.

    Brackets, commas, colons, quotes and space are structure, and are not part of any content. A
    part outside of strings is a whole number or literal; its mask needs quotes.
    """
    start, end = span
    in_string = view.count(b'"', 0, start) % 2 == 1
    while start < end:
        if in_string:
            quote = view.find(b'"', start, end)
            stop = end if quote < 0 else quote
            if stop > start:
                yield (start, stop), False
            start = stop + 1
            in_string = False
        elif view[start] in _STRUCTURE:
            in_string = view[start] == 0x22
            start += 1
        else:
            part = _scalar(view, start)
            yield part, True
            start = part[1]


def _scalar(view: bytes, at: int) -> Span:
    start = end = at
    while start > 0 and view[start - 1] not in _STRUCTURE:
        start -= 1
    while end < len(view) and view[end] not in _STRUCTURE:
        end += 1
    return start, end
