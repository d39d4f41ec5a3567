"""The wrapper: the words before a server's own command that start it through our shim.

Recognising a wrapper is strict: a program called `sub`, then exactly the options that `sub shim
stdio` takes. A command that merely looks similar belongs to someone else, and is wrapped like any
other.
"""

import os
import shutil
import sys
from collections.abc import Sequence
from typing import NamedTuple

from subluminal.config.places import Places
from subluminal.errors import SubluminalError

SHIM_WORDS = ("shim", "stdio")
PROGRAM_NAMES = ("sub", "sub.exe")
_OPTIONS = ("--server", "--policy", "--home")


class Wrapper(NamedTuple):
    """The wrapper of one server."""

    program: str
    server: str
    home: str | None = None
    policy: str | None = None
    """added by the user; kept when the wrapper is refreshed"""

    def words(self) -> list[str]:
        """Returns the command line up to and including `--`."""
        words = [self.program, *SHIM_WORDS, "--server", self.server]
        if self.home:
            words += ["--home", self.home]
        if self.policy:
            words += ["--policy", self.policy]
        return [*words, "--"]


class Wrapped(NamedTuple):
    """A recognised wrapper, and how many words it takes, including wrappers inside it."""

    wrapper: Wrapper
    length: int


def recognise(words: Sequence[str]) -> Wrapped | None:
    """Returns the wrapper that a command line starts with; None if it is not wrapped."""
    found = _recognise_one(words)
    if found is None:
        return None
    inner = recognise(words[found.length :])
    if inner is None:
        return found
    return Wrapped(found.wrapper, found.length + inner.length)


def _recognise_one(words: Sequence[str]) -> Wrapped | None:
    if len(words) < 4 or os.path.basename(words[0]) not in PROGRAM_NAMES:
        return None
    if tuple(words[1:3]) != SHIM_WORDS:
        return None
    values: dict[str, str] = {}
    at = 3
    while at < len(words) and words[at] != "--":
        name, equals, value = words[at].partition("=")
        if name not in _OPTIONS or (not equals and at + 1 >= len(words)):
            return None
        values[name] = value if equals else words[at + 1]
        at += 1 if equals else 2
    if at + 1 >= len(words) or not values.get("--server"):
        return None
    wrapper = Wrapper(words[0], values["--server"], values.get("--home"), values.get("--policy"))
    return Wrapped(wrapper, at + 1)


class Installation(NamedTuple):
    """The `sub` program that wrappers name, and its home if that is not the default."""

    program: str
    home: str | None


def our_installation(places: Places, user_home: str, argv0: str | None = None) -> Installation:
    """Returns the installation that is running now."""
    default = os.path.join(user_home, ".subluminal")
    home = None if os.path.realpath(places.home) == os.path.realpath(default) else places.home
    return Installation(find_program(sys.argv[0] if argv0 is None else argv0), home)


def find_program(argv0: str) -> str:
    """Returns the absolute path of the running `sub`.

    Symbolic links are not resolved: a link in a `bin` folder outlives the version it points to.
    """
    candidates = []
    if os.path.basename(argv0) in PROGRAM_NAMES:
        candidates.append(argv0 if os.sep in argv0 else shutil.which(argv0))
    candidates += [os.path.join(os.path.dirname(sys.executable), "sub"), shutil.which("sub")]
    for candidate in candidates:
        if candidate and os.path.isfile(candidate) and os.access(candidate, os.X_OK):
            return os.path.abspath(candidate)
    raise SubluminalError(
        "cannot find the `sub` program for clients to start",
        hint="install it where it can be found, for example with `pipx install subluminal`",
    )
