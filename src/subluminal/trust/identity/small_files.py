"""Files that a machine tells of itself by: read up to a bound, and never waited for."""

import os

_MAX_CHARS = 65_536


def read_text(path: str) -> str | None:
    """A small file's text without the space around it; None if there is none."""
    try:
        with open(path, encoding="utf-8", errors="replace", opener=open_unblocked) as file:
            return file.read(_MAX_CHARS).strip() or None
    except OSError:
        return None


def open_unblocked(path: str, flags: int) -> int:
    """For open(): a pipe in a file's place must not hold up a server's start."""
    return os.open(path, flags | os.O_NONBLOCK)
