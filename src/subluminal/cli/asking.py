"""Asks a person at the terminal: whether to go on, for a passphrase, for a secret's value."""

import os
import sys

from subluminal.config import env
from subluminal.config.places import Places
from subluminal.errors import SubluminalError, UsageError
from subluminal.operator.person import check_person

_MAX_PASSPHRASE_CHARS = 1_024


def is_at_terminal() -> bool:
    """Whether a person can be asked."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def agreed(question: str, *, default: bool = False) -> bool:
    """Asks once; an empty line means `default`, and end of file means no."""
    sys.stderr.write(f"{question} {'[Y/n]' if default else '[y/N]'} ")
    sys.stderr.flush()
    answer = sys.stdin.readline()
    if answer and not answer.strip():
        return default
    return answer.strip().lower() in ("y", "yes")


def need_person(what: str, places: Places) -> None:
    """Raises SubluminalError unless a person runs this command. `what` is the command as typed."""
    check_person(what, places, os.environ, lambda: read_passphrase("passphrase: ", what))


def need_step_up(what: str, places: Places) -> None:
    """Raises SubluminalError unless a person types this home's passphrase at the terminal.

    A descriptor is not read: a script could give it.
    """
    check_person(what, places, os.environ, _typed_passphrase, needs_passphrase=True)


def _typed_passphrase() -> str:
    if not is_at_terminal():
        raise SubluminalError(
            "the rule requires a step-up: the passphrase must be typed at a terminal",
            hint="run the command yourself in a terminal; no script can do it",
        )
    return read_hidden("passphrase: ")


def read_passphrase(prompt: str, what: str) -> str:
    """Reads a passphrase from the descriptor in SUB_PASSPHRASE_FD, else from the terminal."""
    name = env.SUB_PASSPHRASE_FD.name
    given = os.environ.get(name)
    if given:
        return _from_descriptor(given)
    if not sys.stdin.isatty():
        raise SubluminalError(
            f"`{what}` asks for this home's passphrase, and there is no terminal to type it at",
            hint=f"pass it on a descriptor: `{name}=3 {what} … 3<FILE`",
        )
    return read_hidden(prompt)


def read_hidden(prompt: str) -> str:
    """Reads a line from the terminal without showing it."""
    import getpass

    return getpass.getpass(prompt)


def _from_descriptor(given: str) -> str:
    name = env.SUB_PASSPHRASE_FD.name
    try:
        with open(int(given), encoding="utf-8") as file:
            return file.read(_MAX_PASSPHRASE_CHARS).rstrip("\n")
    except (OSError, ValueError):
        raise SubluminalError(
            f"`{name}={given}` is not a descriptor that can be read",
            hint=f"use `{name}=3 sub … 3<FILE`",
        ) from None


def new_passphrase(what: str) -> str:
    """Asks for a new passphrase, twice if it is typed."""
    typed = read_passphrase("new passphrase: ", what)
    if not typed.strip():
        raise UsageError("the passphrase must not be empty")
    is_typed = not os.environ.get(env.SUB_PASSPHRASE_FD.name)
    if is_typed and read_passphrase("repeat it: ", what) != typed:
        raise UsageError("the two passphrases differ")
    return typed
