"""Which runs there are in this home, by its files alone: no ledger, no daemon."""

import os
from typing import NamedTuple

from subluminal.config.places import Places, encode_name
from subluminal.core.controls.kill_switch import stopped_runs
from subluminal.errors import SubluminalError


class LivingRun(NamedTuple):
    """A run that a living process takes part in."""

    run_id: str
    agent_id: str
    pids: tuple[int, ...]
    """the processes that take part"""


def known_run(places: Places, name: str) -> str:
    """The run of this name, or the only one that begins or ends so: one with state, or a stop.

    A stop outlives the state of its run (core.tidying), and must be lifted all the same.

    Raises:
        SubluminalError: there is none, or more than one.
    """
    try:
        known = os.listdir(os.path.join(places.state, "runs"))
    except OSError:
        known = []
    known = sorted({*known, *stopped_runs(places.state)})
    if encode_name(name) in known:
        return name
    # A name that had to be encoded is not guessed at.
    plain = [each for each in known if "%" not in each and not each.startswith(".")]
    found = [each for each in plain if each.startswith(name) or each.endswith(name)]
    if len(found) == 1:
        return found[0]
    if found:
        some = ", ".join(f"`{each}`" for each in sorted(found)[:5])
        raise SubluminalError(f"`{name}` may be any of {some}", hint="give more of the id")
    from subluminal.contracts.shape import did_you_mean

    hint = did_you_mean(name, plain) or "`sub query runs` lists the runs"
    raise SubluminalError(f"there is no run `{name}` in `{places.home}`", hint=hint)


def living_runs(places: Places) -> list[LivingRun]:
    """The runs that someone takes part in right now."""
    from subluminal.core.runs.attendance import attendances, attending
    from subluminal.state.processes import start_time

    found: dict[str, LivingRun] = {}
    for pid in attending(places):
        if start_time(pid) is None:
            continue
        for each in attendances(places, pid):
            before = found.get(each.run_id)
            pids = (pid,) if before is None else (*before.pids, pid)
            found[each.run_id] = LivingRun(each.run_id, each.identity.agent_id, pids)
    return list(found.values())
