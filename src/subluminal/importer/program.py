"""Which `sub` wrappers should name: the absolute path of the one that runs now."""

import os
import shutil
import sys

from subluminal.config.places import Places
from subluminal.errors import SubluminalError
from subluminal.importer.wrapper import PROGRAM_NAMES
from subluminal.importer.wrapping import Installation


def our_installation(places: Places, user_home: str, argv0: str | None = None) -> Installation:
    """Returns what wrappers of this installation say."""
    default = os.path.join(user_home, ".subluminal")
    home = None if os.path.realpath(places.home) == os.path.realpath(default) else places.home
    return Installation(find_program(sys.argv[0] if argv0 is None else argv0), home)


def find_program(argv0: str) -> str:
    """The path is not resolved: a link in a `bin` folder outlives the version behind it."""
    candidates = []
    if os.path.basename(argv0) in PROGRAM_NAMES:
        candidates.append(argv0 if os.sep in argv0 else shutil.which(argv0))
    candidates += [os.path.join(os.path.dirname(sys.executable), "sub"), shutil.which("sub")]
    for candidate in candidates:
        if candidate and os.path.isfile(candidate) and os.access(candidate, os.X_OK):
            return os.path.abspath(candidate)
    raise SubluminalError(
        "cannot find the `sub` program that clients should start",
        hint="install it, e.g. with `pipx install subluminal`",
    )
