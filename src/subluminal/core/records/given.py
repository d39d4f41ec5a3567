"""What the program around a call said about it, for the record: redacted first, then cut.

Only doors inside of a program have it, so a shim never loads this.
"""

from hashlib import sha256
from typing import Any, TypeVar

from msgspec import UNSET
from msgspec.structs import replace

from subluminal.canonical import AmbiguousJSON, encode
from subluminal.contracts.agents import Claims, Said
from subluminal.contracts.call import Given
from subluminal.contracts.events import GivenPart, GivenPreview
from subluminal.core.records.previews import Previewer
from subluminal.core.records.redaction.redactor import Preview

_Said = TypeVar("_Said", bound=Said)


def given_preview(given: Given, previewer: Previewer) -> GivenPreview:
    """Returns what is recorded of it."""
    labels = sorted(map(previewer.safe, given.labels))
    claims = None if given.claims is None else _masked(given.claims, previewer)
    context = _context(given.context, previewer)
    redacted: list[GivenPart] = []
    if frozenset(labels) != given.labels:
        redacted.append("labels")
    if context is not None and context.flags:
        redacted.append("context")
    if claims != given.claims:
        redacted.append("claims")
    return GivenPreview(
        labels=labels or UNSET,
        context=UNSET if context is None else context.text,
        truncated=True if context is not None and context.truncated else UNSET,
        user_input_hash=UNSET if given.user_input is None else _hash_of(given.user_input),
        claims=UNSET if claims is None else claims,
        redacted=redacted or UNSET,
    )


def _masked(claims: Claims, previewer: Previewer) -> Claims:
    besides = tuple(_said(each, previewer) for each in claims.besides)
    return replace(_said(claims, previewer), besides=besides)


def _said(claims: _Said, previewer: Previewer) -> _Said:
    safe = previewer.safe
    return replace(
        claims,
        environment=None if claims.environment is None else safe(claims.environment),
        agent_type=None if claims.agent_type is None else safe(claims.agent_type),
        roles=None if claims.roles is None else tuple(map(safe, claims.roles)),
    )


def _context(context: dict[str, Any], previewer: Previewer) -> Preview | None:
    """Returns the context as JSON; None if previews are off, or if it has no JSON form."""
    try:
        return previewer.text(encode(context).decode())
    except (AmbiguousJSON, TypeError, ValueError, RecursionError):
        return None


def _hash_of(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
