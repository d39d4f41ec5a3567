"""Checks of who acts: the token in this environment, revoked agents, and tokens refused in runs.

A home without a registry, and an environment without a token, have nothing to check.
"""

import os
from collections.abc import Iterator
from typing import Any

import msgspec

from subluminal.config import env
from subluminal.config.places import Places
from subluminal.core.acting.attested import verify_now
from subluminal.core.acting.launches import launch_around
from subluminal.core.acting.tokens import TokenSource
from subluminal.core.controls.agents import agents_dir, is_revoked, roster
from subluminal.core.runs.living import LivingRun, living_runs
from subluminal.core.runs.names import journal_dir
from subluminal.journal.reading import files_in
from subluminal.operator.doctor.checks import Check

_NAME = "agents"
_TOKEN = "attestation"
_TOLD = (b'"type":"run_start"', b'"type":"agent_resolved"')


def check_agents(places: Places) -> Iterator[Check]:
    """Reports files of the registry that do not count, and runs of agents that cannot prove it."""
    if not os.path.lexists(agents_dir(places.state)):
        return
    try:
        problems = roster(places.state).problems
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        problems = [f"the registry cannot be read: {reason}"]
    if problems:
        hint = "register these agents again with `sub agents register`"
        yield Check(_NAME, False, "; ".join(problems), hint)
    for run in living_runs(places):
        if is_revoked(places.state, run.agent_id):
            detail = f"run {run.run_id}: the agent `{run.agent_id}` is revoked; calls are refused"
            yield Check(_NAME, False, detail, f"end it with `sub kill {run.run_id}`")
        elif problem := _refused_in(places, run):
            detail = f"run {run.run_id}: the token of `{run.agent_id}` is refused: {problem}"
            yield Check(
                _NAME, False, detail, f"`sub agents show {run.agent_id}` says what it needs"
            )


def check_token(places: Places) -> Iterator[Check]:
    """Verifies the token in this environment, if there is one."""
    source = TokenSource(os.environ)
    if not source:
        return
    source.look()
    launch = launch_around(places)
    agent_id = os.environ.get(env.SUB_AGENT_ID.name) if launch is None else launch.agent_id
    if source.problem:
        yield Check(_TOKEN, False, source.problem, f"check {env.SUB_ATTESTATION_FILE.name}")
    elif not agent_id:
        detail = f"there is a token, but {env.SUB_AGENT_ID.name} does not say for which agent"
        yield Check(_TOKEN, False, detail, f"set {env.SUB_AGENT_ID.name}")
    else:
        yield _verified(places, agent_id, source.token)


def _verified(places: Places, agent_id: str, token: bytes) -> Check:
    try:
        found = verify_now(places, agent_id, token)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        return Check(_TOKEN, False, f"it cannot be verified: {reason}")
    proof = found.proof
    if proof.problem:
        hint = found.hint or f"`sub agents show {agent_id}` says what the agent needs"
        return Check(_TOKEN, False, f"the token of `{agent_id}` is refused: {proof.problem}", hint)
    detail = f"`{agent_id}` is attested by {proof.issuer} as {proof.subject}"
    return Check(_TOKEN, True, f"{detail} until {proof.expires_at}")


def _refused_in(places: Places, run: LivingRun) -> str:
    """Returns why a token was refused in a run, by the newest event that says who acts."""
    newest: dict[str, Any] = {}
    for file in files_in(journal_dir(places, run.run_id), run.run_id):
        for event in _told_in(file.path):
            if str(event["ts"]) >= str(newest.get("ts", "")):
                newest = event
    agent = newest.get("agent") or newest.get("run", {}).get("agent") or {}
    return str(agent.get("proof", {}).get("problem") or "")


def _told_in(path: str) -> list[dict[str, Any]]:
    try:
        with open(path, "rb") as file:
            lines = [line for line in file if any(each in line[:64] for each in _TOLD)]
        return [msgspec.json.decode(line) for line in lines]
    except (OSError, msgspec.MsgspecError):
        return []
