"""Makes tokens, good and forged, with nothing but cryptography: not with the library under test."""

import hashlib
import hmac
import json
from base64 import urlsafe_b64encode
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

NOW_S = 1_800_000_000
NOW_MS = NOW_S * 1000

EC_KEY = ec.generate_private_key(ec.SECP256R1())
OTHER_EC_KEY = ec.generate_private_key(ec.SECP256R1())
P384_KEY = ec.generate_private_key(ec.SECP384R1())
ED_KEY = ed25519.Ed25519PrivateKey.generate()
RSA_KEY = rsa.generate_private_key(65537, 2048)
OTHER_RSA_KEY = rsa.generate_private_key(65537, 2048)
SHORT_RSA_KEY = rsa.generate_private_key(65537, 1024)

SIGNERS = {"ES256": ("ec", EC_KEY), "EdDSA": ("ed", ED_KEY), "RS256": ("rsa", RSA_KEY)}
"""Key id and key of each algorithm."""


def text(data: bytes) -> str:
    """Returns base64url without padding."""
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def raw_signature(der: bytes, size: int = 32) -> bytes:
    """Returns R and S of a signature in DER."""
    r, s = decode_dss_signature(der)
    return r.to_bytes(size) + s.to_bytes(size)


def sign(algorithm: str, key: Any, signed: bytes) -> bytes:
    """Signs as an algorithm says, whatever the key is meant for."""
    if isinstance(key, rsa.RSAPrivateKey):
        return key.sign(signed, padding.PKCS1v15(), hashes.SHA256())
    if isinstance(key, ed25519.Ed25519PrivateKey):
        return key.sign(signed)
    if isinstance(key, ec.EllipticCurvePrivateKey):
        size = (key.key_size + 7) // 8
        return raw_signature(key.sign(signed, ec.ECDSA(hashes.SHA256())), size)
    assert algorithm.startswith("HS")
    return hmac.new(key, signed, hashlib.sha256).digest()


def jwk(key_id: str, key: Any, **more: Any) -> dict[str, Any]:
    """Returns the public half of a key as a JWK."""
    public = key.public_key()
    if isinstance(public, rsa.RSAPublicKey):
        numbers = public.public_numbers()
        size = (public.key_size + 7) // 8
        found = {"kty": "RSA", "n": text(numbers.n.to_bytes(size)), "e": "AQAB"}
    elif isinstance(public, ed25519.Ed25519PublicKey):
        found = {"kty": "OKP", "crv": "Ed25519", "x": text(public.public_bytes_raw())}
    else:
        point, size = public.public_numbers(), (public.key_size + 7) // 8
        curve = {32: "P-256", 48: "P-384"}[size]
        x, y = text(point.x.to_bytes(size)), text(point.y.to_bytes(size))
        found = {"kty": "EC", "crv": curve, "x": x, "y": y}
    return {**found, "kid": key_id, **more}


JWKS = {"keys": [jwk(key_id, key, use="sig") for key_id, key in SIGNERS.values()]}


def compact(header: Any, claims: Any, signature: bytes | None = None, **signer: Any) -> str:
    """Returns a token; `header` and `claims` may be text that is not JSON of an object."""
    parts = [each if isinstance(each, str) else json.dumps(each) for each in (header, claims)]
    signed = ".".join(text(part.encode()) for part in parts)
    if signature is None:
        signature = sign(signer["algorithm"], signer["key"], signed.encode())
    return f"{signed}.{text(signature)}"


def token(
    claims: Any, algorithm: str = "RS256", *, key: Any = None, header: Any = None, **more: Any
) -> str:
    """Returns a signed token; `header` adds to the usual one, None removes a member."""
    key_id, own = SIGNERS.get(algorithm, ("rsa", RSA_KEY))
    full = {"alg": algorithm, "kid": key_id, "typ": "JWT", **(header or {})}
    kept = {name: value for name, value in full.items() if value is not None}
    return compact(kept, claims, algorithm=algorithm, key=own if key is None else key, **more)
