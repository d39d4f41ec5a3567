"""Characters that a terminal acts on or does not show, written out: the one list of the product.

Text from tools and agents may hold them: C1 controls that a terminal obeys like ESC sequences, bidi
controls that reorder a line, characters without width (local-is-not-trusted). Pure.

    shown       text for people: ESC becomes `\\x1b`
    json_shown  JSON text: U+009B becomes the escape `\\u009b`, which decodes to the same string
"""

RANGES = (
    (0x00, 0x1F),  # C0 controls
    (0x7F, 0x9F),  # DEL and C1 controls
    (0x061C, 0x061C),  # Arabic letter mark
    (0x200B, 0x200F),  # zero width, left-to-right and right-to-left marks
    (0x2028, 0x202E),  # line and paragraph separators, bidi embeddings and overrides
    (0x2060, 0x206F),  # word joiner, invisible operators, bidi isolates
    (0xD800, 0xDFFF),  # surrogates, which are not characters
    (0xFEFF, 0xFEFF),  # byte order mark
    (0xFFF9, 0xFFFB),  # interlinear annotations
    (0xFFFE, 0xFFFF),  # not characters
    (0xE0000, 0xE007F),  # tags
)


class _Escapes(dict[int, str]):
    """A table for `str.translate` that is filled as characters are met."""

    def __init__(self, written: "dict[str, str]", *, as_json: bool) -> None:
        super().__init__({ord(char): text for char, text in written.items()})
        self._as_json = as_json

    def __missing__(self, code: int) -> str:
        char = chr(code)
        if not any(first <= code <= last for first, last in RANGES):
            text = char
        elif self._as_json:
            text = "".join(f"\\u{unit:04x}" for unit in _units(code))
        else:
            text = char.encode("unicode_escape").decode()
        if len(self) < _MAX_KEPT:
            self[code] = text
        return text


_MAX_KEPT = 4_096
_KEPT = {"\t": "\t", "\n": "\n", "\r": "\r"}
_TEXT = _Escapes({}, as_json=False)
_LINES = _Escapes(_KEPT, as_json=False)
# JSON text has these characters only between its values: inside strings they are escaped.
_JSON = _Escapes(_KEPT, as_json=True)


def shown(text: str) -> str:
    """Returns text on one line, with control, ANSI, bidi and invisible characters written out."""
    if text.isascii() and text.isprintable():
        return text
    return text.translate(_TEXT)


def shown_lines(text: str) -> str:
    """Does the same for text of several lines: keeps tabs and newlines."""
    return text.translate(_LINES)


def json_shown(text: str) -> str:
    """Returns JSON text in which such characters are escapes. Its values stay the same."""
    if text.isascii() and "\x7f" not in text:
        return text
    return text.translate(_JSON)


def _units(code: int) -> tuple[int, ...]:
    """Returns the UTF-16 code units of a character: what an escape in JSON stands for."""
    if code < 0x10000:
        return (code,)
    code -= 0x10000
    return 0xD800 + (code >> 10), 0xDC00 + (code & 0x3FF)
