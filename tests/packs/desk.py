"""A pack for tests, `desk`, that gives each of the six decisions, and how to install it.

desk.pay {amount, to}, state {limit, closed}: the amount and the name decide.
desk.open {}: a state guard asks a person, but the kind needs TRUSTED.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.packs.installing import install, trust

from subluminal.core.intents.index import loaded

DESK = """
    import time

    from subluminal.kernel import (
        Defer, Escalate, Pack, Plan, PolicyBundle, Refuse, RequestConfirmation, Rewrite, Execute,
        basis, named, refuse, static_planner, system_taint_policy, with_payload,
    )

    RULE = (basis("business", "rule_satisfied"),)

    def no(code, told):
        return Refuse(refuse("BUSINESS_RULE", code, told), RULE)

    def opening(envelope, state):
        if envelope.kind == "desk.open":
            return Escalate("human", "Somebody opens the desk.", RULE)
        if state["closed"]:
            return Defer("desk.opened", 60_000, RULE)
        return None

    def teller(envelope, state):
        amount = envelope.payload.get("amount")
        if amount == 13:
            raise RuntimeError("13 is no amount")
        if amount == 14:
            raise SystemExit("14 is no amount")
        if amount == 250:
            time.sleep(0.4)
        if not isinstance(amount, int):
            return no("desk.no_amount", "Say how much.")
        if amount > 10 * state["limit"]:
            return no("desk.too_much", "That is too much.")
        if amount == 7:
            return Defer("time", 1_500, RULE)
        if amount > 2 * state["limit"]:
            return Escalate("supervisor", "A supervisor pays this.", RULE)
        if amount > state["limit"]:
            return RequestConfirmation("Pay it?", RULE)
        return None

    def name(envelope, state):
        to = envelope.payload.get("to", "")
        if to != to.strip():
            neat = with_payload(envelope, {**envelope.payload, "to": to.strip()})
            return Rewrite(neat, "The name has spaces around it.", RULE)
        return Execute(RULE)

    def rehydrated(state):
        return {"limit": int(state["limit"]), "closed": bool(state.get("closed"))}

    PACK = Pack(
        id="desk",
        version="1.0.0",
        intents=["desk.pay", "desk.open"],
        policy=PolicyBundle(
            [named("opening", opening)],
            [],
            system_taint_policy(["desk.open"]),
            [named("teller", teller), named("name", name)],
            "REFUSE",
        ),
        planner=static_planner(Plan([], ["desk.pay", "desk.open"])),
        basis_codes=["desk.no_amount", "desk.too_much"],
        signals=["desk.opened", "time"],
        rehydrate_state=rehydrated,
    )
"""
_FILE = "desk_pack/__init__.py"


def install_desk(folder: Path, source: str = DESK) -> Path:
    """Puts the pack into a site directory. Returns the file of its code."""
    install(folder, "desk-pack", {"desk": "desk_pack:PACK"}, {_FILE: source})
    return folder / _FILE


def forget_desk() -> None:
    """Makes this process forget the pack, as a new one has not loaded it."""
    loaded.cache_clear()
    for name in [name for name in sys.modules if name.split(".")[0] == "desk_pack"]:
        del sys.modules[name]


@contextmanager
def desk_here(monkeypatch: pytest.MonkeyPatch, prefix: Path) -> Iterator[Path]:
    """Installs the pack for this process. Yields the file of its code."""
    forget_desk()
    yield install_desk(trust(monkeypatch, prefix))
    forget_desk()


def desk_environment(base: Path) -> dict[str, str]:
    """Installs the pack for other processes. Returns the variables that let them find it."""
    import site

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONUSERBASE", str(base))
        patch.setattr(site, "USER_BASE", None)
        patch.setattr(site, "USER_SITE", None)
        folder = Path(site.getusersitepackages())
    folder.mkdir(parents=True)
    install_desk(folder)
    return {"PYTHONUSERBASE": str(base), "PYTHONPATH": str(folder)}
