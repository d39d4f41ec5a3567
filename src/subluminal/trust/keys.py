"""Public keys of issuers (JWKS, RFC 7517) and the check of a signature. Pure.

joserfc checks signatures. It is an extra and slow to import, so only `verify` loads it.
"""

from typing import Any

from subluminal.errors import SubluminalError
from subluminal.trust.tokens import Token, TokenRefused

_ALGORITHM_OF = {("EC", "P-256"): "ES256", ("OKP", "Ed25519"): "EdDSA", ("RSA", None): "RS256"}
_MEMBERS = {"EC": ("crv", "x", "y"), "OKP": ("crv", "x"), "RSA": ("n", "e")}
_PRIVATE = ("d", "k", "p", "q")
_LEAST_RSA_BITS, _MOST_RSA_BITS = 2048, 8192
_EC_SIGNATURE_BYTES = 64
_MAX_KEYS = 100


class VerifierMissing(TokenRefused):
    """Tokens cannot be verified, because the extra `trust` is not installed."""

    def __init__(self) -> None:
        super().__init__(
            "the library that verifies tokens is missing",
            hint="install it with `pip install 'subluminal[trust]'`",
        )


class KeysUnusable(SubluminalError):
    """A key set is wrong, or has no key that can verify a token."""


def usable_keys(jwks: Any) -> dict[str, dict[str, str]]:
    """Returns the public keys of a key set that can verify tokens, by key id, without the rest.

    Keys for other uses and of other kinds are left out. Raises KeysUnusable.
    """
    listed = jwks.get("keys") if isinstance(jwks, dict) else None
    if not isinstance(listed, list) or len(listed) > _MAX_KEYS:
        raise KeysUnusable(f"a key set is an object with a list `keys` of at most {_MAX_KEYS} keys")
    found: dict[str, dict[str, str]] = {}
    for key in listed:
        if not isinstance(key, dict):
            raise KeysUnusable("a key of the key set is not an object")
        if any(name in key for name in _PRIVATE):
            raise KeysUnusable(
                "the key set has a private or a shared key", hint="give the public keys only"
            )
        usable = _usable(key)
        if usable is None:
            continue
        if usable["kid"] in found:
            raise KeysUnusable("two keys of the key set have the same `kid`")
        found[usable["kid"]] = usable
    if not found:
        raise KeysUnusable(
            "the key set has no key that can verify a token",
            hint="it needs a key with a `kid`: EC P-256, OKP Ed25519, or RSA of 2048 bits or more",
        )
    return found


def verify(token: Token, key: dict[str, str]) -> None:
    """Checks the signature of a token with a key of `usable_keys`. Raises TokenRefused."""
    if token.algorithm != key["alg"]:
        raise TokenRefused("the token's `alg` does not fit the key that its `kid` names")
    if token.algorithm == "ES256":
        _check_raw(token.signature)
    if not _is_signed(token, key):
        raise TokenRefused("the signature of the token is not valid")


def _check_raw(signature: bytes) -> None:
    if len(signature) != _EC_SIGNATURE_BYTES:
        raise TokenRefused("the signature of the token is not the 64 bytes of R and S")
    half = _EC_SIGNATURE_BYTES // 2
    if not any(signature[:half]) or not any(signature[half:]):
        raise TokenRefused("the signature of the token has R or S zero")


def _is_signed(token: Token, key: dict[str, str]) -> bool:
    try:
        from joserfc.errors import JoseError
        from joserfc.jwk import JWKRegistry
        from joserfc.jws import JWSRegistry
    except ImportError:
        raise VerifierMissing from None
    try:
        public = JWKRegistry.import_key(dict(key))
        # Not `deserialize_compact`: it reads the token again, less strictly, and its registry
        # warns about EdDSA, which RFC 9864 renames.
        algorithm = JWSRegistry.algorithms[token.algorithm]
        algorithm.check_key(public)
        return algorithm.verify(token.signed, token.signature, public)
    except (JoseError, ValueError):
        return False


def _usable(key: dict[str, Any]) -> dict[str, str] | None:
    kind = key.get("kty")
    names = _MEMBERS.get(kind) if isinstance(kind, str) else None
    if names is None or not all(isinstance(key.get(name), str) for name in (*names, "kid")):
        return None
    curve = key.get("crv") if "crv" in names else None
    algorithm = _ALGORITHM_OF.get((str(kind), curve))
    if algorithm is None or key.get("alg", algorithm) != algorithm or not key["kid"]:
        return None
    operations = key.get("key_ops", ["verify"])
    if key.get("use", "sig") != "sig" or not isinstance(operations, list):
        return None
    if "verify" not in operations:
        return None
    if kind == "RSA" and not _LEAST_RSA_BITS <= _bits(key["n"]) <= _MOST_RSA_BITS:
        return None
    return {name: key[name] for name in (*names, "kid")} | {"kty": str(kind), "alg": algorithm}


def _bits(modulus: str) -> int:
    """Returns the length in bits of a base64url number; 0 if it is not one."""
    from base64 import urlsafe_b64decode

    try:
        data = urlsafe_b64decode(modulus.encode("ascii") + b"=" * (-len(modulus) % 4))
    except ValueError:
        return 0
    return int.from_bytes(data).bit_length()
