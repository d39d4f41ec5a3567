"""Tokens of the home's key: they prove an agent to this home and to no other (`sub agents attest`).

Needs `cryptography`, like `home_key`. Any process of this user can make such tokens, because it can
read the key.
"""

from base64 import urlsafe_b64encode

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from subluminal.canonical import Profile, encode
from subluminal.trust.home_key import HomeKey, key_id_of
from subluminal.trust.proofs import HOME_AUDIENCE, HOME_TOKEN, Home, home_issuer


def make_token(
    key: HomeKey, agent_id: str, *, now_ms: int, ttl_ms: int, run_id: str | None = None
) -> str:
    """Returns a JWT that proves the agent until `ttl_ms` from now, in one run or in any."""
    header = {"alg": "ES256", "kid": key.key_id, "typ": HOME_TOKEN}
    claims: dict[str, object] = {
        "iss": home_issuer(key.key_id),
        "sub": agent_id,
        "aud": HOME_AUDIENCE,
        "iat": now_ms // 1000,
        "exp": (now_ms + ttl_ms) // 1000,
    }
    if run_id is not None:
        claims["run_id"] = run_id
    signed = ".".join(_text(encode(part, Profile.JCS)) for part in (header, claims))
    return f"{signed}.{_text(key.sign_token(signed.encode()))}"


def home_of(public: bytes) -> Home:
    """Returns what `proofs.verify_token` needs of a home's public key (DER)."""
    key = serialization.load_der_public_key(public)
    assert isinstance(key, ec.EllipticCurvePublicKey)  # HomeKey has no other
    numbers, key_id = key.public_numbers(), key_id_of(public)
    jwk = {
        "kty": "EC",
        "crv": "P-256",
        "alg": "ES256",
        "kid": key_id,
        "x": _text(numbers.x.to_bytes(32)),
        "y": _text(numbers.y.to_bytes(32)),
    }
    return Home(key_id, jwk)


def _text(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()
