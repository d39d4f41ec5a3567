"""Makes sure that a person asks: not inside an agent, and with the home's passphrase (local-is-not-trusted)."""

import os
import sys

from subluminal.config import env
from subluminal.config.agent_environment import refuse_inside_agent
from subluminal.config.places import Places
from subluminal.errors import SubluminalError

_MAX_CHARS = 1_024


def need_person(what: str, places: Places) -> None:
    """Raises unless a person asks. `what` is the command, as it is typed."""
    refuse_inside_agent(os.environ, what)
    if not os.path.lexists(os.path.join(places.state, "passphrase")):
        return
    from subluminal.core.controls.passphrase import matches

    if not matches(places.state, read_passphrase("passphrase: ", what)):
        raise SubluminalError("that is not the passphrase of this home")


def read_passphrase(prompt: str, what: str) -> str:
    """From the descriptor that SUB_PASSPHRASE_FD names, else typed at a terminal."""
    given = os.environ.get(env.SUB_PASSPHRASE_FD.name)
    if given:
        return _from_descriptor(given)
    if not sys.stdin.isatty():
        raise SubluminalError(
            f"`{what}` asks for this home's passphrase, and there is no terminal to type it at",
            hint=f"or pass it on a descriptor: `{env.SUB_PASSPHRASE_FD.name}=3 {what} … 3<FILE`",
        )
    import getpass

    return getpass.getpass(prompt)


def _from_descriptor(given: str) -> str:
    try:
        with open(int(given), encoding="utf-8") as file:
            return file.read(_MAX_CHARS).rstrip("\n")
    except (OSError, ValueError):
        raise SubluminalError(
            f"`{env.SUB_PASSPHRASE_FD.name}={given}` is no descriptor to read from",
            hint=f"`{env.SUB_PASSPHRASE_FD.name}=3 sub … 3<FILE`",
        ) from None
