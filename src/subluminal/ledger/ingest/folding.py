"""Folds events into a batch: the three events of a call become one row before anything is written.

A call that an earlier batch began is looked up, in memory if it is still open, else in the ledger.
"""

from collections.abc import Callable

import msgspec
from msgspec import UNSET

from subluminal.contracts.events import (
    ApprovalDecided,
    ApprovalRequested,
    AuditRecorded,
    CallRound,
    Event,
    GrantRefused,
    HintIssued,
    KillSwitch,
    PolicyLoaded,
    RunEnd,
    RunStart,
    ToolsListed,
)
from subluminal.contracts.intents import KernelDecision
from subluminal.ledger.ingest import deriving, deriving_intents
from subluminal.ledger.ingest.batch import Batch, ControlAct, RunDelta
from subluminal.ledger.ingest.deriving_control import control_row
from subluminal.ledger.ingest.lookups import Lookups
from subluminal.ledger.ingest.rows import OUT_OF_RANGE, Call, EndAhead, HintRow, rollup_key
from subluminal.ledger.ingest.wire import (
    CallDecision,
    CallEnd,
    CallStart,
    Judged,
    RowEvent,
    decode_end,
)

CallKey = tuple[int, str]
"""row id of a shim, and a call_id that the shim gave"""
AheadKey = tuple[str, str]
"""shim_id of a shim, and a call_id that the shim gave"""


class Folder:
    """Turns events into rows, batch by batch."""

    MAX_OPEN_CALLS = 50_000
    """Calls without an end that are kept in memory; older ones are looked up when they end."""

    def __init__(self, lookups: Lookups, number_of: Callable[[str], int | None]) -> None:
        """`number_of` returns the row id of a shim; None if no event of it was seen."""
        self._lookups = lookups
        self._number_of = number_of
        self._ahead: set[AheadKey] = set(lookups.ends_ahead())
        """ends that wait for the start of their call"""
        self._next_id = 1 + lookups.last_call_id()
        self._open: dict[CallKey, Call] = {}
        self.batch = self._new_batch()
        self.folds: dict[type, Callable[..., None]] = {
            CallStart: self._fold_start,
            CallDecision: self._fold_decision,
            CallEnd: self._fold_end,
            RunStart: self._fold_run_start,
            RunEnd: self._fold_run_end,
            HintIssued: self._fold_hint,
            CallRound: self._fold_round,
            AuditRecorded: self._fold_audit,
            PolicyLoaded: self._fold_policy,
            ToolsListed: self._fold_listing,
            ApprovalRequested: self._fold_act,
            ApprovalDecided: self._fold_act,
            GrantRefused: self._fold_act,
            KillSwitch: self._fold_act,
        }

    def fold(self, event: RowEvent, shim: int, n: int, at_ms: int) -> None:
        """Adds one event to the batch. Raises ValueError if a row cannot hold the event."""
        # An event with words of a newer version is of a subclass.
        kinds = type(event).__mro__[:2]
        fold = self.folds.get(kinds[0]) or self.folds.get(kinds[1])
        if fold is not None:
            fold(event, shim, n, at_ms)

    def see_run(self, event: Event, at_ms: int) -> None:
        """Notes that a run is active. Call it before folding an event of the run."""
        run = self.batch.runs.get(event.run_id)
        if run is None:
            self.batch.runs[event.run_id] = RunDelta(event, at_ms, at_ms)
        else:
            run.last_ms = max(run.last_ms, at_ms)
            run.first_ms = min(run.first_ms, at_ms)

    def settle(self) -> None:
        """Called after a commit: starts the next batch, and remembers the calls still open."""
        batch = self.batch
        for call in batch.new_calls:
            if call.end_n is None:
                self._open[call.shim, call.call_id] = call
        for call in batch.changed_calls.values():
            if call.end_n is not None:
                self._open.pop((call.shim, call.call_id), None)
        while len(self._open) > self.MAX_OPEN_CALLS:
            del self._open[next(iter(self._open))]
        self.batch = self._new_batch()

    def _new_batch(self) -> Batch:
        self._fresh: dict[CallKey, Call] = {}
        batch = Batch()
        batch.first_new_id = self._next_id
        return batch

    def _add(self, call: Call) -> None:
        self._next_id += 1
        self._fresh[call.shim, call.call_id] = call
        self.batch.new_calls.append(call)
        self.batch.runs[call.run_id].calls += 1

    def _find(self, shim: int, call_id: str) -> Call | None:
        key = (shim, call_id)
        call = self._fresh.get(key)
        if call is not None:
            return call
        call = self._open.get(key)
        if call is None:
            call = self._lookups.find_call(shim, call_id)
            if call is None:
                return None
            # A second look within this batch must find the same object.
            self._open[key] = call
        if call.id not in self.batch.changed_calls:
            self.batch.changed_calls[call.id] = call
            self.batch.counted_before[call.id] = rollup_key(call)
        return call

    def _fold_start(self, event: CallStart, shim: int, n: int, at_ms: int) -> None:
        call = deriving.begin(event, self._next_id, shim, n, at_ms)
        self._add(call)
        deriving.add_args_preview(self.batch.previews, event, call)
        if self._ahead:
            self._meet(event, call)

    def _fold_decision(self, event: CallDecision, shim: int, n: int, at_ms: int) -> None:
        call = self._fresh.get((shim, event.call.call_id))
        if call is None:
            call = self._earlier(event, shim, at_ms)
        deriving.decide(call, event, n)
        decision = event.decision
        if decision.hint is not UNSET:
            self._add_hint(deriving.hint_of_decision(event, call))
        if decision.grant is not UNSET:
            grants = deriving.grants_of(event)
            self.batch.grant_uses += [(grant_id, call.id, at_ms) for grant_id in grants]
        if decision.kernel is not UNSET:
            self._add_intent(decision.kernel, call)

    def _fold_end(self, event: CallEnd, shim: int, n: int, at_ms: int) -> None:
        if (event.latency_ms | event.bytes_out) >> 63:
            raise ValueError(OUT_OF_RANGE)
        if event.begun_by is not UNSET:
            self._fold_handed_end(event, event.begun_by, shim, n)
            return
        call = self._fresh.get((shim, event.call.call_id))
        if call is None:
            call = self._earlier(event, shim, at_ms)
        deriving.finish(call, event, n)
        deriving.add_result_preview(self.batch.previews, event, call)

    def _fold_handed_end(self, event: CallEnd, begun_by: str, shim: int, n: int) -> None:
        """Adds the end of a call that another shim began; keeps it until the start is here."""
        number = self._number_of(begun_by)
        call = None if number is None else self._find(number, event.call.call_id)
        if call is not None:
            self._finish_handed(call, event, shim, n)
            return
        key = (begun_by, event.call.call_id)
        self._ahead.add(key)
        self.batch.ends_ahead[key] = EndAhead(*key, shim, n, msgspec.json.encode(event))

    def _finish_handed(self, call: Call, event: CallEnd, shim: int, n: int) -> None:
        if deriving.takes_handed_end(call, event):
            deriving.finish(call, event, n, shim)
            deriving.add_result_preview(self.batch.previews, event, call)

    def _meet(self, event: CallStart, call: Call) -> None:
        """Adds the end of a call that arrived before its start."""
        key = (event.source.shim_id, call.call_id)
        if key not in self._ahead:
            return
        self._ahead.remove(key)
        end = self.batch.ends_ahead.pop(key, None)
        if end is None:
            end = self._lookups.find_end_ahead(*key)
            self.batch.ends_met.append(key)
        if end is not None:
            self._finish_handed(call, decode_end(end.event), end.shim, end.n)

    def _earlier(self, event: CallDecision | CallEnd, shim: int, at_ms: int) -> Call:
        """The row of a call that an earlier batch began; a new row if no start was ever seen."""
        call = self._find(shim, event.call.call_id)
        if call is None:
            call = deriving.begin_unseen(event, self._next_id, shim, at_ms)
            self._add(call)
        return call

    def _fold_round(self, event: CallRound, shim: int, n: int, at_ms: int) -> None:
        call = self._find(shim, event.call.call_id)
        if call is not None and deriving.is_refused(event):
            deriving.decide(call, event, n)
            if event.decision.kernel is not UNSET:
                self._add_intent(event.decision.kernel, call)

    def _fold_audit(self, event: AuditRecorded, shim: int, n: int, at_ms: int) -> None:
        call = self._find(shim, event.call.call_id)
        if call is None:
            return
        said = deriving_intents.proposal_of(event.audit)
        row = self.batch.intents.get(call.id)
        if row is not None:
            deriving_intents.add_proposal(row, said)
        elif call.id < self.batch.first_new_id:
            self.batch.proposals.append((*said, call.id))

    def _add_intent(self, kernel: Judged | KernelDecision, call: Call) -> None:
        row = deriving_intents.intent_row(kernel, call)
        earlier = self.batch.intents.get(call.id)
        if earlier is not None:
            deriving_intents.take_place(row, earlier)
        self.batch.intents[call.id] = row

    def _fold_hint(self, event: HintIssued, shim: int, n: int, at_ms: int) -> None:
        call = self._find(shim, event.call.call_id)
        if call is not None:
            self._add_hint(deriving.hint_of_event(event, call))

    def _add_hint(self, hint: HintRow) -> None:
        first = self.batch.hints.setdefault(hint.id, hint)
        if first is not hint:
            deriving.merge_hint(first, hint)

    def _fold_run_start(self, event: RunStart, shim: int, n: int, at_ms: int) -> None:
        self.batch.runs[event.run_id].starts.append(event)

    def _fold_run_end(self, event: RunEnd, shim: int, n: int, at_ms: int) -> None:
        self.batch.runs[event.run_id].ends.append(event)

    def _fold_policy(self, event: PolicyLoaded, shim: int, n: int, at_ms: int) -> None:
        if event.load.ok and event.policy is not UNSET:
            self.batch.policies.append((event, at_ms))

    def _fold_act(self, event: Event, shim: int, n: int, at_ms: int) -> None:
        row = control_row(event)
        if row is not None:
            self.batch.acts.append(ControlAct(row, shim, n))

    def _fold_listing(self, event: ToolsListed, shim: int, n: int, at_ms: int) -> None:
        self.batch.listings.append((event, at_ms))
