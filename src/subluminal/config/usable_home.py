"""A home that can be written to: the wanted one, or a temporary one in its place."""

import os
import sys

from subluminal.config.places import Places, make_private_dir, places


def usable_home(wanted: Places) -> Places:
    """Returns the home; if it is not writable, another place with the home's policy and settings.

    If no place is writable, returns the home itself: `decision_on_error` then applies to each call
    (journal-first).
    """
    problem = problem_with(wanted)
    if problem is None:
        return wanted
    spare = _spare_home()
    if spare is None:
        sys.stderr.write(f"sub: cannot use `{wanted.home}` ({problem}); nothing is recorded\n")
        return wanted
    sys.stderr.write(f"sub: cannot use `{wanted.home}` ({problem}); recording to `{spare}`\n")
    where = places({}, spare)
    where.settings, where.policy, where.secrets = wanted.settings, wanted.policy, wanted.secrets
    return where


def problem_with(home: Places) -> str | None:
    """Returns why nothing can be recorded in a home; None if something can."""
    try:
        make_private_dir(home.state)
        make_private_dir(home.journal)
    except OSError as error:
        return (error.strerror or str(error)).lower()
    if os.access(home.state, os.W_OK) and os.access(home.journal, os.W_OK):
        return None
    return "it is not writable"


def _spare_home() -> str | None:
    """Returns a temporary directory that only this user can use; None if there is none."""
    import stat
    import tempfile

    home = os.path.join(tempfile.gettempdir(), f"subluminal-{os.getuid()}")
    try:
        make_private_dir(home)
        status = os.lstat(home)
        # Another user may have created it.
        if (
            not stat.S_ISDIR(status.st_mode)
            or status.st_uid != os.getuid()
            or status.st_mode & 0o77
        ):
            return tempfile.mkdtemp(prefix="subluminal-")
    except OSError:
        return None
    return home
