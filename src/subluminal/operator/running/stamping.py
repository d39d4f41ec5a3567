"""The name and identity of a new run, and the SUB_* variables that carry them (Pack section 5).

The command line takes precedence over the environment, and the environment over what is detected.
"""

import os
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from subluminal.config import env
from subluminal.contracts.identity import Identity, Workload
from subluminal.contracts.vocabulary import Client, Env
from subluminal.core.runs.names import uuid7
from subluminal.trust.identity.agent import recordable_identity
from subluminal.trust.identity.workload import find_principal, find_workload


class Wishes(NamedTuple):
    """Identity and policy as the command line gives them; None where it gives none."""

    agent_id: str | None = None
    env: str | None = None
    client: str | None = None
    principal: str | None = None
    policy: str | None = None


class Stamp(NamedTuple):
    """One run's name, its identity, and the agent's whole environment."""

    run_id: str
    identity: Identity
    environ: dict[str, str]


def stamp(wishes: Wishes, command: list[str], environ: Mapping[str, str], cwd: str) -> Stamp:
    """Names a new run. An agent that runs inside another run gets a run of its own."""
    program = os.path.basename(command[0])
    workload = find_workload(environ, cwd)
    is_ci = isinstance(workload.ci_provider, str)
    found = Identity(
        agent_id=wishes.agent_id or environ.get(env.SUB_AGENT_ID.name) or program,
        client=_client(wishes, environ, program, is_ci=is_ci),
        env=_env(wishes, environ, is_ci=is_ci),
        principal=wishes.principal
        or environ.get(env.SUB_PRINCIPAL.name)
        or find_principal(environ),
        workload=workload,
    )
    identity = recordable_identity(found)
    run_id = uuid7()
    stamped = dict(environ)
    stamped |= {
        env.SUB_RUN_ID.name: run_id,
        env.SUB_AGENT_ID.name: identity.agent_id,
        env.SUB_ENV.name: identity.env,
        env.SUB_CLIENT.name: identity.client,
    }
    if identity.principal:
        stamped[env.SUB_PRINCIPAL.name] = identity.principal
    if identity.workload != Workload():
        stamped[env.SUB_WORKLOAD.name] = msgspec.json.encode(identity.workload).decode()
    if wishes.policy:
        # Absolute, because the agent may change its directory before it starts a shim.
        stamped[env.SUB_POLICY.name] = os.path.join(cwd, os.path.expanduser(wishes.policy))
    return Stamp(run_id, identity, stamped)


def _client(wishes: Wishes, environ: Mapping[str, str], program: str, *, is_ci: bool) -> Client:
    given = wishes.client or environ.get(env.SUB_CLIENT.name)
    if given:
        return Client(given) if given in list(Client) else Client.CUSTOM
    for client in (Client.CLAUDE, Client.CODEX):
        if program == client:
            return client
    return Client.HEADLESS if is_ci else Client.CUSTOM


def _env(wishes: Wishes, environ: Mapping[str, str], *, is_ci: bool) -> Env:
    given = wishes.env or environ.get(env.SUB_ENV.name)
    if given:
        return Env(given) if given in list(Env) else Env.UNKNOWN
    return Env.CI if is_ci else Env.DEV
