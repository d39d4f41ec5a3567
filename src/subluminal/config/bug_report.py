"""Writes a report about a bug in Subluminal. Imported only when there is one."""

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
    """Writes a report and returns its path; None if it could not be written anywhere."""
    trace = "".join(traceback.format_exception(bug))
    if os.environ.get(env.SUB_DEBUG.name):
        sys.stderr.write(trace)
    at = rfc3339(now().wall_ms)
    # Only the command's name, because its arguments are private.
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
            continue  # for example, the disk is full
        return path
    return None
