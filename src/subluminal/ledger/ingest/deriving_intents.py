"""Which rows of intents follow from which events.

Pure: ingest writes with it, verify proves with it. The decision about a call begins the row, if a
pack was asked; a later decision about the same call takes its place. An audit record adds the nonce
and the principal. It is journalled after its decision, so a record without a row adds nothing. Of
two records the first counts: a rewritten intent has the nonce and the principal of the original.
"""

from typing import NamedTuple

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from subluminal.contracts.codec import NO_EVENT
from subluminal.contracts.intents import KernelDecision
from subluminal.ledger.ingest.rows import Call, IntentRow
from subluminal.ledger.ingest.wire import Judged


class Proposal(NamedTuple):
    """What an audit record adds to the row of its intent."""

    nonce: str | None
    principal: str | None


class _Actor(Struct, frozen=True):
    principal: str | None = None


class _Envelope(Struct, frozen=True):
    nonce: str | None = None
    actor: _Actor = _Actor()


class _Audit(Struct, frozen=True):
    envelope: _Envelope = _Envelope()


_decode_audit = msgspec.json.Decoder(_Audit).decode


def intent_row(kernel: Judged | KernelDecision, call: Call) -> IntentRow:
    """The row of an intent that a pack decided. Its nonce and principal follow."""
    return IntentRow(
        call.id,
        call.call_id,
        call.run_id,
        kernel.pack,
        kernel.version,
        kernel.fingerprint,
        kernel.intent_kind,
        kernel.intent_hash,
        None,
        None,
        kernel.taint,
        kernel.kind,
        _known(kernel.refusal_code),
        _known(kernel.guard),
        _known(kernel.divergence),
        call.created_at,
    )


def proposal_of(audit: Raw) -> Proposal:
    """What an audit record says about who proposed its intent. A masked record may say nothing."""
    try:
        envelope = _decode_audit(audit).envelope
    except NO_EVENT:
        return Proposal(None, None)
    return Proposal(envelope.nonce, envelope.actor.principal)


def take_place(row: IntentRow, earlier: IntentRow) -> None:
    """Keeps what audit records said when a later decision takes the place of an earlier one."""
    add_proposal(row, Proposal(earlier.nonce, earlier.principal))


def add_proposal(row: IntentRow, said: Proposal) -> None:
    """Adds what an audit record says, unless an earlier record said it."""
    row.nonce = said.nonce if row.nonce is None else row.nonce
    row.principal = said.principal if row.principal is None else row.principal


def _known(value: str | UnsetType) -> str | None:
    return None if value is UNSET else value
