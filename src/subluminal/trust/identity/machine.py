"""What the machine itself knows: its user, and small files in which it describes itself.

Imports little, because `sub kill` and every shim load it.
"""

import os

from subluminal.config.plain_files import plain_file

_MAX_CHARS = 65_536


def local_user() -> str:
    """Returns the name of the user that this process runs as.

    The system is asked, not the environment, because an agent can set variables.
    """
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid {os.getuid()}"


def has_terminal() -> bool:
    """Returns True if a terminal controls this process, as in a person's shell."""
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC))
    except OSError:
        return False
    return True


def read_text(path: str) -> str | None:
    """Returns the text of a small file, without space around it; None if there is none."""
    try:
        with open(path, encoding="utf-8", errors="replace", opener=plain_file) as file:
            return file.read(_MAX_CHARS).strip() or None
    except OSError:
        return None
