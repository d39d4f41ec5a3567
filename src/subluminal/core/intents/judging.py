"""Asks the packs of `kernel` rules about tool calls, and keeps their answers for one call.

The code of a pack is not ours and must not run under the run's lock. So `with_judge` asks before
the lock is taken, and keeps the answers; the evaluation under the lock asks the same questions and
gets these. Only if the run was lowered in between is a pack asked again.

What a call is as an intent: the model proposes it, so its level is UNTRUSTED. A run below TRUSTED
has read text of others, which adds the origin Retrieved. The nonce is the hash of the arguments, so
a retry is the same intent.
"""

import time
from collections.abc import Mapping
from typing import Any, NamedTuple

from msgspec.structs import replace

from subluminal.canonical import AmbiguousJSON, args_hash
from subluminal.clock import SystemClock, rfc3339
from subluminal.contracts.counters import Counters
from subluminal.contracts.intents import Judgement
from subluminal.contracts.vocabulary import TAINT_RANK, Taint
from subluminal.core.intents.index import StateProblem, loaded, state_of
from subluminal.core.intents.outcomes import Adjudged, AskedPack, judgement
from subluminal.core.intents.packs import LoadedPack, PackProblem
from subluminal.errors import SubluminalError
from subluminal.kernel.adjudication import TraceStep, adjudicate_with_deadline, taint_refusal
from subluminal.kernel.decisions import Decision as Verdict
from subluminal.kernel.decisions import Escalate, RequestConfirmation, Rewrite
from subluminal.kernel.envelope import IntentActor, IntentEnvelope, build_envelope, effective_taint
from subluminal.kernel.learning import deciding_guard
from subluminal.kernel.taint import Origin
from subluminal.policy.evaluation import Call, Engine
from subluminal.policy.visit import NotJudged, PackMissing

DEADLINE_MS = 250
"""Time that all packs have together to decide about one call. A guard is not interrupted."""

_SHOWN = 12
"""Digits of a fingerprint that people are shown."""
_TRUSTED = TAINT_RANK[Taint.TRUSTED]


class Traced(NamedTuple):
    """How a pack came to its answer, for `sub policy explain`."""

    layer: str
    rule_id: str
    said: Judgement
    steps: list[TraceStep]


def with_judge(
    asked: Call, engine: Engine, session_id: str, counters: Counters, *, ahead: bool
) -> Call:
    """Returns a call with its judge. If `ahead`, all packs that its rules ask have answered."""
    wall_ms = time.time_ns() // 1_000_000
    judged = replace(asked, judge=CallJudge(asked, session_id, wall_ms))
    if ahead:
        engine.ask_packs(judged, counters, wall_ms=wall_ms)
    return judged


class CallJudge:
    """Asks packs about one call, each question once; a `contracts.intents.Judge`."""

    def __init__(self, call: Call, session_id: str, wall_ms: int) -> None:
        """`session_id` is the id of the run, and `wall_ms` the time of the call."""
        self._call = call
        self._session_id = session_id
        self._created_at = rfc3339(wall_ms)
        self._clock = SystemClock()
        self._left_ms = float(DEADLINE_MS)
        self._answers: dict[tuple[str, str, str, bool], Judgement | NotJudged] = {}
        self.traces: list[Traced] = []
        """how the packs came to their answers, in the order in which they were asked"""

    def __call__(
        self, layer: str, rule: Mapping[str, Any], args: dict[str, Any], level: Taint
    ) -> Judgement:
        """Returns what the pack of a rule says. Raises NotJudged."""
        nonce = self._call.args_hash if args is self._call.args else _hash_of(args)
        # Of the run's level, only this is in the intent.
        is_contaminated = TAINT_RANK[level] > _TRUSTED
        key = (layer, rule["rule_id"], nonce, is_contaminated)
        answer = self._answers.get(key)
        if answer is None:
            try:
                answer = self._judged(layer, rule, args, nonce, is_contaminated)
            except NotJudged as error:
                answer = error
            self._answers[key] = answer
        if isinstance(answer, NotJudged):
            raise answer
        return answer

    def _judged(
        self, layer: str, rule: Mapping[str, Any], args: dict[str, Any], nonce: str, stained: bool
    ) -> Judgement:
        asked = rule["effect"]["kernel"]
        found = _matching(asked["pack"], asked["fingerprint"])
        envelope = self._envelope(asked, args, nonce, stained)
        steps: list[TraceStep] = []
        verdict = self._adjudged(found, envelope, asked["state"], steps)
        adjudged = Adjudged(
            verdict=verdict,
            intent_kind=envelope.kind,
            intent_hash=envelope.intent_hash,
            taint=effective_taint(envelope),
            guard=deciding_guard(steps),
        )
        suggested = None
        if isinstance(verdict, Rewrite):
            # The rule offers them only if they would pass, and asks again to know that.
            suggested = mended_args(asked["payload"], args, verdict.rewritten.payload)
        said = judgement(
            AskedPack(found.name, found.version, found.fingerprint), adjudged, suggested
        )
        self.traces.append(Traced(layer, rule["rule_id"], said, steps))
        return said

    def _envelope(
        self, asked: Mapping[str, Any], args: dict[str, Any], nonce: str, stained: bool
    ) -> IntentEnvelope:
        try:
            return build_envelope(
                asked["intent"],
                payload_of(asked["payload"], args),
                actor=IntentActor("llm", self._session_id),
                taint=Taint.UNTRUSTED,
                nonce=nonce,
                created_at=self._created_at,
                origin=Origin.RETRIEVED if stained else None,
            )
        except (SubluminalError, AmbiguousJSON) as error:
            raise NotJudged(f"the arguments cannot be the payload of an intent: {error}") from None

    def _adjudged(
        self,
        found: LoadedPack,
        envelope: IntentEnvelope,
        state: dict[str, Any],
        steps: list[TraceStep],
    ) -> Verdict:
        began = self._clock.mono_ms()
        try:
            made = state_of(found.pack, state)
        except StateProblem as error:
            raise NotJudged(f"the pack `{found.name}` cannot use its state: {error}") from None
        policy = found.pack.policy
        try:
            verdict = adjudicate_with_deadline(
                *(envelope, made, policy),
                deadline_ms=self._left_ms - (self._clock.mono_ms() - began),
                clock=self._clock,
                steps=steps,
            )
        except (SystemExit, GeneratorExit) as error:  # a guard must not end this process
            said = f"a guard of the pack `{found.name}` raised {type(error).__name__}"
            raise NotJudged(said) from None
        self._left_ms -= self._clock.mono_ms() - began
        if isinstance(verdict, Escalate | RequestConfirmation):
            # The taint gate holds whatever a person says, so no person is asked.
            return taint_refusal(envelope, policy) or verdict
        return verdict


def _hash_of(args: dict[str, Any]) -> str:
    """Returns the hash of arguments that a rule suggests."""
    try:
        return args_hash(args)
    except AmbiguousJSON as error:
        raise NotJudged(f"the arguments cannot be the payload of an intent: {error}") from None


def _matching(name: str, fingerprint: str) -> LoadedPack:
    """Returns the installed pack if it is the one that the policy was compiled with."""
    try:
        found = loaded(name)
    except PackProblem as error:
        raise PackMissing(f"{error}; restart the agent when it is installed again") from None
    if found.fingerprint != fingerprint:
        raise PackMissing(
            f"the pack `{name}` has changed: the policy was compiled with {fingerprint[:_SHOWN]},"
            f" and this process has {found.fingerprint[:_SHOWN]}; restart the agent"
        )
    return found


def payload_of(fields: Mapping[str, str] | None, args: dict[str, Any]) -> dict[str, Any]:
    """Returns the payload of an intent: fields from arguments, or all arguments."""
    if fields is None:
        return args
    return {field: args[name] for field, name in fields.items() if name in args}


def mended_args(
    fields: Mapping[str, str] | None, args: dict[str, Any], payload: Any
) -> dict[str, Any] | None:
    """Returns the arguments that give a payload; None if there are none."""
    if not isinstance(payload, dict):
        return None
    if fields is None:
        return payload
    mended = {name: value for name, value in args.items() if name not in fields.values()}
    mended |= {fields[field]: value for field, value in payload.items() if field in fields}
    return mended if payload_of(fields, mended) == payload else None
