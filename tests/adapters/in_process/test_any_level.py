"""The ledger of one intent: attempts at different levels never execute both."""

import threading

import pytest
from tests.requirements import requirement

from subluminal.adapters.in_process.any_level import AnyLevel, any_level
from subluminal.errors import SubluminalError
from subluminal.kernel import IntentActor, IntentEnvelope, LedgerEntry, build_envelope
from subluminal.kernel.executions import MemoryExecutionLedger

AT = "2026-01-01T00:00:00Z"
ATTEMPTS = [("TRUSTED", None), ("UNTRUSTED", None), ("UNTRUSTED", "Retrieved")]


def proposed(taint: str, origin: str | None = None, nonce: str = "n") -> IntentEnvelope:
    actor = IntentActor("user", "run-1")
    return build_envelope(
        "pay.out",
        {"amount": 5},
        actor=actor,
        taint=taint,
        nonce=nonce,
        created_at=AT,
        origin=origin,
    )


def claims(held: AnyLevel, envelope: IntentEnvelope) -> LedgerEntry | None:
    held.expect(envelope, None)
    return held.claim(LedgerEntry(envelope.intent_hash, AT, "run-1", envelope.kind))


@requirement("kernel:once")
@pytest.mark.parametrize("first", ATTEMPTS)
@pytest.mark.parametrize("second", ATTEMPTS)
def test_an_attempt_finds_the_one_before(
    first: tuple[str, str | None], second: tuple[str, str | None]
) -> None:
    ledger = MemoryExecutionLedger()
    assert claims(AnyLevel(ledger), proposed(*first)) is None
    holder = claims(AnyLevel(ledger), proposed(*second))
    assert holder is not None
    assert holder.intent_hash == proposed(*first).intent_hash
    assert claims(AnyLevel(ledger), proposed(*second, nonce="other")) is None


@requirement("kernel:once")
def test_of_attempts_that_meet_none_or_one_has_the_claim() -> None:
    for number in range(100):
        ledger, together = MemoryExecutionLedger(), threading.Barrier(len(ATTEMPTS))
        told: list[LedgerEntry | None] = []

        def attempt(
            envelope: IntentEnvelope,
            ledger: MemoryExecutionLedger = ledger,
            together: threading.Barrier = together,
            told: list[LedgerEntry | None] = told,
        ) -> None:
            together.wait()
            told.append(claims(AnyLevel(ledger), envelope))

        nonce = f"n-{number}"
        envelopes = [proposed(taint, origin, nonce) for taint, origin in ATTEMPTS]
        threads = [threading.Thread(target=attempt, args=(each,)) for each in envelopes]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(told) == len(ATTEMPTS)
        kept = [each for each in envelopes if ledger.check(each.intent_hash) is not None]
        assert told.count(None) == len(kept) <= 1


class OutOfReach(MemoryExecutionLedger):
    """A ledger that takes a claim and then does not answer."""

    def check(self, _hash: str, /) -> LedgerEntry | None:
        raise SubluminalError("out of reach")


def test_a_claim_that_cannot_be_compared_is_given_back() -> None:
    ledger, envelope = OutOfReach(), proposed("TRUSTED")
    with pytest.raises(SubluminalError, match="out of reach"):
        claims(AnyLevel(ledger), envelope)
    assert MemoryExecutionLedger.check(ledger, envelope.intent_hash) is None


def test_without_a_ledger_there_is_none() -> None:
    assert any_level(None) is None
