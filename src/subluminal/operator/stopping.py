"""The kill switch as a service: stop a run, an agent, a tool or everything, and lift a stop.

Light to load, because a person who stops an agent must not wait. Everything that records the act
is loaded after the stop is in force.
"""

import os
import time
from typing import NamedTuple

from subluminal.config.places import Places
from subluminal.core.controls.stops import Stop, lift_stop, set_stop
from subluminal.core.runs.living import LivingRun, known_run, living_runs
from subluminal.errors import SubluminalError, UsageError
from subluminal.trust.identity.machine import local_user

_PATIENCE_S = 5.0
"""A shim checks for stops twice a second, and a server has half a second after SIGTERM."""
_LOOK_S = 0.02


class Target(NamedTuple):
    """What to stop, or to revive."""

    scope: str
    """`run`, `agent`, `tool` or `all`"""
    name: str
    """run_id, agent_id or SERVER/TOOL; empty for `all`"""

    def __str__(self) -> str:
        return "everything" if self.scope == "all" else f"{self.scope} `{self.name}`"

    @property
    def words(self) -> str:
        """The target as a person types it after `sub kill`."""
        if self.scope == "run":
            return self.name
        return "--all" if self.scope == "all" else f"--{self.scope} {self.name}"


class Switched(NamedTuple):
    """A stop that was set or lifted."""

    stop: Stop
    runs: list[LivingRun]
    """living runs that the stop concerns"""
    is_recorded: bool
    """whether the act is in the journal of each of these runs"""
    servers_left: list[int]
    """processes of servers that still run after a hard stop"""
    is_renewed: bool = False
    """whether a run got a new state, so that its budgets start from zero"""

    @property
    def shim_pids(self) -> set[int]:
        """The living shims that the stop concerns."""
        return {pid for run in self.runs for pid in run.pids}


def find_target(
    places: Places, *, run: str | None, agent: str | None, tool: str | None, everything: bool
) -> Target:
    """Returns the one target that is named. Raises UsageError if there are none or several."""
    given = [
        Target(scope, name)
        for scope, name in (("run", run), ("agent", agent), ("tool", tool))
        if name is not None
    ]
    if everything:
        given.append(Target("all", ""))
    if len(given) != 1:
        raise UsageError(
            "give exactly one of RUN_ID, --agent ID, --tool SERVER/TOOL and --all",
            hint="`sub query runs` lists runs, `sub kill --list` lists what is stopped",
        )
    (target,) = given
    if target.scope == "tool" and not all(target.name.partition("/")[::2]):
        raise UsageError(f"`{target.name}` is not a tool", hint="write SERVER/TOOL or SERVER/*")
    if target.scope != "all" and not target.name:
        raise UsageError(f"the name of the {target.scope} is empty")
    if target.scope == "run":
        return Target("run", known_run(places, target.name))
    return target


def stop(places: Places, target: Target, *, reason: str = "", hard: bool = False) -> Switched:
    """Stops the target from the next call on. A hard stop also waits for its servers to end."""
    try:
        made = set_stop(
            places.state, target.scope, target.name, by=local_user(), reason=reason, hard=hard
        )
    except OSError as error:
        raise _cannot(f"stop {target}", error, places) from None
    runs = _concerned(places, target)
    done = Switched(made, runs, _record(places, made, "killed", runs), [])
    if hard and target.scope != "tool":
        # Only the shims know which of them serve a stopped tool, so a tool is not waited for.
        return done._replace(servers_left=_wait_for_servers(done.shim_pids))
    return done


def revive(places: Places, target: Target, *, reason: str = "") -> Switched:
    """Lifts the stop of the target, and gives a run a new state if it has lost its own.

    Raises SubluminalError if there is nothing to revive.
    """
    try:
        lifted = lift_stop(places.state, target.scope, target.name)
    except OSError as error:
        raise _cannot(f"revive {target}", error, places) from None
    is_renewed = target.scope == "run" and _renew(places, target.name)
    if lifted is None and is_renewed:
        lifted = Stop(
            target.scope, target.name, "", "", "", hard=False, switch_id=os.urandom(8).hex()
        )
    if lifted is None:
        raise SubluminalError(
            f"{target} is not stopped",
            hint="`sub kill --list` shows what is; a run that a rule terminated cannot be revived",
        )
    runs = _concerned(places, target)
    done = lifted._replace(by=local_user(), reason=reason)
    recorded = _record(places, done, "revived", runs)
    return Switched(done, runs, recorded, [], is_renewed)


def _renew(places: Places, run_id: str) -> bool:
    from subluminal.core.runs.lost_state import renew_state  # loads the modules of a run

    return renew_state(places, run_id)


def _concerned(places: Places, target: Target) -> list[LivingRun]:
    return [
        run
        for run in living_runs(places)
        if target.scope in ("all", "tool")
        or (target.scope == "run" and run.run_id == target.name)
        or (target.scope == "agent" and run.agent_id == target.name)
    ]


def _record(places: Places, stop: Stop, state: str, runs: list[LivingRun]) -> bool:
    """Journals who moved the switch in every living run that it concerns; False if one failed."""
    from msgspec import UNSET

    from subluminal.contracts.control import Switch
    from subluminal.contracts.events import KillSwitch
    from subluminal.contracts.vocabulary import StopScope, SwitchState
    from subluminal.core.controls.acts import OPERATOR_RUN, identity_in, record_act

    switch = Switch(
        switch_id=stop.switch_id,
        state=SwitchState(state),
        scope=StopScope(stop.scope),
        target=stop.target or UNSET,
        by=stop.by,
        hard=stop.hard,
        reason=stop.reason or UNSET,
    )
    named = [stop.target] if stop.scope == "run" else []
    names = list(dict.fromkeys([*named, *(run.run_id for run in runs)])) or [OPERATOR_RUN]
    done = [
        record_act(places, name, identity_in(places, name), KillSwitch, switch=switch)
        for name in names
    ]
    return all(done)


def _wait_for_servers(shims: set[int]) -> list[int]:
    """Gives the shims time to end their servers; returns the processes that still run."""
    from subluminal.supervise.orphans import servers_of

    deadline = time.monotonic() + _PATIENCE_S
    while (left := servers_of(shims)) and time.monotonic() < deadline:
        time.sleep(_LOOK_S)
    return left


def _cannot(what: str, error: OSError, places: Places) -> SubluminalError:
    if isinstance(error, SubluminalError):
        return error  # its message is complete
    reason = (error.strerror or str(error)).lower()
    where = os.path.join(places.state, "kill")
    return SubluminalError(f"cannot {what}: {reason}", hint=f"check who may write to `{where}`")
