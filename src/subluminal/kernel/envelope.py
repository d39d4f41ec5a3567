"""Intent envelopes, version 2: a proposed change, with who proposes it and how far it is trusted.

The hash covers version, kind, payload, nonce, actor and taint, and of the optional members those
that are present: `role`, `resourceRefs`, `origin`. It does not cover `createdAt`, so a retry with
the same nonce has the same hash. The nonce is what makes two attempts one intent.

`build_envelope` copies the payload into plain JSON. An envelope that was made in another way may
hold anything: `derive_intent_hash` refuses one whose members do not have their types.
"""

from collections.abc import Mapping
from hashlib import sha256
from operator import attrgetter
from types import NoneType
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from subluminal.canonical import Profile, encode
from subluminal.contracts.vocabulary import Taint
from subluminal.errors import SubluminalError
from subluminal.kernel.plain import plain_json
from subluminal.kernel.taint import Origin, lowest_field_taint, merge_taint

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
    """Returns an envelope with its hash; its payload was made by `plain_json`."""
    problem = shape_problem(draft)
    if problem:
        raise SubluminalError(problem)
    return msgspec.structs.replace(draft, intent_hash=sha256(hashed_bytes(draft)).hexdigest())


def derive_intent_hash(envelope: IntentEnvelope) -> str:
    """Returns the hash that the envelope must have. Raises SubluminalError if it has none."""
    return examine(envelope)[0]


def examine(envelope: IntentEnvelope) -> tuple[str, Taint]:
    """Returns the hash and the level that the members of an envelope give, in bounded time.

    Raises SubluminalError if a member does not have its type, or the payload is not plain JSON.
    """
    problem = shape_problem(envelope)
    if problem:
        raise SubluminalError(problem)
    level = effective_taint(envelope)
    return sha256(hashed_bytes(envelope)).hexdigest(), level


def hashed_bytes(envelope: IntentEnvelope) -> bytes:
    """Returns the canonical bytes that the hash covers, of an envelope that has its shape."""
    actor: dict[str, Any] = {
        "principal": envelope.actor.principal,
        "sessionId": envelope.actor.session_id,
    }
    if envelope.actor.role is not None:
        actor["role"] = envelope.actor.role
    covered = {
        "version": ENVELOPE_VERSION,
        "kind": envelope.kind,
        "payload": envelope.payload,
        "nonce": envelope.nonce,
        "actor": actor,
        "taint": str(envelope.taint),
    }
    if envelope.resource_refs is not None:
        covered["resourceRefs"] = envelope.resource_refs
    if envelope.origin is not None:
        covered["origin"] = str(envelope.origin)
    return encode(covered, Profile.JCS_NFC)


_STRING = frozenset({str})
_texts_of = attrgetter("kind", "nonce", "created_at", "intent_hash")
_LEVELS = frozenset(Taint)
_ORIGINS = frozenset({*Origin, None})


def shape_problem(envelope: Any) -> str | None:
    """Says which member does not have its type; None if all have. The payload is not looked at."""
    if type(envelope) is not IntentEnvelope:
        return f"a value of type `{type(envelope).__name__}` is not an envelope"
    if type(envelope.version) is not int or envelope.version != ENVELOPE_VERSION:
        return "the version is not 2"
    if not _STRING.issuperset(map(type, _texts_of(envelope))):
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
    if type(envelope.taint) not in (Taint, str) or envelope.taint not in _LEVELS:
        return "`taint` is not a level"
    if type(envelope.origin) not in (Origin, str, NoneType) or envelope.origin not in _ORIGINS:
        return "`origin` is not an origin"
    refs: Any = envelope.resource_refs
    if refs is not None and (
        type(refs) is not dict
        or not all(type(name) is str and type(ref) is str for name, ref in refs.items())
    ):
        return "`resource_refs` does not map strings to strings"
    return None


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
    lowest = lowest_field_taint(envelope.payload)
    return envelope.taint if lowest is Taint.SYSTEM else merge_taint(envelope.taint, lowest)


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
    try:
        return words(value)
    except ValueError:
        known = ", ".join(words)
        raise SubluminalError(f"`{value}` is not one of {known}") from None
