"""Reads compact JWTs strictly (RFC 7515, 7519). Pure.

Nothing that is read here is proven: `proofs` checks the signature. A refusal names the problem
in words of our own and never repeats text of the token, because tokens are secrets.
"""

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from decimal import Decimal
from typing import Any, NamedTuple

from subluminal.canonical import parse
from subluminal.errors import AmbiguousJSON, SubluminalError

MAX_TOKEN_CHARS = 16_384
ALGORITHMS = ("ES256", "EdDSA", "RS256")

_REFUSED_MEMBERS = ("crit", "jwk", "jku", "x5u", "x5c", "b64", "zip", "enc", "cty")
"""Header members that name a key, a place to fetch one, or another way to read the token."""
_LATEST_S = 253_402_300_799
"""The last second of the year 9999, the latest that RFC 3339 can write."""


class TokenRefused(SubluminalError):
    """A token proves nothing. The message says why, and never repeats text of the token."""


class Token(NamedTuple):
    """A token that was read but not verified."""

    algorithm: str
    key_id: str
    kind: str | None
    """`typ` of the header, in lower case"""
    claims: dict[str, Any]
    signed: bytes
    """the bytes that the signature covers"""
    signature: bytes


def read_token(text: str) -> Token:
    """Reads a compact JWT. Raises TokenRefused."""
    if len(text) > MAX_TOKEN_CHARS:
        raise TokenRefused(f"the token is longer than {MAX_TOKEN_CHARS} characters")
    parts = text.split(".")
    if len(parts) != 3:
        raise TokenRefused("the token is not a signed JWT: it does not have three parts")
    header_part, claims_part, signature_part = parts
    header = _object(header_part, "header")
    claims = _object(claims_part, "payload")
    algorithm, key_id, kind = _check_header(header)
    return Token(
        algorithm=algorithm,
        key_id=key_id,
        kind=kind,
        claims=claims,
        signed=f"{header_part}.{claims_part}".encode(),
        signature=_decoded(signature_part, "signature"),
    )


def seconds(claims: dict[str, Any], name: str) -> float | None:
    """Returns a time of the claims in seconds since 1970; None if it is missing."""
    if name not in claims:
        return None
    value = claims[name]
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise TokenRefused(f"`{name}` of the token is not a number")
    if not 0 <= value <= _LATEST_S:
        raise TokenRefused(f"`{name}` of the token is not a time from 1970 to 9999")
    return float(value)


def text_of(claims: dict[str, Any], name: str) -> str:
    """Returns a claim that must be text and not empty."""
    value = claims.get(name)
    if not isinstance(value, str) or not value:
        raise TokenRefused(f"`{name}` of the token is missing or not text")
    return value


def _check_header(header: dict[str, Any]) -> tuple[str, str, str | None]:
    for name in _REFUSED_MEMBERS:
        if name in header:
            raise TokenRefused(f"the token's header has `{name}`, which is not accepted")
    algorithm = header.get("alg")
    if algorithm not in ALGORITHMS:
        raise TokenRefused(f"the token's `alg` is not one of {', '.join(ALGORITHMS)}")
    key_id = header.get("kid")
    if not isinstance(key_id, str) or not key_id:
        raise TokenRefused("the token's header has no `kid`")
    kind = header.get("typ")
    if kind is not None and not isinstance(kind, str):
        raise TokenRefused("the token's `typ` is not text")
    return algorithm, key_id, None if kind is None else kind.lower()


def _object(part: str, what: str) -> dict[str, Any]:
    try:
        value = parse(_decoded(part, what)).value
    except AmbiguousJSON as error:
        # The parser's own message may repeat a key of the token.
        twice = str(error).startswith("duplicate key")
        problem = "has a member twice" if twice else "is not JSON that every parser reads alike"
        raise TokenRefused(f"the {what} of the token {problem}") from None
    if not isinstance(value, dict):
        raise TokenRefused(f"the {what} of the token is not a JSON object")
    return value


def _decoded(part: str, what: str) -> bytes:
    """Decodes base64url without padding. Refuses every other spelling of the same bytes."""
    try:
        data = urlsafe_b64decode(part.encode("ascii") + b"=" * (-len(part) % 4))
    except (ValueError, binascii.Error):
        data = b""
    if not data or urlsafe_b64encode(data).rstrip(b"=").decode() != part:
        raise TokenRefused(f"the {what} of the token is not base64url")
    return data
