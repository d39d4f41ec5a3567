"""Audit records of the kernel as they go into the journal: with the state, masked, and bounded.

The settings say how much: `record.mode` `off` keeps none; `metadata` those of at most
`max_preview_bytes`, with a hash of the state; `full` all of them, with the state itself. Secrets
are masked first. A masked record says so, because its hashes no longer hold.
"""

from typing import Any, NamedTuple

import msgspec
from msgspec import Raw

from subluminal.contracts.templates import encode_json
from subluminal.core.records.previews import Previewer
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
    known = _state_json(state, pack)
    text = _masked(_wire(record, known, with_state=previewer.is_full), previewer)
    if len(text) <= previewer.max_bytes:
        return Raw(text)
    if not previewer.is_full:
        return None
    return Raw(_masked(_wire(record, known, with_state=False), previewer))


def _wire(record: AuditRecord, state: "_State", *, with_state: bool) -> dict[str, Any]:
    wire: dict[str, Any] = msgspec.to_builtins(record)
    wire["metadata"] = {"state_hash": state.hash}
    if with_state and state.hash is not None:
        wire["metadata"]["state"] = state.json
    return wire


class _State(NamedTuple):
    """The state that a pack was asked with."""

    json: Any
    hash: str | None
    """SHA-256 of its canonical JSON; None if it has no such form, so that nobody can replay it"""


def _state_json(state: Any, pack: Pack) -> _State:
    try:
        shown = plain_json(state if pack.dump_state is None else pack.dump_state(state))
        return _State(shown, None if shown is None else sha256_canonical(shown))
    except Exception:  # noqa: BLE001 - objects and `dump_state` are the code of others
        return _State(None, None)


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
