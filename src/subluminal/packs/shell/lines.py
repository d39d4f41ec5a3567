"""A payload of `terminal.run` as the shell reads it, without a look at the machine.

A host may run `command` with `args` in two ways: hand over the words as they are, or join them to
one line. Where these differ, both readings count.
"""

import os
import shlex
from functools import lru_cache
from typing import Any, NamedTuple

from subluminal.contracts.targets import Targets
from subluminal.core.targets.found import Found
from subluminal.core.targets.line import read_line
from subluminal.core.targets.literal import literal_commands
from subluminal.kernel.envelope import IntentEnvelope
from subluminal.packs.fields import member

HOME = "/~"
"""Stands for the home directory, which is not known here."""
MAX_COMMAND_CHARS = 65_536
"""Longest command with its arguments. Lines of more than 8 KiB are never run without a person."""
NOWHERE = "/~cwd"
"""Stands for the working directory of a payload that names none."""


class Reading(NamedTuple):
    """One line, read."""

    text: str
    literal: list[list[str]] | None
    """the words of its commands, if the line says exactly what runs"""
    targets: Targets
    """what the line runs and touches, commands in commands included"""
    cwd: str

    @property
    def is_clear(self) -> bool:
        """Whether everything that the line runs is known."""
        return not self.targets.opaque


def command_of(envelope: IntentEnvelope) -> tuple[str, list[str]] | None:
    """Returns the command and its arguments; None if there is no command, or one too long."""
    command: Any = member(envelope, "command")
    args: Any = member(envelope, "args")
    if not isinstance(command, str) or not command.strip():
        return None
    args = [] if args is None else args
    if not isinstance(args, list) or not all(isinstance(word, str) for word in args):
        return None
    is_long = len(command) + sum(map(len, args)) > MAX_COMMAND_CHARS
    return None if is_long else (command, args)


def cwd_of(envelope: IntentEnvelope) -> str:
    """Returns the working directory, without `..`."""
    cwd: Any = member(envelope, "cwd")
    return os.path.normpath(cwd) if isinstance(cwd, str) and cwd.startswith("/") else NOWHERE


def as_written(path: str) -> str:
    """Returns a path of a reading for people: below the home with `~`, or as it was named."""
    if path.startswith(f"{NOWHERE}/"):
        return path.removeprefix(f"{NOWHERE}/")
    return path[1:] if path.startswith(f"{HOME}/") else path


def readings(envelope: IntentEnvelope) -> list[Reading]:
    """Returns every way in which the payload may be read; none if it has no command."""
    found = command_of(envelope)
    if found is None:
        return []
    command, args = found
    texts = (" ".join([command, *args]), f"{command} {shlex.join(args)}")
    lines = dict.fromkeys(text.strip() for text in texts)
    return [_read(line, cwd_of(envelope)) for line in lines]


@lru_cache(maxsize=8)
def _read(text: str, cwd: str) -> Reading:
    """Reads a line once for all guards that ask. Readings are not changed."""
    found = Found(cwd, HOME, looks=False)
    read_line(text, found, (cwd,))
    return Reading(text, literal_commands(text), found.targets([]), cwd)


def is_within(path: str, roots: tuple[str, ...]) -> bool:
    """Whether a path without `..` is one of the directories, or below one."""
    return any(path == root or path.startswith(os.path.join(root, "")) for root in roots)
