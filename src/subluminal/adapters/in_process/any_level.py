"""An execution ledger in which an intent is the same one at every level of its run.

The hash of an intent covers its level and its origin, and both follow the run's level. So a retry
after the run was lowered has another hash. It must find the first attempt all the same. The claim
comes before the look at the other hashes: of two attempts that meet, none or one executes.
"""

from typing import Any

from msgspec.structs import replace

from subluminal.contracts.vocabulary import TAINT_RANK, Taint
from subluminal.kernel.envelope import IntentEnvelope, derive_intent_hash
from subluminal.kernel.executions import ExecutionLedger, ExecutionStatus, LedgerEntry
from subluminal.kernel.taint import Origin

CAPS = {"llm": Taint.UNTRUSTED, "user": Taint.TRUSTED, "system": Taint.SYSTEM}
"""The highest level that a principal's intents have."""


class AnyLevel:
    """The execution ledger of one intent."""

    def __init__(self, ledger: ExecutionLedger) -> None:
        self._ledger = ledger
        self._others: list[str] = []

    def expect(self, envelope: IntentEnvelope, _state: Any) -> None:
        """Learns what will be claimed next: the envelope as it was proposed, or rewritten."""
        self._others = hashes_at_other_levels(envelope)

    def check(self, intent_hash: str, /) -> LedgerEntry | None:
        """Returns the entry of a hash, if there is one."""
        return self._ledger.check(intent_hash)

    def claim(self, entry: LedgerEntry, /) -> LedgerEntry | None:
        """Takes the hash. Returns None, or the entry that has this intent, at whatever level."""
        holder = self._ledger.claim(entry)
        if holder is not None:
            return holder
        try:
            found = (self._ledger.check(each) for each in self._others)
            holder = next((each for each in found if each is not None), None)
        except BaseException:
            self._ledger.release(entry.intent_hash)
            raise
        if holder is not None:
            self._ledger.release(entry.intent_hash)
        return holder

    def finish(self, intent_hash: str, status: ExecutionStatus, /) -> None:
        """Says how a claimed execution ended."""
        self._ledger.finish(intent_hash, status)

    def release(self, intent_hash: str, /) -> None:
        """Gives a hash free again."""
        self._ledger.release(intent_hash)


def any_level(ledger: ExecutionLedger | None) -> AnyLevel | None:
    """Returns the ledger for one intent; None if executions are not kept."""
    return None if ledger is None else AnyLevel(ledger)


def hashes_at_other_levels(envelope: IntentEnvelope) -> list[str]:
    """Returns the hashes that an intent would have at the other levels that a run can have."""
    cap = TAINT_RANK[CAPS.get(envelope.actor.principal, Taint.UNTRUSTED)]
    levels: list[tuple[Taint, Origin | None]] = [
        (level, None) for level in Taint if TAINT_RANK[level] >= cap
    ]
    levels.append((Taint.UNTRUSTED, Origin.RETRIEVED))
    hashes = [
        derive_intent_hash(replace(envelope, taint=level, origin=origin))
        for level, origin in levels
    ]
    return [each for each in hashes if each != envelope.intent_hash]
