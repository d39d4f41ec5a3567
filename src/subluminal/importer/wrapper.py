"""The wrapper's command line: how it is written, and how it is known again.

Recognition is strict: a program called `sub`, then the exact shape that `sub shim stdio` takes.
What merely resembles it is someone else's command, and is wrapped like any other.
"""

import os
from collections.abc import Sequence
from typing import NamedTuple

SHIM_WORDS = ("shim", "stdio")
PROGRAM_NAMES = ("sub", "sub.exe")
_OPTIONS = ("--server", "--policy", "--home")


class Wrapper(NamedTuple):
    """What stands before a server's own command."""

    program: str
    server: str
    home: str | None = None
    policy: str | None = None
    """written by hand; kept when the wrapper is refreshed"""

    def words(self) -> list[str]:
        """The command line up to and with `--`."""
        words = [self.program, *SHIM_WORDS, "--server", self.server]
        if self.home:
            words += ["--home", self.home]
        if self.policy:
            words += ["--policy", self.policy]
        return [*words, "--"]


class Wrapped(NamedTuple):
    """A recognised wrapper, and how many words it takes. Wrappers inside wrappers count along."""

    wrapper: Wrapper
    length: int


def recognise(words: Sequence[str]) -> Wrapped | None:
    """Returns the wrapper that a command line starts with."""
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
