"""Decides the calls of one batch together: all of them are forwarded, or none is.

Each call is decided in turn, with the counters as the calls before it would leave them. If one is
refused, the calls that would pass become BLOCK with BATCH_REFUSED: they are attempts, and count as
such, but leave nothing that only forwarded calls leave. Nothing is journalled before all are
decided, so no call that stays here is on record as ALLOW, unless the disk fills up in between.
"""

import time
from collections.abc import Iterable, Sequence

from subluminal.contracts.call import ToolCall
from subluminal.contracts.counters import Cell, CellKind, Counters, Update
from subluminal.core.enforcer import TOTALS, Enforcer
from subluminal.core.gates import NOT_EXECUTED
from subluminal.core.levels import CallLevel
from subluminal.core.ruling import Ruling, asked_of
from subluminal.policy.evaluation import Call, Evaluation
from subluminal.policy.taint import level_in
from subluminal.state.errors import StateBusy


class _Draft:
    """Counters with changes that are not written yet."""

    def __init__(self, below: Counters) -> None:
        self._below = below
        self._cells: dict[tuple[CellKind, bytes], Cell] = {}

    def read(self, kind: CellKind, key: bytes) -> Cell:
        found = self._cells.get((kind, key))
        return self._below.read(kind, key) if found is None else found

    def write(self, updates: Iterable[Update]) -> None:
        for kind, key, cell in updates:
            if kind is CellKind.TAINT:
                cell = max(cell, self.read(kind, key))  # the lowest level stays
            self._cells[kind, key] = cell

    @property
    def updates(self) -> list[Update]:
        return [(kind, key, cell) for (kind, key), cell in self._cells.items()]


def begin_batch(enforcer: Enforcer, batch: Sequence[tuple[ToolCall, bytes | None]]) -> list[Ruling]:
    """Decides and journals the calls of a batch; each comes with its canonical arguments."""
    asked = [asked_of(call) for call, _ in batch]
    numbers = [enforcer.next_number() for _ in batch]
    wall_ms, mono_ns = time.time_ns() // 1_000_000, time.monotonic_ns()
    seqs = [0] * len(batch)
    levels: list[CallLevel | None] = [None] * len(batch)
    state = enforcer.run.state
    try:
        if enforcer.engine.asks_ahead or any(call.given is not None for call, _ in batch):
            asked = [
                enforcer.with_facts(each, call, args_text)
                for each, (call, args_text) in zip(asked, batch, strict=True)
            ]
        for each in asked:
            enforcer.engine.prepare(each)
        with state.locked():
            wall_ms, mono_ns = time.time_ns() // 1_000_000, time.monotonic_ns()
            seqs = [state.take_seq() for _ in batch]
            draft = _Draft(state.counters)
            at_ms = wall_ms, mono_ns // 1_000_000
            found, befores = _all_evaluated(enforcer, asked, batch, numbers, draft, at_ms)
            evaluations = _as_one(enforcer, found)
            for place, before in enumerate(befores):
                passed = found[place].updates if evaluations is found else []
                levels[place] = enforcer.levels.of_call(
                    enforcer.engine, batch[place][0], found[place], passed, before, seqs[place]
                )
            if evaluations is found:
                state.counters.write(draft.updates)
            else:
                refused = enforcer.engine.refused_anyway(state.counters, len(batch))
                state.counters.write([*_attempts(found), *refused])
            for evaluation in evaluations:
                state.count(TOTALS[evaluation.decision.action])
    except Exception as error:  # noqa: BLE001 - a bug here must not end the client's stream
        evaluations = _as_one(enforcer, [enforcer.failed(call, error) for call in asked])
        lowered = [
            enforcer.unjudged(call, evaluation, seq, is_busy=isinstance(error, StateBusy))
            for (call, _), evaluation, seq in zip(batch, evaluations, seqs, strict=True)
        ]
        evaluations = _as_one(enforcer, [evaluation for evaluation, _ in lowered])
        levels = [level for _, level in lowered]
        for evaluation in evaluations:
            enforcer.count_failed(evaluation, error)
    rulings = []
    for (call, args_text), given, number, evaluation, seq, level in zip(
        batch, asked, numbers, evaluations, seqs, levels, strict=True
    ):
        if not evaluation.forwarded or evaluation.decision.constraints is not None:
            evaluation.decision = enforcer.masked(evaluation.decision, call.args)
        ruling = enforcer.ruled(
            call, number, evaluation, wall_ms, mono_ns, seq, args_text, given.targets, level
        )
        enforcer.tell_approvals(ruling.call_id)
        rulings.append(ruling)
    _refuse_the_rest(enforcer, rulings)
    return rulings


def _refuse_the_rest(enforcer: Enforcer, rulings: list[Ruling]) -> None:
    """Refuses the whole batch if the journal could take only the first of its calls.

    Those are on record as ALLOW. Their ends say that they were not executed.
    """
    if all(each.is_allowed for each in rulings):
        return
    for ruling in rulings:
        if ruling.is_allowed:
            ruling.assessment = enforcer.engine.refusal(NOT_EXECUTED)
            enforcer.count_as_refused(NOT_EXECUTED.action)


def _all_evaluated(
    enforcer: Enforcer,
    asked: list[Call],
    batch: Sequence[tuple[ToolCall, bytes | None]],
    numbers: list[int],
    draft: _Draft,
    at_ms: tuple[int, int],
) -> tuple[list[Evaluation], list[CallLevel]]:
    """Asks the gates about each call in turn. Needs the run's lock.

    Returns the levels before each call too, if a policy speaks of them.
    """
    found: list[Evaluation] = []
    befores: list[CallLevel] = []
    for call, (_, args_text), number in zip(asked, batch, numbers, strict=True):
        if enforcer.engine.asks_taint:
            befores.append(CallLevel(level_in(draft.read)) if befores else enforcer.levels.before())
        found.append(_evaluated(enforcer, call, args_text, number, draft, *at_ms))
    return found, befores


def _evaluated(
    enforcer: Enforcer,
    call: Call,
    args_text: bytes | None,
    number: int,
    draft: _Draft,
    wall_ms: int,
    mono_ms: int,
) -> Evaluation:
    """Asks the gates about one call, and notes its counters in the draft. Needs the run's lock."""
    over = enforcer.over(call)
    if over is not None:
        return over
    evaluation = enforcer.engine.evaluate(call, draft, wall_ms=wall_ms, mono_ms=mono_ms)
    if not evaluation.forwarded and enforcer.may_be_granted(evaluation):
        call_id = enforcer.call_id(number)
        evaluation = enforcer.settled(
            evaluation, call, call_id, wall_ms, mono_ms, args_text, counters=draft
        )
    draft.write(evaluation.updates)
    ending = evaluation.decision.terminate
    if ending is not None:
        enforcer.run.state.terminate(ending.terminate_code, ending.terminate_message)
    return evaluation


def _as_one(enforcer: Enforcer, found: list[Evaluation]) -> list[Evaluation]:
    """Returns the evaluations of a batch: unchanged, or all of them refusals."""
    if all(each.forwarded for each in found):
        return found
    return [enforcer.engine.refusal(NOT_EXECUTED) if each.forwarded else each for each in found]


def _attempts(found: list[Evaluation]) -> list[Update]:
    """Returns the counter updates of calls that are not forwarded."""
    cells = {
        (kind, key): cell
        for each in found
        for visit in each.visits
        for kind, key, cell in visit.updates
    }
    return [(kind, key, cell) for (kind, key), cell in cells.items()]
