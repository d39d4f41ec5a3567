"""Prints for every command: data to stdout, talk to stderr, colour only on a terminal.

Text from tools and agents goes through `shown` first, because a terminal would act on its control
characters (local-is-not-trusted).
"""

import os
import sys
from typing import Any, TextIO

from subluminal.visible import json_shown, shown

__all__ = ["Output", "shown", "terminal_width"]

_COLOURS = {
    "red": "31",
    "green": "32",
    "yellow": "33",
    "blue": "34",
    "magenta": "35",
    "cyan": "36",
    "bold": "1",
    "dim": "2",
}
_DEFAULT_WIDTH = 80


class Output:
    """The two streams of one command."""

    def __init__(self, stdout: TextIO | None = None, stderr: TextIO | None = None) -> None:
        self._out = stdout or sys.stdout
        self._err = stderr or sys.stderr
        self.out_is_terminal = self._out.isatty()
        self.err_is_terminal = self._err.isatty()
        self._colour_out = self.out_is_terminal and _wants_colour()
        self._colour_err = self.err_is_terminal and _wants_colour()

    def line(self, text: str = "") -> None:
        """Prints a line of data."""
        self._out.write(text + "\n")

    def data(self, raw: bytes) -> None:
        """Prints bytes unchanged, after everything printed so far."""
        self._out.flush()
        self._out.buffer.write(raw)
        self._out.buffer.flush()

    def json(self, value: Any) -> None:
        """Prints one value as a line of JSON."""
        import msgspec  # 25 ms that plain output does not need

        self.json_text(msgspec.json.encode(value).decode())

    def json_text(self, text: str) -> None:
        """Prints JSON text as a line, in a form that a terminal cannot act on."""
        self._out.write(json_shown(text) + "\n")

    def talk(self, text: str) -> None:
        """Prints a line for the person, beside the data."""
        self._err.write(text + "\n")

    def progress(self, text: str = "") -> None:
        """Shows the progress of long work on one line of a terminal; clears it without a text."""
        if self.err_is_terminal:
            self._err.write(f"\r\x1b[K{text}")
            self._err.flush()

    def error(self, message: str, hint: str | None = None) -> None:
        """Prints what is wrong, and what to do about it."""
        self._complain("error", "red", message, hint)

    def warning(self, message: str, hint: str | None = None) -> None:
        """Prints what may be wrong, and what to do about it."""
        self._complain("warning", "yellow", message, hint)

    def paint(self, text: str, colour: str) -> str:
        """Colours text for stdout. Without a terminal the text is unchanged."""
        return self._paint(text, colour, self._colour_out)

    def _complain(self, word: str, colour: str, message: str, hint: str | None) -> None:
        self._err.write(f"{self._paint(word, colour, self._colour_err)}: {shown(message)}\n")
        if hint:
            self._err.write(f"{self._paint('hint', 'cyan', self._colour_err)}: {shown(hint)}\n")

    @staticmethod
    def _paint(text: str, colour: str, wanted: bool) -> str:
        return f"\x1b[{_COLOURS[colour]}m{text}\x1b[0m" if wanted else text


def _wants_colour() -> bool:
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def terminal_width() -> int:
    """Returns COLUMNS, else the terminal's width, else 80. `shutil` would load four modules."""
    wish = os.environ.get("COLUMNS", "")
    if wish.isdecimal() and int(wish):
        return int(wish)
    for fd in (1, 2, 0):
        try:
            return os.get_terminal_size(fd).columns or _DEFAULT_WIDTH
        except OSError:
            continue
    return _DEFAULT_WIDTH
