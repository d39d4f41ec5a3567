"""What a check is, and the order in which they are made."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from subluminal.config.places import Places


class Check(NamedTuple):
    """One thing that was looked at."""

    name: str
    ok: bool
    detail: str
    hint: str | None = None


Checker = Callable[[Places], Iterable[Check]]


def all_checks() -> tuple[Checker, ...]:
    """Every group, from the ground up."""
    from subluminal.operator.doctor import (
        clients,
        daemon,
        home,
        in_force,
        policies,
        processes,
        versions,
    )

    return (
        versions.check,
        home.check,
        daemon.check,
        processes.check,
        policies.check,
        policies.check_deny,
        in_force.check_stops,
        in_force.check_policies,
        clients.check,
    )
