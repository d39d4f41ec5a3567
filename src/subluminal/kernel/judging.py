"""Judges what a guard returned, before it becomes a decision of the kernel.

A guard may return anything. Only one of the six decisions counts, with members of their types and
reasons from the vocabulary; a REWRITE must be of the same intent and must not raise a level.
"""

from enum import StrEnum
from typing import Any

from subluminal.canonical import Profile, encode
from subluminal.errors import SubluminalError
from subluminal.kernel.basis import Basis, is_known_basis
from subluminal.kernel.decisions import (
    DECISIONS,
    Decision,
    Defer,
    Escalate,
    EscalateTo,
    Execute,
    Refusal,
    RefusalKind,
    Refuse,
    RequestConfirmation,
    Rewrite,
)
from subluminal.kernel.envelope import IntentEnvelope, derive_intent_hash
from subluminal.kernel.plain import plain_json
from subluminal.kernel.refusals import Passed, hash_mismatch, propagation_violation
from subluminal.kernel.taint import RANK, is_contaminating, is_tainted, tainted_fields

_MAX_TIMEOUT_MS = 2**53
_RECIPIENTS = frozenset(EscalateTo)
_KINDS = frozenset(RefusalKind)


class NotADecision(Exception):
    """What a guard returned is not a decision; the message says why."""


def check_decision(value: Any) -> Decision:
    """Returns the value, if it is one of the six decisions. Raises NotADecision."""
    if type(value) not in DECISIONS:
        raise NotADecision(f"the guard returned a `{type(value).__name__}`, not a decision")
    decision: Decision = value
    if type(decision.basis) not in (tuple, list):
        raise NotADecision("`basis` is not a list of reasons")
    for reason in decision.basis:
        _check_basis(reason)
    problem = None if type(decision) is Execute else _member_problem(decision)
    if problem:
        raise NotADecision(problem)
    return decision


def _check_basis(reason: Any) -> None:
    if type(reason) is not Basis or not is_known_basis(reason):
        raise NotADecision("a reason is not in BASIS_CODES")
    if reason.detail is None:
        return
    if type(reason.detail) is not dict:
        raise NotADecision("the detail of a reason is not an object")
    encode(plain_json(reason.detail), Profile.JCS_NFC)


def _member_problem(decision: Decision) -> str | None:
    match decision:
        case Refuse(refusal=refusal) if type(refusal) is Refusal:
            return _refusal_problem(refusal)
        case Escalate(to=to, reason=reason):
            ok = type(to) in (EscalateTo, str) and to in _RECIPIENTS and _is_text(reason)
        case RequestConfirmation(prompt=prompt):
            ok = _is_text(prompt)
        case Defer(signal=signal, timeout_ms=timeout_ms):
            ok = bool(signal) and _is_text(signal) and type(timeout_ms) is int
            ok = ok and 0 <= timeout_ms < _MAX_TIMEOUT_MS
        case Rewrite(reason=reason):
            ok = _is_text(reason)
        case _:
            ok = False
    return None if ok else f"a member of the {decision.kind} does not have its type"


def _refusal_problem(refusal: Refusal) -> str | None:
    if type(refusal.kind) not in (RefusalKind, str) or refusal.kind not in _KINDS:
        return "the kind of the refusal is not one of the four"
    if not _is_text(refusal.code) or not refusal.code:
        return "the refusal has no code"
    if not _is_text(refusal.user_facing) or not _is_text(refusal.detail or ""):
        return "the refusal's texts are not strings"
    return None


def _is_text(value: Any) -> bool:
    """Whether a value is a string that JSON can hold."""
    if type(value) is not str and not isinstance(value, StrEnum):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def check_rewrite(original: IntentEnvelope, decision: Rewrite, passed: Passed) -> Refuse | None:
    """Returns the refusal of a REWRITE that goes too far. Raises if it is not of this intent."""
    rewritten = decision.rewritten
    derived = derive_intent_hash(rewritten)
    if rewritten.intent_hash != derived:
        return hash_mismatch(passed, rewritten.intent_hash, derived)
    for name in ("kind", "actor", "nonce", "resource_refs"):
        if getattr(rewritten, name) != getattr(original, name):
            raise SubluminalError(f"the REWRITE is another intent: its `{name}` differs")
    if RANK[rewritten.taint] > RANK[original.taint]:
        return propagation_violation(
            passed,
            "the REWRITE raises the level of the envelope",
            actual=str(original.taint),
            rewritten=str(rewritten.taint),
        )
    if is_contaminating(original.origin) and rewritten.origin != original.origin:
        return propagation_violation(
            passed, "the REWRITE hides where the intent came from", origin=str(original.origin)
        )
    field = _laundered_field(original, rewritten)
    if field is not None:
        return propagation_violation(passed, "the REWRITE raises the level of a field", field=field)
    return None


def _laundered_field(original: IntentEnvelope, rewritten: IntentEnvelope) -> str | None:
    """Returns a field whose level went up although its value stayed: a redacted one may rise."""
    for path, level, value in tainted_fields(original.payload):
        now = _at(rewritten.payload, path)
        if now is _ABSENT:
            continue
        if is_tainted(now):
            if RANK[now["taint"]] <= RANK[level]:
                continue
            now = now["value"]
        if now == value:
            return ".".join(map(str, path))
    return None


_ABSENT = object()


def _at(payload: Any, path: tuple[str | int, ...]) -> Any:
    for step in path:
        if isinstance(payload, dict):
            payload = payload.get(step, _ABSENT)
        elif isinstance(payload, list) and isinstance(step, int) and step < len(payload):
            payload = payload[step]
        else:
            return _ABSENT
    return payload
