"""Acts that only a person may do: refused inside an agent, and behind the home's passphrase.

The decision is local-is-not-trusted: an agent runs as the same user and can run `sub` too.
"""

import os
from collections.abc import Callable, Mapping

from subluminal.config.agent_environment import refuse_inside_agent
from subluminal.config.places import Places
from subluminal.errors import SubluminalError


def check_person(
    what: str,
    places: Places,
    environ: Mapping[str, str],
    read_passphrase: Callable[[], str],
    *,
    needs_passphrase: bool = False,
) -> None:
    """Raises SubluminalError unless a person acts.

    `what` is the command as a person types it. `read_passphrase` is called only if this home has a
    passphrase. With `needs_passphrase` a home without one is an error.
    """
    refuse_inside_agent(environ, what)
    # Looked for by name, so that homes without a passphrase do not load the hashing.
    if not os.path.lexists(os.path.join(places.state, "passphrase")):
        if needs_passphrase:
            raise SubluminalError(
                "the rule requires a step-up, and this home has no passphrase to ask for",
                hint="set one with `sub passphrase set`, then approve the call",
            )
        return
    from subluminal.core.controls.passphrase import matches

    if not matches(places.state, read_passphrase()):
        raise SubluminalError("wrong passphrase for this home")
