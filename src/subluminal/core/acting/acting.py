"""What is known about the agent of this process: facts for rules, and how they were proven.

Theory of operation. Nothing is read until a rule asks (`ask`). Then the registry is read, and the
token, if there is one; a token that this home has not verified yet goes to a helper process, and
the first calls wait for its answer as they wait for a first policy. `poll` notices what changes the
facts: a change of the registry, another token, a proof that expires, the hour.

The agent is the one that `sub run` launched (`launches`); without a launch it is the one that
SUB_AGENT_ID names, and only a token proves that.
"""

import os
import time
from collections.abc import Callable
from typing import NamedTuple

from msgspec.structs import replace

from subluminal.clock import now, rfc3339
from subluminal.config import env
from subluminal.config.places import Places
from subluminal.contracts.agents import AgentFacts, AgentResolved, Claims, Proof, Registration
from subluminal.contracts.identity import Identity
from subluminal.contracts.vocabulary import ProofKind
from subluminal.core.acting.attested import (
    NOT_REGISTERED,
    Attested,
    Kept,
    collect_verified,
    refused,
    start_verifying,
)
from subluminal.core.acting.launches import Launch
from subluminal.core.acting.tokens import TokenSource
from subluminal.core.controls.agents import standing
from subluminal.core.helper_process import Helper, end
from subluminal.secrets.value import SecretValue
from subluminal.trust.levels import Circumstances, Resolved, resolve

LOOK_EVERY_MS = 250
"""Shortest time between two checks of the token's file."""
_EXPIRED = "the token has expired"


class Actor(NamedTuple):
    """An agent in one run: what is known, what is only said, and how it is proven."""

    facts: AgentFacts
    claims: Claims | None
    """what the agent says by its name alone; None if that is nothing"""
    record: AgentResolved
    """what events say"""


class _Proven(NamedTuple):
    proof: Proof
    has_expired: bool = False


class Acting:
    """The agent of one process, in each of its runs."""

    def __init__(
        self,
        places: Places,
        identity: Identity,
        launch: Launch,
        source: TokenSource,
        *,
        number: Callable[[], int | None],
        quiet_hours: Callable[[], bool],
        mask: Callable[[SecretValue], None],
    ) -> None:
        """`number` returns what moves with the registry; None if nothing tells of changes.

        `mask` keeps a token that was read from a file out of records.
        """
        self._places = places
        self._environment = identity.environment or identity.env.value
        self._launch = launch
        self._source = source
        self._number, self._quiet_hours, self._mask = number, quiet_hours, mask
        self._kept = Kept(places)
        self._agents: dict[str, Registration | None] = {}
        self._known: int | None = None
        """the number when the registry was read"""
        self._shown: Attested | None = None
        """what the token of this process proves"""
        self._verifying: tuple[Helper, bytes, Registration] | None = None
        self._next_look_ms = 0
        self._before: object = None
        self.is_asked = False
        """whether a rule has asked about the agent"""

    @property
    def is_pending(self) -> bool:
        """Whether the first token is being verified: until then the agent is not proven."""
        return self._verifying is not None and self._shown is None

    def give_up_waiting(self) -> None:
        """Goes on without the proof until the token is verified."""
        if self.is_pending:
            self._shown = refused("the token is still being verified")

    def ask(self) -> None:
        """Reads what is needed to answer rules, once."""
        if not self.is_asked:
            self.is_asked = True
            self._look_at_token()
            self._read_registry()
            self._before = self._inputs()

    def poll(self, mono_ms: int) -> bool:
        """Checks what the facts follow from; returns whether they may have changed."""
        if not self.is_asked:
            return False
        if mono_ms >= self._next_look_ms:
            self._next_look_ms = mono_ms + LOOK_EVERY_MS
            number = self._number()
            if number is None or number != self._known:
                self._read_registry()
            elif self._look_at_token():
                self._verify()
        if self._verifying is not None:
            self._collect(*self._verifying)
        inputs = self._inputs()
        is_changed, self._before = inputs != self._before, inputs
        return is_changed

    def in_run(self, run_id: str) -> Actor:
        """Returns what is known about the agent in a run."""
        self.ask()
        proven = self._proven(self._launch, run_id, self._shown)
        found = self._resolved(self._launch, proven)
        facts = found.facts
        record = AgentResolved(
            agent_id=self._launch.agent_id,
            environment=self._environment,
            registered=facts.registered,
            agent_type=facts.agent_type,
            trust_level=facts.trust_level,
            trust_after_denials=facts.trust_after_denials,
            roles=list(facts.roles),
            delegation_depth=facts.delegation_depth,
            proof=proven.proof,
        )
        return Actor(facts, None if found.claims == Claims() else found.claims, record)

    def close(self) -> None:
        """Ends a helper that still runs."""
        if self._verifying is not None:
            end(self._verifying[0])
            self._verifying = None

    def drop_inherited(self) -> None:
        """Forgets a helper that a forked child inherited; the child starts its own."""
        if self._verifying is not None:
            os.close(self._verifying[0].fd)
            self._verifying = None
        self._known = None
        self._next_look_ms = 0

    # The registry and the token

    def _read_registry(self) -> None:
        # INVARIANT: the number is read before the registry. A change in between moves it again.
        self._known = self._number()
        for agent_id in self._launch.agent_ids:
            self._agents[agent_id] = standing(self._places.state, agent_id).registration
        self._look_at_token()
        self._verify()

    def _look_at_token(self) -> bool:
        is_new = self._source.look()
        if is_new and self._source.token:
            token = self._source.token.decode("utf-8", "replace")
            self._mask(SecretValue(env.SUB_ATTESTATION.name, token))
        return is_new

    def _verify(self) -> None:
        """Finds out what the token proves: from what is kept, or from a helper."""
        registration, token = self._agents.get(self._launch.agent_id), self._source.token
        self.close()
        if not token:
            self._shown = refused(self._source.problem) if self._source.problem else None
            return
        if registration is None:
            self._shown = refused(NOT_REGISTERED)
            return
        kept = self._kept.get(token, registration)
        if kept is not None:
            self._shown = kept
            return
        try:
            helper = start_verifying(self._places, self._launch.agent_id, token)
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            self._shown = refused(f"it cannot be verified: {reason}")
            return
        self._verifying = helper, token, registration

    def _collect(self, helper: Helper, token: bytes, registration: Registration) -> None:
        found = collect_verified(helper)
        if found is not None:
            self._verifying = None
            self._kept.put(token, registration, found)
            self._shown = found

    # What follows

    def _inputs(self) -> object:
        """Returns everything that the facts follow from; another value, other facts."""
        at = rfc3339(now().wall_ms)
        attested = [self._shown, *(each.attested for each in _chain(self._launch))]
        expired = [each is not None and _is_over(each.proof, at) for each in attested]
        return dict(self._agents), self._shown, expired, self._hour()

    def _hour(self) -> int | None:
        return time.localtime().tm_hour if self._quiet_hours() else None

    def _proven(self, launch: Launch, run_id: str, shown: Attested | None = None) -> _Proven:
        """Returns the best proof of an agent: a token that it shows, or its launch."""
        at = rfc3339(now().wall_ms)
        registration = self._agents.get(launch.agent_id)
        has_expired, problem = False, None
        for each in (shown, launch.attested):
            if each is None:
                continue
            if each.holds(registration, run_id):
                if not _is_over(each.proof, at):
                    return _Proven(each.proof)
                has_expired, problem = True, problem or _EXPIRED
            else:
                has_expired |= each.has_expired
                problem = problem or each.proof.problem or _void(each, run_id)
        kind = ProofKind.LAUNCHED if launch.is_launched else ProofKind.NONE
        return _Proven(Proof(kind=kind, problem=problem), has_expired)

    def _resolved(self, launch: Launch, proven: _Proven) -> Resolved:
        parent = launch.parent
        above = None
        if parent is not None:
            above = self._resolved(parent, self._proven(parent, parent.run_id)).facts
        return resolve(
            self._agents.get(launch.agent_id),
            proven.proof.kind,
            Circumstances(launch.environment or self._environment, launch.depth, self._hour()),
            has_expired=proven.has_expired,
            parent=above,
        )


def claims_with(run: Claims | None, call: Claims | None) -> Claims | None:
    """Returns what is claimed about a call: by the call itself, else by the name of its agent.

    What the name says holds without the call's claims too: the call must not take it back.
    """
    if run is None or call is None:
        return call or run
    said = {name: getattr(call, name) for name in Claims.__struct_fields__}
    given = {name: value for name, value in said.items() if value is not None}
    alone = replace(run, besides=())
    return replace(run, **{**given, "besides": (alone, *run.besides, *call.besides)})


def _chain(launch: Launch | None) -> list[Launch]:
    return [] if launch is None else [launch, *_chain(launch.parent)]


def _is_over(proof: Proof, at: str) -> bool:
    # Both are written by `clock.rfc3339`, so that texts are in the order of their times.
    return proof.expires_at is not None and proof.expires_at <= at


def _void(attested: Attested, run_id: str) -> str:
    if attested.run_id not in (None, run_id):
        return "the token is for another run"
    return "the agent was registered anew with other issuers"
