"""Finds the runs of this home by its files alone, without the ledger or a daemon."""

import os
from typing import NamedTuple

from subluminal.config.places import Places, encode_name
from subluminal.core.controls.stops import stopped_runs
from subluminal.errors import SubluminalError


class LivingRun(NamedTuple):
    """A run that a living process takes part in."""

    run_id: str
    agent_id: str
    pids: tuple[int, ...]
    """the processes that take part"""


def known_run(places: Places, name: str) -> str:
    """Returns the id of the run with this id, or of the only run whose id begins or ends so.

    A run is known if it has state, journals or a stop: a stop outlives the state of its run
    (`core.runs.tidying`), and it must still be possible to lift it.

    Raises:
        SubluminalError: no run matches, or more than one does.
    """
    states, journals = _names(os.path.join(places.state, "runs")), _names(places.journal)
    known = sorted({*states, *journals, *stopped_runs(places.state)})
    if encode_name(name) in known:
        return name
    # Parts of an id are matched only where the file's name is the id, unencoded.
    plain = [each for each in known if "%" not in each and not each.startswith(".")]
    found = [each for each in plain if each.startswith(name) or each.endswith(name)]
    if len(found) == 1:
        return found[0]
    if found:
        some = ", ".join(f"`{each}`" for each in sorted(found)[:5])
        raise SubluminalError(
            f"`{name}` matches more than one run: {some}", hint="give more of the id"
        )
    from subluminal.contracts.shape import did_you_mean

    hint = did_you_mean(name, plain) or "`sub query runs` lists the runs"
    raise SubluminalError(f"there is no run `{name}` in `{places.home}`", hint=hint)


def lives(places: Places, run_id: str) -> bool:
    """Returns True if a living process takes part in a run; a reused pid does not count."""
    from subluminal.core.runs.abandoned import missing

    found = [run for run in living_runs(places) if run.run_id == run_id]
    return any(set(run.pids).difference(missing(places)) for run in found)


def _names(directory: str) -> list[str]:
    try:
        return os.listdir(directory)
    except OSError:
        return []


def living_runs(places: Places) -> list[LivingRun]:
    """Returns the runs that a living process takes part in."""
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
