"""Scenarios: an intent and a state in a JSON file, with the decision that is expected.

    {"intent": {"kind", "payload", "actor", "taint", "nonce"}, "state": {…},
     "expected": {"kind", "code"}}

Only `kind` and `payload` must be there. Whatever else a file holds is refused with a sentence.
"""

from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec import Struct

from subluminal.canonical import parse
from subluminal.contracts.limits import MAX_BUNDLE_BYTES
from subluminal.contracts.vocabulary import Taint
from subluminal.errors import InvalidInput, Problem, SubluminalError
from subluminal.kernel import (
    Decision,
    DecisionKind,
    IntentActor,
    IntentEnvelope,
    Origin,
    Pack,
    Refuse,
    TraceStep,
    adjudicate_with_trace,
    build_envelope,
)
from subluminal.kernel.plain import plain_json
from subluminal.kernel.refusals import told as text_of

_AT = "1970-01-01T00:00:00.000Z"


class _Actor(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    principal: str = "llm"
    session_id: str = "scenario"
    role: str | None = None


class _Intent(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    kind: str
    payload: Any
    actor: _Actor = _Actor()
    taint: Taint = Taint.UNTRUSTED
    nonce: str = "scenario"
    created_at: str = _AT
    resource_refs: dict[str, str] | None = None
    origin: Origin | None = None
    version: Literal[2] = 2


class Expected(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The decision that a scenario expects."""

    kind: DecisionKind
    code: str | None = None
    """of a refusal"""


class _File(Struct, frozen=True, forbid_unknown_fields=True):
    intent: _Intent
    state: Any = msgspec.field(default_factory=dict)
    expected: Expected | None = None
    name: str | None = None
    description: str | None = None


class Scenario(NamedTuple):
    """A scenario that was read."""

    file: str
    envelope: IntentEnvelope
    state: Any
    want: Expected | None


class ScenarioResult(NamedTuple):
    """What became of a scenario."""

    file: str
    ok: bool | None
    """None if the file expects nothing"""
    want: Expected | None
    got: Decision
    trace: list[TraceStep]

    def plain(self) -> dict[str, Any]:
        """Returns what `sub pack test --json` prints."""
        members: dict[str, Any] = plain_json(self._asdict() | {"trace": list(self.trace)})
        return members


def read_scenarios(pack: Pack, files: Iterable[tuple[str, bytes]]) -> list[Scenario]:
    """Reads files, each with its name. Raises InvalidInput with a problem for every bad one."""
    found, problems = [], []
    for name, data in files:
        try:
            found.append(_read(pack, name, data))
        except SubluminalError as error:
            problems.append(Problem(str(error), name, hint=error.hint))
    if problems:
        raise InvalidInput(problems)
    return found


def _read(pack: Pack, name: str, data: bytes) -> Scenario:
    try:
        file = msgspec.convert(_json(data), _File)
    except msgspec.ValidationError as error:
        raise SubluminalError(
            f"not a scenario: {text_of(error)}", hint="docs/guides/writing-a-pack.md shows one"
        ) from None
    if file.intent.kind not in pack.intents:
        raise SubluminalError(f"the pack has no intent `{file.intent.kind}`")
    return Scenario(name, _envelope(file.intent), state_from(pack, file.state), file.expected)


def _json(data: bytes) -> Any:
    if len(data) > MAX_BUNDLE_BYTES:
        raise SubluminalError(f"the file has more than {MAX_BUNDLE_BYTES} bytes")
    return plain_json(parse(data.strip()).value)


def _envelope(intent: _Intent) -> IntentEnvelope:
    actor = intent.actor
    return build_envelope(
        intent.kind,
        intent.payload,
        actor=IntentActor(actor.principal, actor.session_id, actor.role),
        taint=intent.taint,
        nonce=intent.nonce,
        created_at=intent.created_at,
        resource_refs=intent.resource_refs,
        origin=intent.origin,
    )


def state_from(pack: Pack, state: Any) -> Any:
    """Makes a pack's state from JSON. Raises SubluminalError if the pack refuses it."""
    if pack.rehydrate_state is None:
        return state
    try:
        return pack.rehydrate_state(state)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a pack's code may do anything
        said = f"{type(error).__name__}: {text_of(error)}"
        raise SubluminalError(f"the pack cannot make its state from this: {said}") from None


def run_scenario(pack: Pack, scenario: Scenario) -> ScenarioResult:
    """Decides about a scenario, and compares."""
    got, trace = adjudicate_with_trace(scenario.envelope, scenario.state, pack.policy)
    want = scenario.want
    ok = None if want is None else got.kind is want.kind and want.code in (None, _code(got))
    return ScenarioResult(scenario.file, ok, want, got, trace)


def _code(decision: Decision) -> str | None:
    return decision.refusal.code if isinstance(decision, Refuse) else None


def told(decision: Decision) -> str:
    """Returns a decision in a word, with the code of a refusal."""
    return " ".join(filter(None, (decision.kind.value, _code(decision))))


def read_state(data: bytes, file: str) -> Any:
    """Reads a state from a JSON file. Raises InvalidInput."""
    try:
        return _json(data)
    except SubluminalError as error:
        raise InvalidInput([Problem(str(error), file, hint=error.hint)]) from None
