"""The composition root: puts together the objects that doors and services hold.

Every other package takes what it needs as arguments; only this module knows which implementation
goes where. Doors and `operator` may not import it: their caller hands them `open_host`.
"""

import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from subluminal.config import env
from subluminal.config.places import Places, home_problem, recordable, working_directory
from subluminal.config.settings import Settings
from subluminal.contracts.decision import Decision, PolicyRef
from subluminal.contracts.identity import Identity
from subluminal.contracts.vocabulary import Taint
from subluminal.core.host import Host
from subluminal.core.live_settings import LiveSettings, previewer_for
from subluminal.core.policies.watching import Policies
from subluminal.core.records.redaction.redactor import Redactor, redactor_for
from subluminal.core.runs.names import run_id_of
from subluminal.core.runs.open_runs import Parts
from subluminal.core.runs.opening import ALONE, Sharing
from subluminal.errors import SubluminalError
from subluminal.trust.identity.agent import identity_of

if TYPE_CHECKING:
    from subluminal.core.acting.acting import Acting
    from subluminal.core.acting.launches import Launch
    from subluminal.core.policies.files import Stamp
    from subluminal.secrets.value import SecretValue


def open_host(
    places: Places,
    *,
    environ: Mapping[str, str] | None = None,
    cwd: str | None = None,
    identity: Identity | None = None,
    run_id: str | None = None,
    policy: str | None = None,
    settings: Settings | None = None,
    settings_seen: "Stamp | None" = None,
    redactor: Redactor | None = None,
    secrets: "Sequence[SecretValue]" = (),
    server: str | None = None,
    sharing: Sharing = ALONE,
    client_pid: int | None = None,
    client_asks: bool = False,
    pack: PolicyRef | None = None,
    attestation: str | None = None,
    names_runs: bool = False,
    launch: "Launch | None" = None,
) -> Host:
    """Opens a host. Arguments that are not given come from the environment (Pack section 5).

    `run_id` fixes the run of all calls. Without it SUB_RUN_ID does. Without either, each call may
    name its own run. `policy` replaces the repository's policy, as SUB_POLICY does (policy-layers).
    If the process has threads or forks, `sharing` says so, and the host is a `ThreadedHost`.
    `client_pid` is the client's process if it is not the parent of this one. If `client_asks`, the
    client asks its person about calls that need approval (CLIENT_ASKED). `pack` is the one that
    the door itself asks about every call. `attestation` is a token that proves the agent, as
    SUB_ATTESTATION is. If `names_runs`, the program may name the run of each call, whatever the
    environment says. `launch` is the agent, if it is not the one that `sub run` launched.
    """
    problem = home_problem(places)
    if problem is not None:
        raise SubluminalError(problem[0], hint=problem[1])
    environ = os.environ if environ is None else environ
    cwd = working_directory() if cwd is None else cwd
    launch = launch or launch_of(places)
    identity = _named(identity_of(environ, cwd) if identity is None else identity, launch)
    fixed = run_id or environ.get(env.SUB_RUN_ID.name) or (launch.run_id if launch else "")
    run_id = recordable(fixed) if fixed else run_id_of(environ, places, client_pid)
    secrets = _with_token(secrets, attestation or environ.get(env.SUB_ATTESTATION.name))
    settings = Settings() if settings is None else settings
    if redactor is None:
        redactor = redactor_for(settings.redact, list(secrets))
    host = _host_type(sharing)(
        Parts(
            places,
            identity,
            Policies(
                places,
                identity,
                cwd,
                policy or environ.get(env.SUB_POLICY.name),
                pack=pack,
                switch=_switch(environ),
                has_token=bool(attestation or any(map(environ.get, env.TOKEN_VARIABLES))),
                key_file=settings.policy.hmac_key_file,
            ),
            previewer_for(settings, redactor),
            sharing,
            _meta(environ),
            client_asks,
            _taint(environ),
            () if launch is None else tuple(launch.agent_ids),
            partial(_open_acting, places, identity, launch, run_id, environ, attestation),
        ),
        LiveSettings(places.settings, settings, settings_seen, server=server, values=secrets),
        run_id=run_id,
        run_is_fixed=bool(fixed) and not names_runs,
    )
    if sharing.threads:
        # No loop will look at the policies before the first call.
        host.tick(0, force=True)
    return host


def launch_of(places: Places) -> "Launch | None":
    """Returns what `sub run` says about the agent of this process; None if it says nothing."""
    if not os.path.isdir(os.path.join(places.state, "launches")):
        return None  # most homes have none, and need not load this
    from subluminal.core.acting.launches import launch_around

    return launch_around(places)


def _named(identity: Identity, launch: "Launch | None") -> Identity:
    """Returns the identity with the name of the agent that `sub run` launched.

    A name that is only said does not replace it.
    """
    if launch is None or not (launch.is_launched or identity.agent_id == "unknown"):
        return identity
    return replace(identity, agent_id=launch.agent_id)


def _with_token(secrets: "Sequence[SecretValue]", token: str | None) -> "Sequence[SecretValue]":
    """Returns the secrets that records must not contain, the agent's token among them."""
    name = env.SUB_ATTESTATION.name
    if not token or any(each.name == name for each in secrets):
        return secrets
    from subluminal.secrets.value import SecretValue

    return [*secrets, SecretValue(name, token)]


def _open_acting(
    places: Places,
    identity: Identity,
    launch: "Launch | None",
    run_id: str,
    environ: Mapping[str, str],
    attestation: str | None,
    **parts: Any,
) -> "Acting":
    """Opens who finds out about the agent, because a rule asks."""
    from subluminal.core.acting.acting import Acting
    from subluminal.core.acting.launches import Launch
    from subluminal.core.acting.tokens import TokenSource

    # Without a launch, the agent's name is only said.
    launch = launch or Launch(run_id=run_id, agent_id=identity.agent_id)
    return Acting(places, identity, launch, TokenSource(environ, attestation), **parts)


def _meta(environ: Mapping[str, str]) -> dict[str, Any]:
    given = environ.get(env.SUB_RUN_META.name)
    if not given:
        return {}
    from subluminal.core.runs.meta import given_meta

    return given_meta(given)


def _switch(environ: Mapping[str, str]) -> Decision | None:
    """Returns the refusal of every call if the environment pulls the kill switch."""
    if not environ.get(env.SUB_KILL_SWITCH.name):
        return None
    from subluminal.core.gates import switched_off
    from subluminal.kernel.rollout import kill_from_env

    kill = kill_from_env(environ, env.SUB_KILL_SWITCH.name, at="")
    return None if kill is None else switched_off(kill.reason)


def _taint(environ: Mapping[str, str]) -> Taint | None:
    given = environ.get(env.SUB_TAINT.name)
    if not given:
        return None
    return Taint(given) if given in list(Taint) else Taint.UNTRUSTED


def _host_type(sharing: Sharing) -> type[Host]:
    if not sharing.threads:
        return Host
    from subluminal.core.threaded_host import ThreadedHost

    return ThreadedHost
