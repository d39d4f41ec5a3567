"""Records acts of a person on a run, in a journal beside those of the run's shims.

The commands write this journal themselves, so no daemon is needed. ledgerd reads it like any other.
"""

import os
from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType

from subluminal.clock import now, rfc3339
from subluminal.config.places import Places
from subluminal.config.plain_files import plain_file
from subluminal.contracts.events import Event, RunEnd, RunEnded, RunSummary
from subluminal.contracts.identity import Identity, Workload
from subluminal.contracts.vocabulary import Client, Env, RunStatus
from subluminal.core.runs.names import journal_dir
from subluminal.core.runs.opening import open_record
from subluminal.journal import JournalUnavailable
from subluminal.journal.files import SUFFIX
from subluminal.trust.identity.machine import local_user

OPERATOR_RUN = "operator"
"""The run_id of acts that do not concern a particular run."""

_MAX_LINE_BYTES = 1 << 20


class _Who(Struct, frozen=True):
    agent_id: str
    client: Client
    env: Env
    principal: str | UnsetType = UNSET
    workload: Workload | UnsetType = UNSET


def record_act(
    places: Places, run_id: str, identity: Identity, kind: type[Event], **fields: Any
) -> bool:
    """Journals one event of a run; returns False if it cannot be written."""
    if run_id == OPERATOR_RUN:
        identity = Identity(agent_id=OPERATOR_RUN, client=Client.CUSTOM, principal=local_user())
    try:
        run = open_record(places, run_id, identity)
    except JournalUnavailable:
        return False

    def write() -> None:
        run.emit(kind, **fields)
        if run_id == OPERATOR_RUN:
            run.emit(RunEnd, run=_nothing_called())

    try:
        return run.record(write)
    finally:
        run.close()


def _nothing_called() -> RunEnded:
    """Returns the end of a run without calls: without it, the run would look as if it were open."""
    return RunEnded(
        ended_at=rfc3339(now().wall_ms),
        status=RunStatus.SUCCEEDED,
        summary=RunSummary(
            calls_total=0,
            calls_allowed=0,
            calls_blocked=0,
            calls_throttled=0,
            errors_total=0,
            duration_ms=0,
        ),
    )


def identity_in(places: Places, run_id: str) -> Identity:
    """Returns the identity that the shims of a run recorded; an empty one if that is gone."""
    directory = journal_dir(places, run_id)
    try:
        names = sorted(name for name in os.listdir(directory) if name.endswith(SUFFIX))
    except OSError:
        return Identity()
    for name in names:
        found = _identity_of(os.path.join(directory, name))
        if found is not None:
            return found
    return Identity()


def _identity_of(path: str) -> Identity | None:
    try:
        with open(path, "rb", opener=plain_file) as file:
            who = msgspec.json.decode(file.readline(_MAX_LINE_BYTES), type=_Who)
    except (OSError, msgspec.MsgspecError):
        return None
    return Identity(
        agent_id=who.agent_id,
        client=who.client,
        env=who.env,
        principal=None if who.principal is UNSET else who.principal,
        workload=Workload() if who.workload is UNSET else who.workload,
    )
