"""Intent envelopes, version 2: a proposed change, with who proposes it and how far it is trusted.

The hash covers version, kind, payload, nonce, actor and taint, and of the optional members those
that are present: `role`, `resourceRefs`, `origin`. It does not cover `createdAt`, so a retry with
the same nonce has the same hash. The nonce is what makes two attempts one intent.

`build_envelope` copies the payload into plain JSON. An envelope that was made in another way may
hold anything: `derive_intent_hash` refuses one whose members do not have their types.
"""

from collections.abc import Mapping
from hashlib import sha256
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from subluminal.canonical import Profile, encode
from subluminal.contracts.vocabulary import Taint
from subluminal.errors import AmbiguousJSON, SubluminalError
from subluminal.kernel.plain import members_of, plain_json
from subluminal.kernel.taint import SYSTEM, Origin, lowest_field_taint, merge_taint, survey

_Word = TypeVar("_Word", Taint, Origin)
ENVELOPE_VERSION = 2
PRINCIPALS = frozenset({"llm", "user", "system"})


class IntentActor(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Who proposes an intent."""

    principal: str
    """`llm`, `user` or `system`"""
    session_id: str
    role: str | None = None


class IntentEnvelope(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A proposed change. `build_envelope` makes one."""

    version: int
    kind: str
    payload: Any
    created_at: str
    nonce: str
    actor: IntentActor
    taint: Taint
    intent_hash: str
    resource_refs: dict[str, str] | None = None
    origin: Origin | None = None


def build_envelope(
    kind: str,
    payload: Any,
    *,
    actor: IntentActor,
    taint: Taint | str,
    nonce: str,
    created_at: str,
    resource_refs: Mapping[str, str] | None = None,
    origin: Origin | str | None = None,
) -> IntentEnvelope:
    """Makes an envelope with its hash. Raises SubluminalError if a member is not right."""
    if not nonce:
        raise SubluminalError(
            "the nonce is empty", hint="use a new UUID for a first attempt, the same one to retry"
        )
    draft = IntentEnvelope(
        version=ENVELOPE_VERSION,
        kind=kind,
        payload=plain_json(payload),
        created_at=created_at,
        nonce=nonce,
        actor=actor,
        taint=_member(Taint, taint),
        intent_hash="",
        resource_refs=None if resource_refs is None else dict(resource_refs),
        origin=None if origin is None else _member(Origin, origin),
    )
    return _hashed(draft)


def with_payload(envelope: IntentEnvelope, payload: Any) -> IntentEnvelope:
    """Returns the envelope with another payload and its new hash: what a REWRITE may be."""
    changed = msgspec.structs.replace(envelope, payload=plain_json(payload))
    return _hashed(changed)


def _hashed(draft: IntentEnvelope) -> IntentEnvelope:
    """Gives an envelope its hash. Nobody else has the draft yet; its payload is `plain_json`'s."""
    msgspec.structs.force_setattr(draft, "intent_hash", derive_intent_hash(draft))
    return draft


def derive_intent_hash(envelope: IntentEnvelope) -> str:
    """Returns the hash that the envelope must have. Raises SubluminalError if it has none."""
    return sha256(examine(envelope)[0]).hexdigest()


def examine(envelope: IntentEnvelope) -> tuple[bytes, Taint]:
    """Returns the canonical bytes that the hash covers, and the level of envelope and fields.

    Bounded. Raises SubluminalError if a member does not have its type, or the payload is not plain
    JSON.
    """
    problem = shape_problem(envelope)
    if problem:
        raise SubluminalError(problem)
    lowest, is_plain = survey(envelope.payload)
    return _hashed_bytes(envelope, is_plain), _lowered(envelope, lowest)


def has_bytes(envelope: IntentEnvelope, hashed: bytes) -> bool:
    """Whether an envelope that was examined still gives these bytes. Raises if it has none."""
    return _hashed_bytes(envelope, survey(envelope.payload)[1]) == hashed


class _Hashed(Struct, rename="camel", omit_defaults=True):
    """The members that the hash covers."""

    actor: IntentActor
    kind: str
    nonce: str
    payload: Any
    taint: Taint
    version: int
    origin: Origin | None = None
    resource_refs: dict[str, str] | None = None


_encode_sorted = msgspec.json.Encoder(order="sorted").encode


def _hashed_bytes(envelope: IntentEnvelope, is_plain: bool) -> bytes:
    """Returns the canonical bytes of an envelope that has its shape. `is_plain` is `survey`'s."""
    covered = _Hashed(
        envelope.actor,
        envelope.kind,
        envelope.nonce,
        envelope.payload,
        envelope.taint,
        ENVELOPE_VERSION,
        envelope.origin,
        envelope.resource_refs,
    )
    if is_plain:
        try:
            text = _encode_sorted(covered)
        except UnicodeEncodeError:
            raise AmbiguousJSON("a string has a lone surrogate") from None
        if text.isascii():  # one normal form and one key order: `encode` would write the same
            return text
    members = members_of(covered) | {"actor": members_of(covered.actor)}
    members["payload"] = covered.payload  # also if it is None
    members |= {name: str(members[name]) for name in ("taint", "origin") if name in members}
    return encode(members, Profile.JCS_NFC)


_LEVELS = frozenset(Taint)
_ORIGINS = frozenset(Origin)


def shape_problem(envelope: Any) -> str | None:
    """Says which member does not have its type; None if all have. The payload is not looked at."""
    if type(envelope) is not IntentEnvelope:
        return f"a value of type `{type(envelope).__name__}` is not an envelope"
    if type(envelope.version) is not int or envelope.version != ENVELOPE_VERSION:
        return "the version is not 2"
    if (
        type(envelope.kind) is not str
        or type(envelope.nonce) is not str
        or type(envelope.created_at) is not str
        or type(envelope.intent_hash) is not str
    ):
        return "kind, nonce, createdAt or intentHash is not a string"
    return _actor_problem(envelope.actor) or _provenance_problem(envelope)


def _actor_problem(actor: Any) -> str | None:
    if type(actor) is not IntentActor:
        return "`actor` is not an IntentActor"
    if type(actor.principal) is not str or actor.principal not in PRINCIPALS:
        return "`actor.principal` is not llm, user or system"
    if type(actor.session_id) is not str:
        return "`actor.session_id` is not a string"
    if actor.role is not None and type(actor.role) is not str:
        return "`actor.role` is not a string"
    return None


def _provenance_problem(envelope: IntentEnvelope) -> str | None:
    if not _is_word(envelope.taint, Taint, _LEVELS):
        return "`taint` is not a level"
    if envelope.origin is not None and not _is_word(envelope.origin, Origin, _ORIGINS):
        return "`origin` is not an origin"
    refs: Any = envelope.resource_refs
    if refs is not None and (
        type(refs) is not dict
        or not all(type(name) is str and type(ref) is str for name, ref in refs.items())
    ):
        return "`resource_refs` does not map strings to strings"
    return None


def _is_word(value: Any, words: type[_Word], known: frozenset[_Word]) -> bool:
    """Whether a value is one of the words, as a member or as a plain string."""
    return type(value) is words or (type(value) is str and value in known)


def is_intent_envelope(value: Any) -> bool:
    """Whether a value is an envelope of version 2 whose members have their types.

    Takes a struct, or an object as JSON has it. Whether the hash is right is another question.
    """
    if isinstance(value, Mapping):
        try:
            value = read_envelope(value)
        except SubluminalError:
            return False
    return shape_problem(value) is None


def read_envelope(wire: Mapping[str, Any]) -> IntentEnvelope:
    """Reads an envelope as JSON has it. Raises SubluminalError if a member is missing or wrong."""
    try:
        return msgspec.convert({**wire, "payload": plain_json(wire["payload"])}, IntentEnvelope)
    except KeyError:
        raise SubluminalError("the envelope has no payload") from None
    except msgspec.ValidationError as error:
        raise SubluminalError(f"not an envelope: {error}") from None


def effective_taint(envelope: IntentEnvelope) -> Taint:
    """Returns the lowest of the envelope's level and those of its fields."""
    return _lowered(envelope, lowest_field_taint(envelope.payload))


def _lowered(envelope: IntentEnvelope, lowest: Taint) -> Taint:
    return envelope.taint if lowest is SYSTEM else merge_taint(envelope.taint, lowest)


def legacy_v1_to_v2(row: Mapping[str, Any]) -> IntentEnvelope:
    """Makes an envelope from a stored row of version 1, whose hash was another one on purpose.

    The nonce is the row's, else the stored envelope's, else the time at which that was made.
    """
    wire = row.get("envelope_jsonb") or row.get("envelope")
    if not isinstance(wire, Mapping):
        raise SubluminalError("the row has no envelope", hint="it is in `envelope_jsonb`")
    created_at = wire.get("createdAt")
    nonce = row.get("nonce") or wire.get("nonce") or created_at
    blank = {**wire, "version": ENVELOPE_VERSION, "nonce": nonce, "intentHash": ""}
    envelope = read_envelope(blank)
    return _hashed(envelope)


def _member(words: type[_Word], value: Any) -> _Word:
    if type(value) is words:
        return value
    try:
        return words(value)
    except ValueError:
        known = ", ".join(words)
        raise SubluminalError(f"`{value}` is not one of {known}") from None
