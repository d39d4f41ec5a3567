"""The shim's side of approvals: opens requests, and lets calls pass that have a grant.

It is asked only about calls that a rule refuses, so other calls pay nothing for it. An
answer takes effect at the next try of the call, in every shim of the run. All of this happens under
the run's lock, so a use is counted once even if several shims try at the same time (no-call-waits).
"""

import hashlib
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET

from subluminal.config.places import Places
from subluminal.contracts.control import RefusedGrant
from subluminal.contracts.counters import CellKind, Counters, CountersFull, Update
from subluminal.contracts.decision import Decision, GrantRef
from subluminal.contracts.events import ApprovalRequested, Event, GrantRefused
from subluminal.contracts.vocabulary import (
    Action,
    ApprovalAnswer,
    GrantProblem,
    Layer,
    ReasonCode,
    Requirement,
)
from subluminal.core.controls import passphrase
from subluminal.core.controls.approval_files import (
    Answer,
    ApprovalFiles,
    Request,
    Slot,
    slot_of,
)
from subluminal.core.controls.asking import Asking, Try
from subluminal.core.controls.sealed import SealBroken, seal_key
from subluminal.core.records.previews import Previewer
from subluminal.core.ruling import Ruling
from subluminal.core.runs.run import Run
from subluminal.policy.evaluation import Call, Engine, Evaluation
from subluminal.policy.refusing import Refuser, client_may_ask, grant_fits, left_to_client

_MAX_TOLD = 1_024
"""Most refused grants that are remembered, so that each is recorded once."""


class _Found(NamedTuple):
    """An answer that is in force for a call."""

    slot: Slot
    answer: Answer
    is_limit: bool = False
    """whether its rule is a limit"""


class Approvals:
    """The approvals of one run, as one of its shims sees them."""

    def __init__(
        self, state_dir: str, run: Run, previewer: Previewer, *, client_asks: bool = False
    ) -> None:
        """`client_asks` is True if the client itself asks a person about calls that need it."""
        self._client_asks = client_asks
        self._state_dir = state_dir
        self._run = run
        self._told: set[tuple[str, str]] = set()
        self.news: list[tuple[type[Event], dict[str, Any]]] = []
        """events that are not journalled yet; `tell` does that"""
        self._opened: ApprovalFiles | None = None
        self._asking = Asking(run, previewer, lambda: self._files)

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
        counters: Counters | None = None,
    ) -> Evaluation:
        """Decides again about a call that rules refuse. Needs the run's lock.

        `counters` are those of `refused`; None for the run's own. The caller writes the counter
        updates of the evaluation that is returned, and no others.
        """
        tried = Try(call, call_id, args_text, wall_ms, mono_ms)
        if counters is None:
            counters = self._run.state.counters
        entries = refused.refused_by
        found = [each for each in (self._find(entry, tried) for entry in entries) if each]
        no = next((each for each in found if _is_no(each)), None)
        if no is not None:
            return _denied(refused, entries, no)
        found += filter(None, (self._excuse(*key, tried) for key in refused.limited_by))
        evaluation = self._let_pass(engine, tried, found, counters) or refused
        if not evaluation.forwarded and self._client_asks:
            evaluation = self._leave_to_client(engine, evaluation, tried, counters) or evaluation
        if not evaluation.forwarded:
            self._ask(evaluation, tried)
        return evaluation

    def tell(self, call_id: str) -> None:
        """Journals the approval events of one call. Its decision is journalled before them."""
        own = [each for each in self.news if each[1]["call"].call_id == call_id]
        for each in own:
            self.news.remove(each)

        def write() -> None:
            for kind, fields in own:
                self._run.emit(kind, **fields)

        self._run.record(write)

    # Answers

    def _find(self, entry: Refuser, tried: Try) -> _Found | None:
        """Returns the answer in force for this call and rule; one for this very call goes first."""
        call, (layer, rule_id) = tried.call, entry.grant_key
        slots = [Slot(call.server_name, call.tool_name, None, layer, rule_id)]
        if entry.requirement is not None:
            slots.insert(0, slots[0]._replace(args_hash=call.args_hash))
        for slot in slots:
            answer = self._read(slot, tried, entry.requirement)
            if answer is not None:
                return _Found(slot, answer)
        return None

    def _excuse(self, layer: str, rule_id: str, tried: Try) -> _Found | None:
        """Returns the grant that lets this very call pass a limit."""
        call = tried.call
        slot = Slot(call.server_name, call.tool_name, call.args_hash, layer, rule_id)
        answer = self._read(slot, tried, None)
        if answer is None or answer.given.answer is not ApprovalAnswer.APPROVED:
            return None
        return _Found(slot, answer, is_limit=True)

    def _read(self, slot: Slot, tried: Try, required: Requirement | None) -> Answer | None:
        try:
            answer = self._files.answer(slot)
        except (SealBroken, OSError) as error:
            self._refuse_grant(GrantProblem.SEAL, _unbelievable(error), None, tried)
            return None
        if answer is None:
            return None
        problem = self._problem(answer, slot, tried.wall_ms)
        is_grant = answer.given.answer is ApprovalAnswer.APPROVED
        if problem is None and is_grant and not grant_fits(answer.given.requirement, required):
            problem = GrantProblem.REQUIREMENT, f"the rule requires `{required}`"
        if problem is None:
            return answer
        if is_grant:
            self._refuse_grant(*problem, answer, tried)
        return None

    def _problem(self, answer: Answer, slot: Slot, wall_ms: int) -> tuple[GrantProblem, str] | None:
        """Returns why an answer is not in force although this home sealed it, or None."""
        given, state = answer.given, self._run.state
        if answer.run_id != self._run.run_id:
            return GrantProblem.RUN, f"it was made for run {answer.run_id}"
        if answer.incarnation != state.incarnation:
            return GrantProblem.STATE, "the run's state was removed since it was made"
        if slot_of(given) != slot:
            return GrantProblem.CALL, f"it was made for {given.server_name}/{given.tool_name}"
        if answer.expires_ms is not None and wall_ms >= answer.expires_ms:
            return GrantProblem.EXPIRED, f"it expired at {given.expires_at}"
        if given.uses is not UNSET and self._used(given.grant_id) >= given.uses:
            return GrantProblem.SPENT, f"its use limit of {given.uses} is reached"
        return None

    # Grants

    def _let_pass(
        self, engine: Engine, tried: Try, found: list[_Found], counters: Counters
    ) -> Evaluation | None:
        """Decides again with the grants, and counts those that were needed; None if that fails."""
        if not found:
            return None
        by_key = {(each.slot.layer, each.slot.rule_id): each for each in found}
        excused = {key for key, each in by_key.items() if each.is_limit}
        lifted = {key for key, each in by_key.items() if each.slot.args_hash is None}
        call = msgspec.structs.replace(
            tried.call,
            granted=tried.call.granted.union(by_key.keys() - excused - lifted),
            lifted=tried.call.lifted.union(lifted),
            excused=tried.call.excused.union(excused),
        )
        evaluation = engine.evaluate(call, counters, wall_ms=tried.wall_ms, mono_ms=tried.mono_ms)
        if not evaluation.forwarded:
            return evaluation  # another rule refuses the call, and no grant is for that rule
        # A further round of a call may also pass by a grant that its first round used.
        used = [by_key[key].answer for key in evaluation.grants_used if key in by_key]
        if not all(self._use(answer, tried) for answer in used):
            return None
        evaluation.grants = tuple(
            GrantRef(grant_id=str(answer.given.grant_id), approver=answer.given.by)
            for answer in used
        )
        return evaluation

    def _use(self, answer: Answer, tried: Try) -> bool:
        """Counts one use of a grant; returns False if it has no use left or cannot be counted.

        The use is counted in the run's state, and marked by a file, so that putting back an older
        copy of the state does not renew the grant.
        """
        given = answer.given
        if given.uses is UNSET:
            return True
        grant_id = str(given.grant_id)
        try:
            number = self._files.claim_use(grant_id, self._used(grant_id) + 1, given.uses)
            if number is None:
                self._refuse_grant(
                    GrantProblem.SPENT, f"its use limit of {given.uses} is reached", answer, tried
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
        self, problem: GrantProblem, detail: str, answer: Answer | None, tried: Try
    ) -> None:
        """Records that a grant was found but not accepted; once for each call and problem."""
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
        self.news.append((GrantRefused, {"call": self._asking.ref(tried), "grant": refused}))

    # Requests

    def _leave_to_client(
        self, engine: Engine, refused: Evaluation, tried: Try, counters: Counters
    ) -> Evaluation | None:
        """Lets a call pass about which the client asks a person; None if another rule refuses it.

        A client can ask whether a call may run. It cannot ask for a ticket, a passphrase or a
        signal, and it cannot promise that a human answers.
        """
        entries = refused.refused_by
        if passphrase.is_set(self._state_dir):
            return None  # only a person who knows it may approve
        if not entries or not all(client_may_ask(entry) for entry in entries):
            return None
        keys = {entry.grant_key for entry in entries}
        call = msgspec.structs.replace(tried.call, granted=tried.call.granted.union(keys))
        evaluation = engine.evaluate(call, counters, wall_ms=tried.wall_ms, mono_ms=tried.mono_ms)
        if not evaluation.forwarded:
            return None
        evaluation.decision = left_to_client(entries[0])
        return evaluation

    def _ask(self, evaluation: Evaluation, tried: Try) -> None:
        """Requests approval for each rule that asks for it, if one of these rules decided.

        The approval's id, or why none was requested, goes into the hint to the agent.
        """
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
            # The id lets the user find the approval. The command is not shown: agents would run it
            # (local-is-not-trusted).
            way = f"{hint.retry_advice}; this is approval {way.approval.approval_id}"
        evaluation.decision = msgspec.structs.replace(
            decision, hint=msgspec.structs.replace(hint, retry_advice=way)
        )

    def _request(self, entry: Refuser, tried: Try) -> Request | str:
        way = self._asking.ask(entry, tried)
        if isinstance(way, Request) and way.asked == 1:
            self.news.append((ApprovalRequested, {"call": way.call, "approval": way.approval}))
        return way

    @property
    def _files(self) -> ApprovalFiles:
        if self._opened is None:
            key = seal_key(self._state_dir)
            self._opened = ApprovalFiles.of_run(self._state_dir, self._run.run_id, key)
        return self._opened


def pending(places: Places, ruling: Ruling) -> Request | None:
    """Returns the approval that a refused call waits for; None if it waits for none."""
    call, asking = ruling.call, getattr(ruling.assessment, "refused_by", [])
    for entry in asking:
        if entry.requirement is None or not _decided(entry, ruling.decision):
            continue
        slot = Slot(call.server_name, ruling.tool_name, call.args_hash, *entry.grant_key)
        files = ApprovalFiles.of_run(places.state, ruling.run_id, seal_key(places.state))
        request = files.request(slot)
        if request is not None:
            return request
    return None


def _unbelievable(error: Exception) -> str:
    if isinstance(error, OSError):
        return f"it cannot be read: {(error.strerror or str(error)).lower()}"
    return "it was edited, or it was made in another home"


def _is_no(found: _Found) -> bool:
    return found.answer.given.answer is ApprovalAnswer.DENIED


def _decided(entry: Refuser, decision: Decision) -> bool:
    """Returns True if this rule made the decision that the client is told."""
    refusal = entry.refusal
    return decision.reason_code == refusal.reason_code and decision.rule_id == refusal.rule_id


def _denied(evaluation: Evaluation, entries: list[Refuser], no: _Found) -> Evaluation:
    """Turns the refusal into a person's no, if a rule that asked for approval decided.

    Another decision stands: it may, for example, end the run.
    """
    if not any(_decided(entry, evaluation.decision) for entry in entries):
        return evaluation
    given = no.answer.given
    reason = "" if given.reason is UNSET else f": {given.reason}"
    evaluation.decision = Decision(
        action=Action.BLOCK,
        rule_id=None if given.layer is Layer.PACK else given.rule_id,
        severity=evaluation.decision.severity,
        reason_code=ReasonCode.APPROVAL_DENIED,
        summary=f"{given.by} denied this call{reason}",
    )
    return evaluation


def _use_count(grant_id: str, number: int) -> Update:
    key = hashlib.sha256(b"grant:" + grant_id.encode()).digest()[:16]
    return CellKind.PAIR, key, (number,)
