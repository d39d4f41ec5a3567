"""How wide the terminal is. `shutil` would tell too, and load four modules for it."""

import os

DEFAULT = 80


def terminal_width() -> int:
    """COLUMNS, else what the terminal says, else 80."""
    wish = os.environ.get("COLUMNS", "")
    if wish.isdecimal() and int(wish):
        return int(wish)
    for fd in (1, 2, 0):
        try:
            return os.get_terminal_size(fd).columns or DEFAULT
        except OSError:
            continue
    return DEFAULT
