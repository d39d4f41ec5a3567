"""Eight checks of what a pack does, asked with probes: `assert_pack_conformance` checks its shape.

A probe is an envelope with a state. Every intent is probed with an empty payload and the empty
state, and with the scenarios that the caller has. The checks find faults; they do not prove that
there are none.
"""

from collections.abc import Collection, Iterable, Iterator
from enum import StrEnum
from typing import Any

from msgspec import Struct

from subluminal.contracts.vocabulary import Taint
from subluminal.kernel.adjudication import adjudicate, adjudicate_with_trace
from subluminal.kernel.decisions import DecisionKind
from subluminal.kernel.envelope import IntentActor, IntentEnvelope, build_envelope, with_payload
from subluminal.kernel.observing import SinkFailure
from subluminal.kernel.packs import Pack, with_basis_audit
from subluminal.kernel.taint import can_propose

_ORDER = ("kill", "schema", "state", "taint", "auth", "business", "default")
_SELF_CONFIRMATIONS = (
    "confirmed",
    "confirmation",
    "confirmationToken",
    "confirmToken",
    "approvalToken",
    "selfConfirm",
    "skipConfirmation",
    "bypassConfirmation",
)
_TRUTHY = (True, 1, "true", "x")


class Check(StrEnum):
    """What is asked of a pack."""

    UNTRUSTED_NEVER_EXECUTES = "untrusted-never-executes"
    REPLAY_DETERMINISM = "replay-determinism"
    INTENT_HASH_DETERMINISTIC = "intent-hash-deterministic"
    BASIS_VOCABULARY_PURITY = "basis-vocabulary-purity"
    GUARD_ORDERING = "guard-ordering"
    DEFAULT_POLARITY = "default-polarity"
    NO_PAYLOAD_SELF_CONFIRMATION = "no-payload-self-confirmation"
    UNTRUSTED_MUTATING_NEEDS_OWNER = "untrusted-mutating-needs-owner"


class CheckResult(Struct, frozen=True, omit_defaults=True):
    """The answer to one check."""

    check: Check
    passed: bool
    detail: str | None = None
    """the first fault"""


class Scenario(Struct, frozen=True):
    """A payload and a state in which an intent is probed."""

    kind: str
    payload: Any
    state: Any


def check_pack(
    pack: Pack,
    *,
    scenarios: Iterable[Scenario] = (),
    read_only: Collection[str] = (),
    allow_default_execute: bool = False,
) -> list[CheckResult]:
    """Asks all eight checks. `read_only` names the intents that change nothing."""
    probed = _Probed(pack, scenarios, read_only, allow_default_execute)
    faults = {
        Check.UNTRUSTED_NEVER_EXECUTES: probed.executes_untrusted(),
        Check.REPLAY_DETERMINISM: probed.decides_twice(),
        Check.INTENT_HASH_DETERMINISTIC: probed.hashes_by_order(),
        Check.BASIS_VOCABULARY_PURITY: probed.drifts(),
        Check.GUARD_ORDERING: probed.leaves_the_order(),
        Check.DEFAULT_POLARITY: probed.executes_by_default(),
        Check.NO_PAYLOAD_SELF_CONFIRMATION: probed.confirms_itself(),
        Check.UNTRUSTED_MUTATING_NEEDS_OWNER: probed.has_no_owner(),
    }
    found = {check: next(iterator, None) for check, iterator in faults.items()}
    return [CheckResult(check, fault is None, fault) for check, fault in found.items()]


class _Drifts:
    """A sink that keeps what a pack says and did not declare."""

    def __init__(self) -> None:
        self.seen: list[SinkFailure] = []

    def record_sink_failure(self, event: SinkFailure, /) -> None:
        self.seen.append(event)


class _Probed:
    """A pack with its probes. Each method yields faults."""

    def __init__(
        self,
        pack: Pack,
        scenarios: Iterable[Scenario],
        read_only: Collection[str],
        allow_default_execute: bool,
    ) -> None:
        self._pack = pack
        self._policy = pack.policy
        self._read_only = read_only
        self._allow_default_execute = allow_default_execute
        empty = {} if pack.rehydrate_state is None else pack.rehydrate_state({})
        self._scenarios = [Scenario(kind, {}, empty) for kind in pack.intents] + list(scenarios)

    def _probes(self, level: Taint) -> Iterator[tuple[IntentEnvelope, Any]]:
        principal = "llm" if level is Taint.UNTRUSTED else "system"
        for number, scenario in enumerate(self._scenarios):
            envelope = build_envelope(
                scenario.kind,
                scenario.payload,
                actor=IntentActor(principal, "conformance"),
                taint=level,
                nonce=f"probe-{number}",
                created_at="1970-01-01T00:00:00Z",
            )
            yield envelope, scenario.state

    def _all_probes(self) -> Iterator[tuple[IntentEnvelope, Any]]:
        for level in Taint:
            yield from self._probes(level)

    def executes_untrusted(self) -> Iterator[str]:
        for envelope, state in self._probes(Taint.UNTRUSTED):
            decision = adjudicate(envelope, state, self._policy)
            if decision.kind is DecisionKind.EXECUTE and not self._is_open(envelope.kind):
                yield f"`{envelope.kind}` executes UNTRUSTED"

    def _is_open(self, kind: str) -> bool:
        """Whether UNTRUSTED may propose this kind, as far as the policy can say."""
        try:
            return can_propose(Taint.UNTRUSTED, kind, self._policy.taint)
        except Exception:  # noqa: BLE001 - a taint policy that errs lets nothing pass
            return False

    def decides_twice(self) -> Iterator[str]:
        for envelope, state in self._all_probes():
            once = adjudicate_with_trace(envelope, state, self._policy)
            if once != adjudicate_with_trace(envelope, state, self._policy):
                yield f"`{envelope.kind}` is decided in two ways"

    def hashes_by_order(self) -> Iterator[str]:
        for envelope, _ in self._probes(Taint.SYSTEM):
            if with_payload(envelope, _reversed(envelope.payload)) != envelope:
                yield f"the hash of `{envelope.kind}` depends on the order of keys"

    def drifts(self) -> Iterator[str]:
        sink: Any = _Drifts()
        watched = with_basis_audit(self._pack, sink)
        for envelope, state in self._all_probes():
            adjudicate(envelope, state, watched.policy)
            for drift in sink.seen:
                yield f"`{envelope.kind}`: {drift.error_class}: {drift.detail}"

    def leaves_the_order(self) -> Iterator[str]:
        for envelope, state in self._all_probes():
            _, steps = adjudicate_with_trace(envelope, state, self._policy)
            places = [_ORDER.index(step.phase) for step in steps]
            if places != sorted(places):
                yield f"`{envelope.kind}` is judged out of order"

    def executes_by_default(self) -> Iterator[str]:
        if self._policy.default != "REFUSE" and not self._allow_default_execute:
            yield f"the default is {self._policy.default}"

    def confirms_itself(self) -> Iterator[str]:
        for envelope, state in self._probes(Taint.UNTRUSTED):
            if not isinstance(envelope.payload, dict):
                continue
            if adjudicate(envelope, state, self._policy).kind is DecisionKind.EXECUTE:
                continue
            for name in _SELF_CONFIRMATIONS:
                if any(self._executes_with(envelope, state, name, value) for value in _TRUTHY):
                    yield f"`{envelope.kind}` executes if its payload has `{name}`"

    def _executes_with(self, envelope: IntentEnvelope, state: Any, name: str, value: Any) -> bool:
        claimed = with_payload(envelope, {**envelope.payload, name: value})
        return adjudicate(claimed, state, self._policy).kind is DecisionKind.EXECUTE

    def has_no_owner(self) -> Iterator[str]:
        if self._policy.auth_guards:
            return
        for kind in self._pack.intents:
            if kind not in self._read_only and self._is_open(kind):
                yield f"UNTRUSTED may propose `{kind}`, and no auth guard is asked"


def _reversed(payload: Any) -> Any:
    """Returns an envelope's payload with the members of every object in the opposite order."""
    root = [payload]
    unfinished: list[Any] = [root]
    while unfinished:
        made = unfinished.pop()
        for place, member in [*(made.items() if type(made) is dict else enumerate(made))]:
            if isinstance(member, dict | list):
                copy = dict(reversed(member.items())) if isinstance(member, dict) else [*member]
                made[place] = copy
                unfinished.append(copy)
    return root[0]
