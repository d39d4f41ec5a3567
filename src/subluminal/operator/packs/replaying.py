"""Asks a pack again about what is on record, and compares.

Only the pack's opinion is asked anew. What the ledger, the kill switch, a deadline or a person
added is taken as recorded: a replay is about the policy.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Any, NamedTuple

from subluminal.errors import SubluminalError
from subluminal.kernel import (
    AuditRecord,
    Confirmation,
    Decision,
    IntentEnvelope,
    Kill,
    Pack,
    Refuse,
    ReplayVerdict,
    RuntimeContext,
    adjudicate_and_audit,
    classify,
    decision_from_audit,
    integrity_failure,
    replay_envelope_from_audit,
    replay_verdict,
    verify_audit_record,
)
from subluminal.operator.packs.audit_files import member_of
from subluminal.operator.packs.scenarios import state_from, told

_NOT_THE_PACKS = frozenset(("ledger_replay_suppressed", "kernel_deadline_exceeded"))
"""Refusals that the pack has no part in."""


class Verdict(StrEnum):
    """Whether a pack still decides as it did."""

    IDENTICAL = ReplayVerdict.IDENTICAL.value
    BASIS_ONLY = ReplayVerdict.BASIS_ONLY.value
    DECISION_CHANGED = ReplayVerdict.DECISION_CHANGED.value
    UNDETERMINED = "UNDETERMINED"
    """the record was changed or masked, or has no state"""


class Recorded(NamedTuple):
    """A record, and the call that it is about; a file of records knows no calls."""

    record: AuditRecord
    call_id: str | None = None


class ReplayRow(NamedTuple):
    """What became of one record."""

    intent_hash: str
    call_id: str | None
    verdict: Verdict
    mismatch: str | None = None
    """how the decisions differ, or what is wrong with the record"""
    missing: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()
    was: str = ""
    now: str = ""

    def plain(self) -> dict[str, Any]:
        """Returns what `sub pack replay --json` prints."""
        members = self._asdict()
        del members["was"], members["now"]
        return members


class Tally:
    """Counts verdicts."""

    def __init__(self) -> None:
        self._counts: Counter[Verdict] = Counter()
        self.foreign = 0
        """records of intents that the pack does not have"""

    def add(self, verdict: Verdict) -> None:
        self._counts[verdict] += 1

    @property
    def has_changed(self) -> bool:
        return self._counts[Verdict.DECISION_CHANGED] > 0

    def plain(self) -> dict[str, int]:
        """Returns the summary that `--json` prints."""
        counts = {verdict.value.lower(): self._counts[verdict] for verdict in Verdict}
        return {"records": self._counts.total(), **counts, "other_intents": self.foreign}


def replay(
    pack: Pack, records: Iterable[Recorded], tally: Tally, *, state: Any = None
) -> Iterator[ReplayRow]:
    """Yields what the pack says today about every record of its intents.

    `state` stands in for a record that has none. Raises SubluminalError if the pack refuses it.
    """
    for recorded in records:
        if recorded.record.envelope.get("kind") not in pack.intents:
            tally.foreign += 1
            continue
        row = _replayed(pack, recorded, state)
        tally.add(row.verdict)
        yield row


def _replayed(pack: Pack, recorded: Recorded, fallback: Any) -> ReplayRow:
    record, call_id = recorded
    failure = integrity_failure(record)
    if failure is not None:
        return ReplayRow(record.intent_hash, call_id, Verdict.UNDETERMINED, failure.value)
    was = decision_from_audit(record)
    now = _asked_again(pack, record, was, fallback)
    if now is None:
        return ReplayRow(record.intent_hash, call_id, Verdict.UNDETERMINED, was=told(was))
    verdict, difference = Verdict(replay_verdict(was, now).value), classify(was, now)
    if difference is None:
        return ReplayRow(record.intent_hash, call_id, verdict, was=told(was), now=told(now))
    return ReplayRow(
        record.intent_hash,
        call_id,
        verdict,
        difference.kind.value,
        difference.missing,
        difference.extra,
        told(was),
        told(now),
    )


def _asked_again(pack: Pack, record: AuditRecord, was: Decision, fallback: Any) -> Decision | None:
    """Returns the decision of today; None if it cannot be told."""
    if isinstance(was, Refuse) and was.refusal.code in _NOT_THE_PACKS:
        return was
    state = member_of(record, "state")
    state = fallback if state is None else state
    kill = _kill(was)
    if verify_audit_record(record).reason == "redacted" or (state is None and kill is None):
        return None
    try:
        envelope = replay_envelope_from_audit(record)
    except SubluminalError:  # it was refused because it was not an envelope
        return None
    return _decide(pack, envelope, state_from(pack, state), was, kill)


def _decide(
    pack: Pack, envelope: IntentEnvelope, state: Any, was: Decision, kill: Kill | None
) -> Decision:
    first = _FirstRecord()
    adjudicate_and_audit(
        envelope,
        state,
        pack.policy,
        sink=first,
        clock=_NoClock(),
        context=RuntimeContext(kill=kill),
        confirmation=_confirmation(envelope, was),
    )
    return decision_from_audit(first.record)


class _FirstRecord:
    """Keeps the first record: a rewritten envelope has one of its own."""

    record: AuditRecord

    def emit(self, record: AuditRecord, /) -> None:
        if not hasattr(self, "record"):
            self.record = record


class _NoClock:
    """Times do not matter here."""

    def now_iso(self) -> str:
        return ""

    def mono_ms(self) -> float:
        return 0.0


def _detail(decision: Decision, category: str, code: str) -> dict[str, Any] | None:
    """Returns the detail of a reason; None if the decision does not have the reason."""
    for reason in decision.basis:
        if (reason.category, reason.code) == (category, code):
            return reason.detail if isinstance(reason.detail, dict) else {}
    return None


def _kill(was: Decision) -> Kill | None:
    found = _detail(was, "kill", "active")
    if found is None:
        return None
    return Kill(str(found.get("reason", "")), str(found.get("toggledAt", "")))


def _confirmation(envelope: IntentEnvelope, was: Decision) -> Confirmation | None:
    found = _detail(was, "confirmation", "received")
    if found is None:
        return None
    return Confirmation(envelope.intent_hash, str(found.get("confirmedAt", "")))
