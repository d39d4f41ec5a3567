"""Decides the further rounds of a call: its server asked for input, and the client answers.

A round is part of its call (every-mcp-era). It passes the gates as a new call does, so that stops,
reloaded policies and denies hold for it. But it is evaluated with empty counters and changes none:
it is not a second unit of a budget, takes no token, and does not repeat its own call.
"""

import time
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from subluminal.contracts.counters import Cell, CellKind, Update
from subluminal.contracts.events import WouldBe
from subluminal.contracts.vocabulary import TAINT_RANK, Action, Mode, ReasonCode
from subluminal.core.ruling import Ruling, asked_of
from subluminal.journal import JournalUnavailable
from subluminal.policy.evaluation import Call, Engine, Evaluation
from subluminal.policy.refusing import blocked

if TYPE_CHECKING:
    from collections.abc import Iterable


class NoCounters:
    """Counters that are always empty but for the level of the run, and keep nothing.

    For a call that must not be counted again.
    """

    def __init__(self, rank: int) -> None:
        self._level = (rank,)

    def read(self, kind: CellKind, _key: bytes) -> Cell:
        """Returns the level of the run, and an empty cell for everything else."""
        return self._level if kind is CellKind.TAINT else ()

    def write(self, _updates: "Iterable[Update]") -> None:
        """Keeps nothing."""


class Round(NamedTuple):
    """One further round of a call."""

    ruling: Ruling
    """the ruling of the call"""
    number: int
    """number of the round, from 2"""
    bytes_in: int
    """size of its message in bytes"""
    args_text: bytes | None
    """canonical arguments of the call; None if they were too large to inspect"""


def begin_round(round_: Round, max_rounds: int) -> bool:
    """Decides and journals a round; returns True if it may be forwarded.

    A refusal becomes the ruling's decision: it ends the call.
    """
    ruling = round_.ruling
    enforcer, call = ruling.enforcer, ruling.call
    used = frozenset(ruling.assessment.grants_used)
    asked = replace(asked_of(call), granted=used, lifted=used, targets=ruling.targets)
    try:
        enforcer.engine.prepare(asked)
        if enforcer.engine.asks_contents or call.given is not None:
            asked = enforcer.with_contents(asked, call, round_.args_text)
        if enforcer.engine.asks_kernel or call.given is not None:
            asked = enforcer.with_packs(asked, call, _rank_before(ruling))
        with enforcer.run.state.locked():
            evaluation = enforcer.over(asked)
            if evaluation is None:
                evaluation = _evaluated(round_, asked, max_rounds)
                ending = evaluation.decision.terminate
                if ending is not None:
                    enforcer.run.state.terminate(ending.terminate_code, ending.terminate_message)
    except Exception as error:  # noqa: BLE001 - a bug here must not end the client's stream
        evaluation = enforcer.failed(asked, error)
    try:
        _record(round_, evaluation)
    except JournalUnavailable as error:
        evaluation = enforcer.unrecorded(evaluation, asked, str(error))
    enforcer.tell_approvals(ruling.call_id)
    if evaluation.forwarded:
        return True
    ruling.assessment = evaluation
    enforcer.count_as_refused(evaluation.decision.action)
    return False


def _evaluated(round_: Round, asked: Call, max_rounds: int) -> Evaluation:
    """Asks the policies and the grants about a round. Needs the run's lock."""
    enforcer, call_id = round_.ruling.enforcer, round_.ruling.call_id
    wall_ms, mono_ms = time.time_ns() // 1_000_000, time.monotonic_ns() // 1_000_000
    engine = enforcer.engine
    counters = NoCounters(_rank_before(round_.ruling))
    evaluation = engine.evaluate(asked, counters, wall_ms=wall_ms, mono_ms=mono_ms)
    if not evaluation.forwarded and enforcer.may_be_granted(evaluation):
        evaluation = enforcer.settled(
            evaluation, asked, call_id, wall_ms, mono_ms, round_.args_text, counters=counters
        )
    if evaluation.forwarded and round_.number > max_rounds:
        return _one_too_many(engine, max_rounds)
    return evaluation


def _rank_before(ruling: Ruling) -> int:
    """Returns the level before the call: a round is part of it. Else that of now."""
    if ruling.level is not None:
        return TAINT_RANK[ruling.level.before]
    return ruling.enforcer.run.state.taint.rank() if ruling.enforcer.engine.asks_taint else 0


def _one_too_many(engine: Engine, max_rounds: int) -> Evaluation:
    decision = blocked(
        ReasonCode.ROUNDS_EXCEEDED,
        f"the server keeps asking for input: the call has taken {max_rounds} rounds, which is"
        " `max_rounds` of the settings",
    )
    refusal = engine.refusal(decision)
    if engine.mode is Mode.OBSERVE:
        refusal.would_be = WouldBe(
            action=decision.action,
            rule_id=None,
            severity=decision.severity,
            reason_code=decision.reason_code,
        )
        refusal.decision, refusal.forwarded = replace(decision, action=Action.ALLOW), True
    return refusal


def _record(round_: Round, evaluation: Evaluation) -> None:
    ruling = round_.ruling
    enforcer = ruling.enforcer
    if not evaluation.forwarded:
        evaluation.decision = enforcer.masked(evaluation.decision, ruling.call.args)
    enforcer.records.round_decided(
        ruling, evaluation, round_.number, round_.bytes_in, enforcer.engine.policies
    )
