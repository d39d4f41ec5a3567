"""People's answers at the time of a recorded call: grants and denials (no-call-waits).

Works as `core.controls.approvals` does: a grant matters only if its rule refuses the call. If the
record of the call says what was found at the time, that counts more than any clock.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Set
from typing import NamedTuple

import msgspec
from msgspec import UNSET

from subluminal.contracts.decision import Decision, GrantRef
from subluminal.contracts.vocabulary import Action, ApprovalAnswer, ReasonCode, Requirement
from subluminal.policy.evaluation import Call, Evaluation
from subluminal.policy.refusing import Refuser, client_may_ask, grant_fits, left_to_client
from subluminal.policy.replay.recorded import RecordedAnswer, RecordedCall

_Slot = tuple[str, str, str | None, str]
"""server_name, tool_name, args_hash (None for all arguments), rule_id"""

_REQUIRED = frozenset(
    {
        ReasonCode.APPROVAL_REQUIRED,
        ReasonCode.STEP_UP_REQUIRED,
        ReasonCode.TICKET_REQUIRED,
        ReasonCode.HUMAN_REQUIRED,
        ReasonCode.CONFIRMATION_REQUIRED,
    }
)
_LIMITED = frozenset(
    {
        ReasonCode.BUDGET_EXCEEDED,
        ReasonCode.RATE_LIMITED,
        ReasonCode.BREAKER_TRIPPED,
        ReasonCode.DEDUPE_DUPLICATE,
    }
)


class _Held(NamedTuple):
    """An answer that holds at the time of a call."""

    approved: bool
    grant_id: str
    for_run: bool
    """whether the rule is lifted for the whole run, whatever the arguments"""


_ASKED = _Held(True, "", False)
"""The client asked its person, and let the call wait for the answer."""


class Answers:
    """All answers of one run."""

    def __init__(self, answers: Iterable[RecordedAnswer] = ()) -> None:
        self._by_slot: dict[_Slot, list[RecordedAnswer]] = {}
        for each in sorted(answers, key=lambda answer: answer.at_ms):
            given = each.given
            args_hash = None if given.args_hash is UNSET else given.args_hash
            slot = (given.server_name, given.tool_name, args_hash, given.rule_id)
            self._by_slot.setdefault(slot, []).append(each)
        self._used: Counter[str] = Counter()

    def settle(
        self,
        call: RecordedCall,
        asked: Call,
        refused: Evaluation,
        evaluate: Callable[[Call], Evaluation],
        layers: Set[str],
    ) -> Evaluation:
        """Applies people's answers to a call that rules refuse.

        `layers` are the layers of the run.
        """
        entries = refused.refused_by
        found = {}
        was_asked = call.decision.said.reason_code == ReasonCode.CLIENT_ASKED
        for entry in entries:
            held = self._held(call, entry, layers)
            if held is None and was_asked and client_may_ask(entry):
                held = _ASKED
            if held is not None:
                found[entry.grant_key] = held
        if any(not held.approved for held in found.values()):
            return _denied(refused, entries)
        excused = self._excused(call, refused.limited_by, layers)
        if not found and not excused:
            return refused
        lifted = frozenset(key for key, held in found.items() if held.for_run)
        evaluation = evaluate(
            msgspec.structs.replace(
                asked,
                granted=frozenset(found.keys() - lifted),
                lifted=lifted,
                excused=frozenset(excused),
            )
        )
        found |= excused
        if evaluation.forwarded and _ASKED in found.values():
            evaluation.decision = left_to_client(entries[0])
        elif evaluation.forwarded:
            evaluation.grants = tuple(
                GrantRef(grant_id=found[key].grant_id, approver="")
                for key in evaluation.grants_used
            )
        return evaluation

    def use(self, evaluation: Evaluation) -> None:
        """Counts the uses of the grants that let a call pass."""
        self._used.update(each.grant_id for each in evaluation.grants)

    def _held(self, call: RecordedCall, entry: Refuser, layers: Set[str]) -> _Held | None:
        recorded = call.decision
        is_its_rule = recorded.said.rule_id == entry.refusal.rule_id
        code = recorded.said.reason_code if is_its_rule else ""
        if code == ReasonCode.APPROVAL_DENIED:
            return _Held(False, "", False)
        if code in _REQUIRED:
            return None  # nobody had answered, or the answer no longer held
        for args_hash in (call.args_hash, None):
            if args_hash is not None and entry.requirement is None:
                continue
            held = self._in_slot(call, args_hash, entry.grant_key, layers, entry.requirement)
            if held is not None:
                return held
        if code == ReasonCode.APPROVAL_GRANTED:
            return _Held(True, min(recorded.grants, default=""), False)
        return None

    def _excused(
        self, call: RecordedCall, limits: list[tuple[str, str]], layers: Set[str]
    ) -> dict[tuple[str, str], _Held]:
        """Returns the limits that a person let this very call pass."""
        recorded = call.decision
        found = {}
        for key in limits:
            code = recorded.said.reason_code if recorded.said.rule_id == key[1] else ""
            held = None if code in _LIMITED else self._in_slot(call, call.args_hash, key, layers)
            if held is None and code == ReasonCode.APPROVAL_GRANTED:
                held = _Held(True, min(recorded.grants, default=""), False)
            if held is not None and held.approved:
                found[key] = held
        return found

    def _in_slot(
        self,
        call: RecordedCall,
        args_hash: str | None,
        key: tuple[str, str],
        layers: Set[str],
        required: Requirement | None = None,
    ) -> _Held | None:
        layer, rule_id = key
        slot = (call.server_name, call.tool_name, args_hash, rule_id)
        answers = [
            each
            for each in self._by_slot.get(slot, ())
            # An answer for a layer that the candidate replaces is matched by rule_id alone.
            if each.given.layer == layer or each.given.layer not in layers
        ]
        return self._latest(answers, call, required)

    def _latest(
        self, answers: Iterable[RecordedAnswer], call: RecordedCall, required: Requirement | None
    ) -> _Held | None:
        """Returns the last answer before the call, if it still holds."""
        last: RecordedAnswer | None = None
        for each in answers:
            was_used = each.given.grant_id in call.decision.grants
            if was_used or each.at_ms <= call.wall_ms:
                last = each
        if last is None:
            return None
        given = last.given
        if given.answer is ApprovalAnswer.DENIED:
            return _Held(False, "", False)
        grant_id = str(given.grant_id)
        spent = given.uses is not UNSET and self._used[grant_id] >= given.uses
        if spent or (last.expires_ms is not None and call.wall_ms >= last.expires_ms):
            return None
        if not grant_fits(given.requirement, required):
            return None
        return _Held(True, grant_id, given.args_hash is UNSET)


def _denied(refused: Evaluation, entries: list[Refuser]) -> Evaluation:
    """Turns the refusal into a person's denial, if the rule that asked is the one that decides."""
    decision = refused.decision
    for refusal in (entry.refusal for entry in entries):
        if (decision.reason_code, decision.rule_id) == (refusal.reason_code, refusal.rule_id):
            refused.decision = Decision(
                action=Action.BLOCK,
                rule_id=refusal.rule_id,
                severity=decision.severity,
                reason_code=ReasonCode.APPROVAL_DENIED,
                summary="",
            )
    return refused
