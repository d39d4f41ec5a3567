"""The installed packs, as policies that are being compiled ask for them.

A pack is loaded once in a process, when somebody first asks for it: the code that decides is the
code whose fingerprint was taken. What cannot be loaded is tried again.
"""

from functools import cache
from typing import Any

from subluminal.core.intents.packs import LoadedPack, PackProblem, load_pack
from subluminal.kernel.packs import Pack
from subluminal.kernel.plain import plain_json
from subluminal.kernel.refusals import told
from subluminal.policy.packs import KnownPack, UnknownPack


@cache
def loaded(name: str) -> LoadedPack:
    """Returns an installed pack. Raises PackProblem."""
    return load_pack(name)


def find_pack(name: str) -> KnownPack | UnknownPack:
    """Finds an installed pack; a `policy.packs.FindPack`."""
    try:
        found = loaded(name)
    except PackProblem as error:
        return UnknownPack(str(error), error.hint)

    def state_problem(state: dict[str, Any]) -> str | None:
        try:
            state_of(found.pack, state)
        except StateProblem as error:
            return str(error)
        return None

    return KnownPack(found.version, found.fingerprint, tuple(found.pack.intents), state_problem)


def is_current(packs: dict[str, str]) -> bool:
    """Whether the installed packs are those that a snapshot was compiled with."""
    try:
        return all(loaded(name).fingerprint == fingerprint for name, fingerprint in packs.items())
    except PackProblem:
        return False


class StateProblem(Exception):
    """A pack cannot make its state from what a policy gives. The text says why."""


def state_of(pack: Pack, state: dict[str, Any]) -> Any:
    """Returns a pack's state as a policy gives it; a new one each time. Raises StateProblem."""
    try:
        copied = plain_json(state)
        return copied if pack.rehydrate_state is None else pack.rehydrate_state(copied)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - whatever the pack's code does
        said = " ".join(told(error).split())
        raise StateProblem(
            f"{type(error).__name__}: {said}" if said else type(error).__name__
        ) from None
