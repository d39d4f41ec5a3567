"""The command that a client runs as a hook: `sub hook CLIENT …`, as words or as a line for a shell.

Recognising it is as strict as recognising a wrapper: what merely looks similar belongs to someone
else.
"""

import os
import re
import shlex
from collections.abc import Sequence
from typing import NamedTuple

from subluminal.importer.wrapper import PROGRAM_NAMES

_OPTIONS = ("--home", "--policy", "--on-error")
# Codex and Gemini CLI run the call after exit code 2 unless there is a text on stderr.
_REFUSAL = " || { echo 'subluminal: the hook failed, so the call is refused' >&2; exit 2; }"
_REFUSES = re.compile(r"\s*\|\|\s*(?:\{ echo '[^']*' >&2; exit 2; \}|exit 2)\s*$")


class HookCommand(NamedTuple):
    """The command of one hook."""

    program: str
    client: str
    event: str | None = None
    """given where the event's JSON does not name it"""
    home: str | None = None
    policy: str | None = None
    """added by the user, like `on_error`; kept when the hook is refreshed"""
    on_error: str | None = None
    refuses_on_failure: bool = False
    """whether a failure of the command becomes exit code 2, which clients take for a refusal"""

    def words(self) -> list[str]:
        """Returns the command line."""
        words = [self.program, "hook", self.client]
        if self.event:
            words.append(self.event)
        values = (self.home, self.policy, self.on_error)
        for name, value in zip(_OPTIONS, values, strict=True):
            if value:
                words += [name, value]
        return words

    def line(self) -> str:
        """Returns the command line for a shell."""
        return shlex.join(self.words()) + (_REFUSAL if self.refuses_on_failure else "")


def recognise_line(line: str, client: str) -> HookCommand | None:
    """Returns the hook that a shell would run; None if the line does anything else."""
    ending = _REFUSES.search(line)
    try:
        words = shlex.split(line[: ending.start()] if ending else line)
    except ValueError:
        return None
    found = recognise_words(words, client)
    return found._replace(refuses_on_failure=ending is not None) if found else None


def recognise_words(words: Sequence[str], client: str) -> HookCommand | None:
    """Returns the hook that a command line runs; None if it runs anything else."""
    if len(words) < 3 or os.path.basename(words[0]) not in PROGRAM_NAMES:
        return None
    if list(words[1:3]) != ["hook", client]:
        return None
    values: dict[str, str] = {}
    events: list[str] = []
    rest = list(words[3:])
    while rest:
        name, equals, value = rest.pop(0).partition("=")
        if not name.startswith("-"):
            events.append(name + equals + value)
            continue
        if name not in _OPTIONS or (not equals and not rest):
            return None
        values[name] = value if equals else rest.pop(0)
    if len(events) > 1:
        return None
    event = events[0] if events else None
    home, policy, on_error = (values.get(name) for name in _OPTIONS)
    return HookCommand(words[0], client, event, home, policy, on_error)
