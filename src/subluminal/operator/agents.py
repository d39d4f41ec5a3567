"""The registry of agents as a service: register, list, show, attest, verify and revoke.

Who may do so is checked before (`operator.person`): people write the registry, agents do not.
"""

import time
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET

from subluminal.clock import now, rfc3339
from subluminal.config.loading import load_settings
from subluminal.config.places import Places
from subluminal.contracts.agents import AgentChange, Proof, Registration
from subluminal.contracts.events import AgentChanged
from subluminal.contracts.vocabulary import TRUST_RANK, AgentState, ProofKind, TrustLevel
from subluminal.core.controls import agents as registry
from subluminal.core.controls.acts import OPERATOR_RUN, identity_in, record_act
from subluminal.core.controls.attestations import Checked, check_attestation
from subluminal.errors import SubluminalError, UsageError
from subluminal.operator.agent_issuers import IssuerGiven, changed_issuers
from subluminal.trust.identity.machine import local_user
from subluminal.trust.levels import Circumstances, Trust, resolve

_MAX_ID_CHARS = 256
_NOBODY = "unknown"
"""The id of every agent that has none: it cannot be registered."""
_ENVIRONMENT = "dev"


class Given(NamedTuple):
    """What a person says of an agent. None leaves a field as it is; empty text empties it."""

    name: str | None = None
    owner: str | None = None
    environment: str | None = None
    agent_type: str | None = None
    trust_level: TrustLevel | None = None
    unattested: TrustLevel | None = None
    roles: list[str] | None = None
    capabilities: list[str] | None = None
    max_delegation_depth: int | None = None
    issuer: IssuerGiven | None = None
    removed_issuers: list[str] | None = None


class Changed(NamedTuple):
    """A registration that a person changed."""

    registration: Registration
    is_new: bool
    is_recorded: bool
    """whether the act is in a journal"""


class Shown(NamedTuple):
    """An agent, its proof, and how far it is trusted."""

    registration: Registration | None
    checked: Checked
    trust: Trust
    standing: registry.Standing

    def plain(self) -> dict[str, Any]:
        """Returns what `--json` prints."""
        trust = self.trust
        return {
            "agent": None if self.registration is None else agent_row(self.registration),
            "proof": proof_row(self.checked.proof),
            "trust": {
                **trust._asdict(),
                "adjustments": [each._asdict() for each in trust.adjustments],
            },
        }


def agent_row(registration: Registration) -> dict[str, Any]:
    """Returns a registration as `--json` prints it."""
    row: dict[str, Any] = msgspec.to_builtins(registration)
    return row


def proof_row(proof: Proof) -> dict[str, Any]:
    """Returns a proof as `--json` prints it, with every field."""
    return {name: getattr(proof, name) for name in Proof.__struct_fields__}


def register(places: Places, agent_id: str, given: Given) -> Changed:
    """Registers an agent, or changes its registration. Raises SubluminalError."""
    _check_id(agent_id)
    standing = registry.standing(places.state, agent_id)
    if standing.is_revoked:
        raise _revoked(agent_id)
    before = standing.registration
    after = _with_given(before or _new(agent_id), given)
    try:
        registry.register(places.state, after)
    except registry.AgentIsRevoked:
        raise _revoked(agent_id) from None
    except OSError as error:
        raise _cannot(f"register `{agent_id}`", error, places) from None
    return Changed(after, before is None, _record(places, after, ""))


def revoke(places: Places, agent_id: str, reason: str) -> Changed:
    """Revokes an agent for good. Raises SubluminalError if it was never registered."""
    standing = registry.standing(places.state, agent_id)
    known = standing.registration
    if known is None and not standing.problem and not standing.is_revoked:
        raise _unregistered(places, agent_id)
    revoked = msgspec.structs.replace(known or _new(agent_id), state=AgentState.REVOKED)
    try:
        registry.revoke(places.state, revoked)
    except OSError as error:
        raise _cannot(f"revoke `{agent_id}`", error, places) from None
    if standing.is_revoked:
        return Changed(revoked, False, is_recorded=True)  # it was before
    return Changed(revoked, False, _record(places, revoked, reason))


def listed(
    places: Places, *, agent_type: str | None, trust_min: TrustLevel | None, everything: bool
) -> registry.Roster:
    """Returns the agents of the registry; revoked ones only if `everything`."""
    try:
        found = registry.roster(places.state)
    except OSError as error:
        raise _cannot("list agents", error, places) from None
    return found._replace(
        registrations=[
            each
            for each in found.registrations
            if (everything or each.state is AgentState.ACTIVE)
            and (agent_type is None or each.agent_type == agent_type)
            and (trust_min is None or TRUST_RANK[each.trust_level] >= TRUST_RANK[trust_min])
        ]
    )


def show(
    places: Places,
    agent_id: str,
    *,
    token: str | None,
    environment: str | None,
    depth: int,
    hour: int | None,
    denials: int,
    at_ms: int | None,
) -> Shown:
    """Returns how far an agent would be trusted under these circumstances, and why."""
    at_ms = now().wall_ms if at_ms is None else at_ms
    standing = registry.standing(places.state, agent_id)
    known = standing.registration
    checked = Checked(Proof(kind=ProofKind.NONE), False)
    if token is not None:
        checked = check_attestation(places.state, known, token, now_ms=at_ms, run_id=None)
    if hour is None and load_settings(places.settings).trust.quiet_hours:
        hour = time.localtime(at_ms // 1000).tm_hour
    known_environment = _ENVIRONMENT if known is None else known.environment
    circumstances = Circumstances(environment or known_environment, depth, hour, denials)
    resolved = resolve(known, checked.proof.kind, circumstances, has_expired=checked.has_expired)
    return Shown(known, checked, resolved.trust, standing)


def verify(places: Places, agent_id: str, token: str, at_ms: int | None) -> Checked:
    """Returns whether a token proves an agent, in some run."""
    at_ms = now().wall_ms if at_ms is None else at_ms
    known = registry.standing(places.state, agent_id).registration
    return check_attestation(places.state, known, token, now_ms=at_ms, run_id=None)


def attest(places: Places, agent_id: str, *, ttl_ms: int, run_id: str | None) -> tuple[str, str]:
    """Returns a token of this home's key for a registered agent, and when it expires."""
    standing = registry.standing(places.state, agent_id)
    if standing.is_revoked:
        raise _revoked(agent_id)
    if standing.registration is None:
        raise _unregistered(places, agent_id)
    try:
        from subluminal.trust.home_key import home_key
        from subluminal.trust.home_tokens import make_token
    except ImportError:
        raise SubluminalError(
            "the library that signs tokens is missing",
            hint="install it with `pip install 'subluminal[trust]'`",
        ) from None
    at_ms = now().wall_ms // 1000 * 1000
    key = home_key(places.state)
    token = make_token(key, agent_id, now_ms=at_ms, ttl_ms=ttl_ms, run_id=run_id)
    return token, rfc3339(at_ms + ttl_ms)


def _check_id(agent_id: str) -> None:
    if not agent_id or len(agent_id) > _MAX_ID_CHARS or not agent_id.isprintable():
        raise UsageError(
            "the id of an agent is 1 to 256 printable characters",
            hint="it is what SUB_AGENT_ID and `sub run --agent-id` name",
        )
    if agent_id == _NOBODY:
        raise UsageError(
            f"`{_NOBODY}` is every agent without an id, and cannot be registered",
            hint="give the agent an id with SUB_AGENT_ID or `sub run --agent-id`",
        )


def _new(agent_id: str) -> Registration:
    user = local_user()
    return Registration(
        agent_id=agent_id,
        name=agent_id,
        owner=user,
        environment=_ENVIRONMENT,
        registered_at=rfc3339(now().wall_ms),
        registered_by=user,
    )


def _with_given(before: Registration, given: Given) -> Registration:
    """Returns the registration with what was given. Raises SubluminalError."""
    changes = {
        name: value
        for name, value in given._asdict().items()
        if value is not None and name not in ("issuer", "removed_issuers")
    }
    for name in ("name", "owner", "environment"):
        if changes.get(name) == "":
            raise UsageError(f"the {name} of an agent must not be empty")
    for name in ("roles", "capabilities"):
        if name in changes:
            changes[name] = sorted({each for each in changes[name] if each})
    if changes.get("agent_type") == "":
        changes["agent_type"] = None
    changes["issuers"] = changed_issuers(before.issuers, given.issuer, given.removed_issuers or [])
    return msgspec.structs.replace(before, **changes)


def _record(places: Places, after: Registration, reason: str) -> bool:
    change = AgentChange(
        agent_id=after.agent_id,
        state=after.state,
        by=local_user(),
        trust_level=after.trust_level,
        unattested=after.unattested,
        agent_type=after.agent_type or UNSET,
        roles=after.roles,
        issuers=[each.issuer for each in after.issuers],
        reason=reason or UNSET,
    )
    identity = identity_in(places, OPERATOR_RUN)
    return record_act(places, OPERATOR_RUN, identity, AgentChanged, agent=change)


def _revoked(agent_id: str) -> SubluminalError:
    return SubluminalError(
        f"agent `{agent_id}` is revoked, and a revoked id never returns",
        hint="register the agent under another id",
    )


def _unregistered(places: Places, agent_id: str) -> SubluminalError:
    from subluminal.contracts.shape import did_you_mean

    known = [each.agent_id for each in registry.roster(places.state).registrations]
    hint = did_you_mean(agent_id, known) or "`sub agents list` lists the registered agents"
    return SubluminalError(f"agent `{agent_id}` is not registered", hint=hint)


def _cannot(what: str, error: OSError, places: Places) -> SubluminalError:
    if isinstance(error, SubluminalError):
        return error  # its message is complete
    reason = (error.strerror or str(error)).lower()
    where = registry.agents_dir(places.state)
    return SubluminalError(f"cannot {what}: {reason}", hint=f"check who may write to `{where}`")
