"""A run's side of approvals: what waits for a person, and what their answers let pass (D3).

Asked only about calls that an access rule refuses, so calls that pass pay nothing, and an answer
holds from the next try on in every shim of the run. Works under the run's lock: a use is counted
once, whoever else races for it.
"""

import hashlib
import os
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET

from subluminal.clock import rfc3339
from subluminal.contracts.control import ApprovalAsked, RefusedGrant
from subluminal.contracts.counters import CellKind, CountersFull, Update
from subluminal.contracts.decision import Decision, GrantRef
from subluminal.contracts.events import ApprovalRequested, CallRef, Event, GrantRefused
from subluminal.contracts.vocabulary import (
    Action,
    ApprovalAnswer,
    GrantProblem,
    Layer,
    ReasonCode,
)
from subluminal.core.approval_files import (
    MAX_WAITING,
    OPEN,
    Answer,
    ApprovalFiles,
    Request,
    Slot,
    slot_of,
)
from subluminal.core.previews import Previewer
from subluminal.core.run import Run
from subluminal.core.sealed import SealBroken, seal_key
from subluminal.policy.evaluation import Call, Engine, Evaluation
from subluminal.policy.rules.access import AccessEntry

PENDING_MS = 86_400_000
"""How long an approval waits after the call was last tried."""

_SWEEP_MS = 1_000
"""How often a full run looks for room, under a lock that other shims wait for."""

_NOT_STORED = "nobody could be asked, because the request cannot be stored: tell your user"
_TOO_MANY = (
    f"nobody was asked, because {MAX_WAITING} calls of this run wait for a person already:"
    " tell your user, and do not try other arguments"
)

_MAX_TOLD = 1_024
"""Refused grants that are remembered, so that each is told once."""


class _Try(NamedTuple):
    """One call as it is being decided."""

    call: Call
    call_id: str
    args_text: bytes | None
    wall_ms: int
    mono_ms: int


class _Found(NamedTuple):
    """An answer that holds."""

    slot: Slot
    answer: Answer


class Approvals:
    """The approvals of one run, as one of its shims sees them."""

    def __init__(self, state_dir: str, run: Run, previewer: Previewer) -> None:
        self._state_dir = state_dir
        self._run = run
        self._previews = previewer
        self._told: set[tuple[str, str]] = set()
        self.news: list[tuple[type[Event], dict[str, Any]]] = []
        """events that are not written yet"""
        self._opened: ApprovalFiles | None = None
        self._full_until_ms = 0

    def settle(
        self,
        engine: Engine,
        refused: Evaluation,
        call: Call,
        *,
        call_id: str,
        args_text: bytes | None,
        wall_ms: int,
        mono_ms: int,
    ) -> Evaluation:
        """What becomes of a call that access rules refuse. Needs the run's lock.

        The caller writes the counters of what is returned, and of nothing else.
        """
        tried = _Try(call, call_id, args_text, wall_ms, mono_ms)
        entries = refused.refused_by
        found = [each for each in (self._find(entry, tried) for entry in entries) if each]
        no = next((each for each in found if _is_no(each)), None)
        if no is not None:
            return _denied(refused, entries, no)
        evaluation = self._let_pass(engine, tried, found) or refused
        if not evaluation.forwarded:
            self._ask(evaluation, tried)
        return evaluation

    def tell(self) -> None:
        """Journals what has happened. After the decision: the events name its call."""
        news, self.news = self.news, []

        def write() -> None:
            for kind, fields in news:
                self._run.emit(kind, **fields)

        self._run.record(write)

    # Answers

    def _find(self, entry: AccessEntry, tried: _Try) -> _Found | None:
        """The answer that holds for this call and rule: for the very call first."""
        call, (layer, rule_id) = tried.call, entry.grant_key
        slots = [Slot(call.server_name, call.tool_name, None, layer, rule_id)]
        if entry.requirement is not None:
            slots.insert(0, slots[0]._replace(args_hash=call.args_hash))
        for slot in slots:
            answer = self._read(slot, tried)
            if answer is not None:
                return _Found(slot, answer)
        return None

    def _read(self, slot: Slot, tried: _Try) -> Answer | None:
        try:
            answer = self._files.answer(slot)
        except (SealBroken, OSError) as error:
            self._refuse_grant(GrantProblem.SEAL, _unbelievable(error), None, tried)
            return None
        if answer is None:
            return None
        problem = self._problem(answer, slot, tried.wall_ms)
        if problem is None:
            return answer
        if answer.given.answer is ApprovalAnswer.APPROVED:
            self._refuse_grant(*problem, answer, tried)
        return None

    def _problem(self, answer: Answer, slot: Slot, wall_ms: int) -> tuple[GrantProblem, str] | None:
        """Why an answer does not hold, though this home wrote it."""
        given, state = answer.given, self._run.state
        if answer.run_id != self._run.run_id:
            return GrantProblem.RUN, f"it was made for run {answer.run_id}"
        if answer.incarnation != state.incarnation:
            return GrantProblem.STATE, "the run's state was removed since it was made"
        if slot_of(given) != slot:
            return GrantProblem.CALL, f"it was made for {given.server_name}/{given.tool_name}"
        if answer.expires_ms is not None and wall_ms >= answer.expires_ms:
            return GrantProblem.EXPIRED, f"it held until {given.expires_at}"
        if given.uses is not UNSET and self._used(given.grant_id) >= given.uses:
            return GrantProblem.SPENT, f"it was used {given.uses} times"
        return None

    # Grants

    def _let_pass(self, engine: Engine, tried: _Try, found: list[_Found]) -> Evaluation | None:
        """Decides again with the grants, and uses those that it took; None if there is none."""
        if not found:
            return None
        by_key = {(each.slot.layer, each.slot.rule_id): each for each in found}
        granted = [key for key, each in by_key.items() if each.slot.args_hash is not None]
        call = msgspec.structs.replace(
            tried.call,
            granted=frozenset(granted),
            lifted=frozenset(by_key.keys() - set(granted)),
        )
        counters = self._run.state.counters
        evaluation = engine.evaluate(call, counters, wall_ms=tried.wall_ms, mono_ms=tried.mono_ms)
        if not evaluation.forwarded:
            return evaluation  # something stands against it that no grant is for
        used = [by_key[key].answer for key in evaluation.grants_used]
        if not all(self._use(answer, tried) for answer in used):
            return None
        evaluation.grants = tuple(
            GrantRef(grant_id=str(answer.given.grant_id), approver=answer.given.by)
            for answer in used
        )
        return evaluation

    def _use(self, answer: Answer, tried: _Try) -> bool:
        """Counts one use: in the run's state, and by a mark that outlives an older copy of it."""
        given = answer.given
        if given.uses is UNSET:
            return True
        grant_id = str(given.grant_id)
        try:
            number = self._files.claim_use(grant_id, self._used(grant_id) + 1, given.uses)
            if number is None:
                self._refuse_grant(
                    GrantProblem.SPENT, f"it was used {given.uses} times", answer, tried
                )
                return False
            self._run.state.counters.write([_use_count(grant_id, number)])
        except (OSError, CountersFull):
            self._refuse_grant(
                GrantProblem.UNCOUNTED, "its use could not be counted", answer, tried
            )
            return False
        return True

    def _used(self, grant_id: object) -> int:
        kind, key, _ = _use_count(str(grant_id), 0)
        cell = self._run.state.counters.read(kind, key)
        return cell[0] if cell else 0

    def _refuse_grant(
        self, problem: GrantProblem, detail: str, answer: Answer | None, tried: _Try
    ) -> None:
        """Puts on record that a grant lay there and was not taken; once for each call."""
        grant_id = UNSET if answer is None else answer.given.grant_id
        told = (f"{grant_id} {tried.call.args_hash} {tried.call.tool_name}", problem)
        if told in self._told:
            return
        if len(self._told) >= _MAX_TOLD:
            self._told.clear()
        self._told.add(told)
        refused = RefusedGrant(
            problem=problem,
            detail=detail,
            grant_id=grant_id,
            approval_id=UNSET if answer is None else answer.given.approval_id,
        )
        self.news.append((GrantRefused, {"call": self._ref(tried), "grant": refused}))

    # Requests

    def _ask(self, evaluation: Evaluation, tried: _Try) -> None:
        """Opens an approval for each rule that asks, if one of them is what decided."""
        decision = evaluation.decision
        asking = [entry for entry in evaluation.refused_by if entry.requirement is not None]
        deciding = next((entry for entry in asking if _decided(entry, decision)), None)
        if deciding is None:
            return
        ways = {entry: self._request(entry, tried) for entry in asking}
        if decision.hint is None:
            return
        hint, way = decision.hint, ways[deciding]
        if isinstance(way, Request):
            # Its name, for the user to look it up; not the command, which agents would run (D13).
            way = f"{hint.retry_advice}; this is approval {way.approval.approval_id}"
        evaluation.decision = msgspec.structs.replace(
            decision, hint=msgspec.structs.replace(hint, retry_advice=way)
        )

    def _request(self, entry: AccessEntry, tried: _Try) -> Request | str:
        """Writes what waits for a person, or refreshes it; else says why nobody is asked."""
        call, (layer, rule_id) = tried.call, entry.grant_key
        slot = Slot(call.server_name, call.tool_name, call.args_hash, layer, rule_id)
        expires_ms = tried.wall_ms + PENDING_MS
        try:
            before = self._files.request(slot)
            if before is None and not self._has_room(tried):
                return _TOO_MANY
            if before is not None and self._still_waits(before, slot, tried.wall_ms):
                request = _tried_again(before, expires_ms)
            else:
                request = self._new_request(entry, tried, expires_ms)
                self._files.drop_answer(slot)
            self._files.put_request(slot, request)
        except OSError:
            return _NOT_STORED
        if request.asked == 1:
            self.news.append(
                (ApprovalRequested, {"call": request.call, "approval": request.approval})
            )
        return request

    def _has_room(self, tried: _Try) -> bool:
        """Whether one more may wait: who tries ever new arguments must not flood disk and person.

        What is settled makes room; answers hold without their requests.
        """
        names = list(self._files.names())
        if len(names) < MAX_WAITING:
            return True
        if tried.mono_ms < self._full_until_ms:
            return False
        self._full_until_ms = tried.mono_ms + _SWEEP_MS
        standings = [(name, self._files.standing(name, tried.wall_ms)) for name in names]
        settled = [name for name, each in standings if each is None or each.state not in OPEN]
        for name in settled:
            self._files.drop_request(name)
        return len(names) - len(settled) < MAX_WAITING

    def _still_waits(self, request: Request, slot: Slot, wall_ms: int) -> bool:
        if request.run_id != self._run.run_id or request.expires_ms <= wall_ms:
            return False
        if request.incarnation != self._run.state.incarnation:
            return False
        try:
            answer = self._files.answer(slot)
        except (SealBroken, OSError):
            return True
        # One that was answered, and yet came here, was used or has expired.
        return answer is None or answer.given.approval_id != request.approval.approval_id

    def _new_request(self, entry: AccessEntry, tried: _Try, expires_ms: int) -> Request:
        shown, is_cut = self._shown(tried)
        refusal = entry.refusal
        assert entry.requirement is not None
        layer, rule_id = entry.grant_key
        return Request(
            run_id=self._run.run_id,
            incarnation=self._run.state.incarnation,
            identity=self._run.identity,
            call=self._ref(tried),
            approval=ApprovalAsked(
                approval_id=os.urandom(6).hex(),
                layer=Layer(layer),
                rule_id=rule_id,
                requirement=entry.requirement,
                reason_code=refusal.reason_code,
                severity=refusal.severity,
                message=self._previews.safe(refusal.summary),
                requested_at=rfc3339(tried.wall_ms),
                expires_at=rfc3339(expires_ms),
                approver_role=entry.approver_role or UNSET,
                grant_ms=entry.grant_ms or UNSET,
            ),
            args_preview=shown,
            is_cut=is_cut,
            expires_ms=expires_ms,
        )

    def _ref(self, tried: _Try) -> CallRef:
        """The call as it may be told; a tool that is named after a secret can get no grant."""
        call = tried.call
        return CallRef(
            call_id=tried.call_id,
            server_name=call.server_name,
            tool_name=self._previews.safe(call.tool_name),
            args_hash=call.args_hash,
        )

    def _shown(self, tried: _Try) -> tuple[str | None, bool]:
        args_hash = tried.call.args_hash.encode()
        preview_json, text_json = self._previews.args(tried.args_text, args_hash)
        is_cut = preview_json.startswith(b"true")
        if not text_json:
            return None, is_cut
        member = msgspec.json.decode(b"{" + text_json[1:] + b"}", type=dict[str, str])
        return member["args_preview"], is_cut

    @property
    def _files(self) -> ApprovalFiles:
        if self._opened is None:
            key = seal_key(self._state_dir)
            self._opened = ApprovalFiles.of_run(self._state_dir, self._run.run_id, key)
        return self._opened


def _tried_again(request: Request, expires_ms: int) -> Request:
    approval = msgspec.structs.replace(request.approval, expires_at=rfc3339(expires_ms))
    return msgspec.structs.replace(
        request, approval=approval, expires_ms=expires_ms, asked=request.asked + 1
    )


def _unbelievable(error: Exception) -> str:
    if isinstance(error, OSError):
        return f"it cannot be read: {(error.strerror or str(error)).lower()}"
    return "it was edited, or it was made in another home"


def _is_no(found: _Found) -> bool:
    return found.answer.given.answer is ApprovalAnswer.DENIED


def _decided(entry: AccessEntry, decision: Decision) -> bool:
    """Whether it is this rule's asking that the caller will be told."""
    return decision.reason_code == entry.refusal.reason_code and decision.rule_id == entry.rule_id


def _denied(evaluation: Evaluation, entries: list[AccessEntry], no: _Found) -> Evaluation:
    """A person's no, where the rule that asked them decides; the run may be over all the same."""
    if not any(_decided(entry, evaluation.decision) for entry in entries):
        return evaluation
    given = no.answer.given
    reason = "" if given.reason is UNSET else f": {given.reason}"
    evaluation.decision = Decision(
        action=Action.BLOCK,
        rule_id=given.rule_id,
        severity=evaluation.decision.severity,
        reason_code=ReasonCode.APPROVAL_DENIED,
        summary=f"{given.by} denied this call{reason}",
    )
    return evaluation


def _use_count(grant_id: str, number: int) -> Update:
    key = hashlib.sha256(b"grant:" + grant_id.encode()).digest()[:16]
    return CellKind.PAIR, key, (number,)
