"""The name and identity of a new run, and the SUB_* variables that carry them (Pack section 5).

The command line takes precedence over the environment, and the environment over what is detected.
"""

import os
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from subluminal.config import env
from subluminal.config.places import recordable
from subluminal.contracts.identity import Identity, Workload
from subluminal.contracts.vocabulary import Client, Env, EnvSource, Taint
from subluminal.core.runs.names import session_of, uuid7
from subluminal.errors import SubluminalError, UsageError
from subluminal.policy.taint import lowest
from subluminal.trust.identity.agent import FoundEnv, find_env, given_env, recordable_identity
from subluminal.trust.identity.clients import PROGRAMS
from subluminal.trust.identity.workload import find_principal, find_workload

_MAX_ID_CHARS = 200

IsLiving = Callable[[str], bool]
"""Returns True if a process takes part in the run of this id."""
LevelOf = Callable[[str], Taint | None]
"""Returns the level of the run of this id; None if nothing has lowered it."""


class Wishes(NamedTuple):
    """Name, identity and policy as the command line gives them; None where it gives none."""

    agent_id: str | None = None
    env: str | None = None
    client: str | None = None
    principal: str | None = None
    policy: str | None = None
    run_id: str | None = None
    meta: tuple[str, ...] = ()
    """`KEY=VALUE` pairs"""
    taint: Taint | None = None
    """level that the run starts with at most"""


class Stamp(NamedTuple):
    """One run's name, its identity, and the agent's whole environment."""

    run_id: str
    identity: Identity
    environ: dict[str, str]
    parent_run_id: str | None = None
    """the run that started this one"""
    is_named: bool = False
    """whether the command line names the agent"""


def stamp(
    wishes: Wishes,
    command: list[str],
    environ: Mapping[str, str],
    cwd: str,
    is_living: IsLiving = lambda _: False,
    level_of: LevelOf = lambda _: None,
    started_in: str | None = None,
) -> Stamp:
    """Names a new run. Raises SubluminalError if the wished name or meta cannot be used.

    `started_in` is the run that this process belongs to, whatever the environment says.
    """
    program = os.path.basename(command[0])
    workload = find_workload(environ, cwd)
    where, source, given = _env(wishes, environ, workload)
    found = Identity(
        agent_id=wishes.agent_id or environ.get(env.SUB_AGENT_ID.name) or program,
        client=_client(wishes, environ, program, is_ci=isinstance(workload.ci_provider, str)),
        env=where,
        environment=given,
        env_source=source,
        principal=wishes.principal
        or environ.get(env.SUB_PRINCIPAL.name)
        or find_principal(environ, workload),
        workload=workload,
    )
    identity = recordable_identity(found)
    run_id, said = _name(wishes.run_id, environ, is_living)
    parent = started_in or said
    # The token is verified once, here: the agent's own programs need not have it.
    stamped = {k: v for k, v in environ.items() if k != env.SUB_ATTESTATION.name}
    stamped |= {
        env.SUB_RUN_ID.name: run_id,
        env.SUB_AGENT_ID.name: identity.agent_id,
        env.SUB_ENV.name: identity.environment or identity.env,
        env.SUB_CLIENT.name: identity.client,
    }
    if identity.principal:
        stamped[env.SUB_PRINCIPAL.name] = identity.principal
    if identity.workload != Workload():
        stamped[env.SUB_WORKLOAD.name] = msgspec.json.encode(identity.workload).decode()
    meta = _meta(wishes.meta, environ)
    if meta:
        stamped[env.SUB_RUN_META.name] = msgspec.json.encode(meta).decode()
    taint = _taint(wishes.taint, environ, parent and level_of(parent))
    if taint is not None:
        stamped[env.SUB_TAINT.name] = taint.value
    if wishes.policy:
        # Absolute, because the agent may change its directory before it starts a shim.
        stamped[env.SUB_POLICY.name] = os.path.join(cwd, os.path.expanduser(wishes.policy))
    return Stamp(run_id, identity, stamped, parent, wishes.agent_id is not None)


def _name(
    wished: str | None, environ: Mapping[str, str], is_living: IsLiving
) -> tuple[str, str | None]:
    """Returns the id of the run, and the id of the run that started it.

    A run that still has processes started us: it is the parent, and the new run has its own id.
    """
    given = environ.get(env.SUB_RUN_ID.name)
    outer = given or session_of(environ)
    parent = outer if outer and is_living(recordable(outer)) else None
    if wished is not None:
        _check_name(wished, "`--run-id`")
        if is_living(wished):
            raise SubluminalError(
                f"the run `{wished}` is still running",
                hint="give another `--run-id`, or leave it out",
            )
    elif given and not parent:
        wished = recordable(given)
        _check_name(wished, env.SUB_RUN_ID.name)
    return wished or uuid7(), parent and recordable(parent)


def _check_name(name: str, where: str) -> None:
    from subluminal.core.controls.acts import OPERATOR_RUN

    if name == OPERATOR_RUN or not name.strip() or not name.isprintable():
        hint = f"use printable characters, and not `{OPERATOR_RUN}`"
        raise UsageError(f"{where} is not a usable id of a run", hint=hint)
    if len(name) > _MAX_ID_CHARS:
        raise UsageError(f"{where} is longer than {_MAX_ID_CHARS} characters")


def _taint(
    wished: Taint | None, environ: Mapping[str, str], parents: Taint | str | None
) -> Taint | None:
    """Returns the lowest of the levels that are asked for; None if there are none."""
    given = environ.get(env.SUB_TAINT.name)
    if given and given not in list(Taint):
        hint = "write SYSTEM, TRUSTED or UNTRUSTED"
        raise UsageError(f"{env.SUB_TAINT.name}: `{given[:40]}` is not a level", hint=hint)
    found = [Taint(each) for each in (wished, given, parents) if each]
    return lowest(found) if found else None


def _meta(pairs: tuple[str, ...], environ: Mapping[str, str]) -> dict[str, Any]:
    given = environ.get(env.SUB_RUN_META.name)
    if not pairs and not given:
        return {}
    from subluminal.core.runs.meta import checked_meta, read_meta, read_pairs

    return checked_meta({**read_meta(given or ""), **read_pairs(pairs)})


def _client(wishes: Wishes, environ: Mapping[str, str], program: str, *, is_ci: bool) -> Client:
    given = wishes.client or environ.get(env.SUB_CLIENT.name)
    if given:
        return Client(given) if given in list(Client) else Client.CUSTOM
    return PROGRAMS.get(program) or (Client.HEADLESS if is_ci else Client.CUSTOM)


def _env(wishes: Wishes, environ: Mapping[str, str], workload: Workload) -> FoundEnv:
    if wishes.env:
        return given_env(wishes.env)
    found = find_env(environ, workload, os.getppid())
    return FoundEnv(Env.DEV, EnvSource.DEFAULT) if found.source is None else found
