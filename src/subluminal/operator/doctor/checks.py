"""What a check is, and the order in which all checks are made."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from subluminal.config.places import Places


class Check(NamedTuple):
    """The result of one check. The field names are those of `sub doctor --json`."""

    name: str
    ok: bool
    detail: str
    hint: str | None = None
    """what to do about it, if there is something to do"""


Checker = Callable[[Places], Iterable[Check]]
"""One group of checks."""


def all_checks() -> tuple[Checker, ...]:
    """Returns every group of checks, from the installation up to the clients."""
    from subluminal.operator.doctor import agents, hooks, ledger, machine, policies, secrets

    return (
        machine.check_versions,
        machine.check_home,
        machine.check_ledgerd,
        ledger.check_ledger,
        machine.check_processes,
        policies.check_files,
        policies.check_deny,
        policies.check_stops,
        policies.check_runs,
        agents.check_agents,
        agents.check_token,
        secrets.check_approvals,
        machine.check_clients,
        hooks.check_hooks,
    )
