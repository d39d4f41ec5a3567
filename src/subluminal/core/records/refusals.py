"""Masks secrets in refusals, which go to the client and into the journal (unprintable-secrets).

A hint may repeat the arguments of its call, and with them a secret. Suggested arguments never
contain a mask, because an agent would send it on: they are cut down to the arguments to change.
"""

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec.structs import replace

from subluminal.contracts.decision import Decision, Hint
from subluminal.contracts.intents import KernelDecision
from subluminal.contracts.limits import REDACTED
from subluminal.contracts.templates import encode_json

Mask = Callable[[str], str]
"""Returns a text with its secrets masked."""

_NO_HINT = Hint(hint_text="[REDACTED]", retry_advice="do not retry this call unchanged")
"""Replaces a hint that cannot be shown: a REJECT_WITH_HINT always has a hint (Pack 1.6)."""
_MISSING = object()


def masked_refusal(decision: Decision, args: dict[str, Any] | None, mask: Mask) -> Decision:
    """Returns a refusal that may be shown. `args` are the arguments of its call."""
    hint = decision.hint
    if hint is not None and hint.suggested_args is not None:
        decision = replace(decision, hint=_without_masks(hint, hint.suggested_args, args, mask))
    text = encode_json(decision).decode()
    masked = mask(text)
    if masked == text:
        return decision
    try:
        shown = msgspec.json.decode(masked, type=Decision)
    except msgspec.MsgspecError:  # the secret is one of our own words
        hint = None if decision.hint is None else _NO_HINT
        return replace(decision, summary="[REDACTED]", hint=hint)
    if shown.hint is None or _is_clean(shown.hint.suggested_args, mask):
        return shown
    return replace(shown, hint=replace(shown.hint, suggested_args=None, partial=msgspec.UNSET))


def masked_kernel(kernel: KernelDecision, mask: Mask) -> KernelDecision:
    """Returns the decision of a pack for the record: an agent can put anything into its names."""
    text = encode_json(kernel).decode()
    masked = mask(text)
    if masked == text:
        return kernel
    try:
        return msgspec.json.decode(masked, type=KernelDecision)
    except msgspec.MsgspecError:  # the secret is one of our own words
        hidden = dict.fromkeys(("pack", "version", "fingerprint", "intent_kind"), REDACTED)
        bare = replace(kernel, basis=[], guard=msgspec.UNSET, refusal_code=msgspec.UNSET)
        return replace(bare, kind=REDACTED, intent_hash=REDACTED, **hidden)


def _without_masks(
    hint: Hint, suggested: dict[str, Any], args: dict[str, Any] | None, mask: Mask
) -> Hint:
    """Returns the hint with the arguments that can be shown: all, those to change, or none."""
    if _is_clean(suggested, mask):
        return hint
    own = args or {}
    changed = {key: value for key, value in suggested.items() if own.get(key, _MISSING) != value}
    removed = [key for key in own if key not in suggested]
    if not _is_clean([changed, removed], mask):
        return replace(hint, suggested_args=None, retry_advice=_NO_HINT.retry_advice)
    ways = [
        *(["changed as suggested"] if changed else []),
        *([f"without {', '.join(removed)}"] if removed else []),
    ]
    return replace(
        hint,
        suggested_args=changed or None,
        partial=bool(changed) or msgspec.UNSET,
        retry_advice=f"retry with your own arguments, {' and '.join(ways)}",
    )


def _is_clean(value: Any, mask: Mask) -> bool:
    """Returns True if a value has no secret and no mask, which an agent may have sent itself."""
    text = encode_json(value).decode()
    return REDACTED not in text and mask(text) == text
