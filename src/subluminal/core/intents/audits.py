"""Audit records of the kernel as they go into the journal: with the state, masked, and bounded.

The settings say how much: `record.mode` `off` keeps none; `metadata` those of at most
`max_preview_bytes`, with a hash of the state; `full` all of them, with the state itself. Secrets
are masked first. A masked record says so, because its hashes no longer hold.
"""

from typing import Any

import msgspec
from msgspec import Raw

from subluminal.contracts.templates import encode_json
from subluminal.core.records.previews import Previewer
from subluminal.errors import SubluminalError
from subluminal.kernel.audit import AuditRecord
from subluminal.kernel.packs import Pack
from subluminal.kernel.plain import plain_json, sha256_canonical

_REDACTED = "redacted"


def recordable_audit(
    record: AuditRecord, state: Any, pack: Pack, previewer: Previewer
) -> Raw | None:
    """Returns the record as it may be written; None if the settings keep none of its size."""
    if previewer.is_off:
        return None
    text = _masked(_wire(record, _state_json(state, pack), with_state=previewer.is_full), previewer)
    if len(text) <= previewer.max_bytes:
        return Raw(text)
    if not previewer.is_full:
        return None
    return Raw(_masked(_wire(record, _state_json(state, pack), with_state=False), previewer))


def _wire(record: AuditRecord, state: Any, *, with_state: bool) -> dict[str, Any]:
    wire: dict[str, Any] = msgspec.to_builtins(record)
    metadata = {"state_hash": None if state is None else sha256_canonical(state)}
    if with_state and state is not None:
        metadata["state"] = state
    wire["metadata"] = metadata
    return wire


def _state_json(state: Any, pack: Pack) -> Any:
    """Returns the state as JSON; None if it has no such form, so that it cannot be replayed."""
    try:
        return plain_json(state if pack.dump_state is None else pack.dump_state(state))
    except SubluminalError:
        return None
    except Exception:  # noqa: BLE001 - `dump_state` is the code of a pack; it decides nothing
        return None


def _masked(wire: dict[str, Any], previewer: Previewer) -> bytes:
    text = encode_json(wire)
    shown = previewer.safe(text.decode()).encode()
    if shown == text:
        return text
    try:
        wire = msgspec.json.decode(shown)
        wire["metadata"][_REDACTED] = True
        return encode_json(wire)
    except (msgspec.MsgspecError, TypeError, KeyError):  # the secret is one of our own words
        left = ("version", "intentHash", "at", "durationMs")
        kept = {name: wire[name] for name in left}
        blank: dict[str, Any] = {"envelope": {}, "decision": {}, "decision_basis": []}
        return encode_json({**kept, **blank, "metadata": {_REDACTED: True}})
