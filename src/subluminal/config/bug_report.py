"""Writes what a maintainer needs to find a bug of ours. Loaded only when there is one."""

import os
import platform
import sys
import tempfile
import traceback

from subluminal import __version__
from subluminal.clock import now, rfc3339
from subluminal.config import env
from subluminal.config.places import Places, make_private_dir, places


def write_bug_report(
    bug: BaseException, words: list[str], where: Places | None = None
) -> str | None:
    """Returns the report's path; None if it could be written nowhere."""
    trace = "".join(traceback.format_exception(bug))
    if os.environ.get(env.SUB_DEBUG.name):
        sys.stderr.write(trace)
    at = rfc3339(now().wall_ms)
    # The command's name only: its arguments are the user's own business.
    text = (
        f"sub {__version__} on Python {platform.python_version()}, {platform.platform()}\n"
        f"at {at}, command `{' '.join(words[:1])}`\n\n{trace}"
    )
    name = f"bug-{at.replace(':', '')}-{os.getpid()}.txt"
    for directory in ((where or places(os.environ)).reports, tempfile.gettempdir()):
        try:
            path = os.path.join(make_private_dir(directory), name)
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with open(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
                file.write(text)
        except OSError:
            continue  # a full disk has room for the name alone
        return path
    return None
