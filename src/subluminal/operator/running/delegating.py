"""Who hands work on to a new run, and what is sealed about the agent that gets it.

A `sub run` that an agent starts is a delegation. The agent above is found by the processes above
this one, as far as the system shows them, and only then by what the environment says: an agent can
change its environment, but not its ancestors.
"""

import os
from collections.abc import Mapping

from msgspec.structs import replace

from subluminal.config import env
from subluminal.config.agent_environment import MARKERS
from subluminal.config.places import Places, recordable
from subluminal.core.acting.attested import Attested, refused, verify_now
from subluminal.core.acting.launches import (
    MAX_DEPTH,
    Launch,
    ancestors,
    launch_around,
    note_launch,
)
from subluminal.core.acting.tokens import TokenSource
from subluminal.core.runs.attendance import attendances, attending
from subluminal.core.runs.living import lives, living_runs
from subluminal.core.runs.names import run_of_client, session_of
from subluminal.errors import SubluminalError
from subluminal.operator.running.stamping import Stamp

_UNKNOWN = "unknown"


def find_parent(places: Places, environ: Mapping[str, str]) -> Launch | None:
    """Returns the agent that starts this run; None if a person or a program does."""
    return _above(places) or _said(places, environ)


def _above(places: Places) -> Launch | None:
    """Returns the agent of the nearest process above that belongs to a run."""
    launch = launch_around(places)
    noted = set(attending(places))
    for entry in ancestors(os.getppid()):
        if launch is not None and entry.pid == launch.pid:
            return launch
        if entry.pid in noted:
            for each in attendances(places, entry.pid):
                who = each.identity
                where = who.environment or who.env.value
                return Launch(run_id=each.run_id, agent_id=who.agent_id, environment=where)
        run_id = run_of_client(places, entry.pid, entry.start)
        if run_id is not None:
            return _unproven(places, run_id)
    return None


def _said(places: Places, environ: Mapping[str, str]) -> Launch | None:
    """Returns the agent in whose environment this is, by what the environment says."""
    outer = environ.get(env.SUB_RUN_ID.name) or session_of(environ)
    if outer and lives(places, recordable(outer)):
        return _unproven(places, recordable(outer))
    marks = (marker.name for marker in MARKERS if marker.name != env.SUB_RUN_ID.name)
    if any(map(environ.get, marks)):
        return Launch(run_id="", agent_id=_UNKNOWN)
    return None


def _unproven(places: Places, run_id: str) -> Launch:
    known = (run.agent_id for run in living_runs(places) if run.run_id == run_id)
    return Launch(run_id=run_id, agent_id=next(known, _UNKNOWN))


def note_delegation(
    places: Places, stamped: Stamp, parent: Launch | None, environ: Mapping[str, str]
) -> tuple[str | None, Attested | None]:
    """Seals what is known about the agent before it starts, if there is anything to say.

    Returns the file, to be removed at the end, and what the agent's token proves. Raises
    SubluminalError.
    """
    source = TokenSource(environ)
    source.look()
    if not (stamped.is_named or parent is not None or source):
        return None, None
    agent_id = stamped.identity.agent_id
    shown = refused(source.problem) if source.problem else None
    if source.token:
        shown = _verified(places, agent_id, source.token)
    launch = Launch(
        run_id=stamped.run_id,
        agent_id=agent_id,
        is_launched=stamped.is_named,
        environment=stamped.identity.environment or stamped.identity.env.value,
        attested=None if shown is None else replace(shown, hint=None),
        parent=parent,
    )
    if launch.depth > MAX_DEPTH:
        raise SubluminalError(f"more than {MAX_DEPTH} agents have handed this work on")
    try:
        return note_launch(places, launch), shown
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise SubluminalError(f"cannot seal who acts in this run: {reason}") from None


def _verified(places: Places, agent_id: str, token: bytes) -> Attested:
    try:
        return verify_now(places, agent_id, token)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise SubluminalError(f"the agent's token cannot be verified: {reason}") from None
