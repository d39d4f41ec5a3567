"""The home's key: P-256, in `$SUB_HOME/state/keys/home.pem`, made on first use (provable-ledger).

It signs what can be checked without this home: the ledger's checkpoints, drops and anchors. It also
signs tokens that prove an agent to this home (`home_tokens`). Needs `cryptography`, so import this
module only where a signature is made or checked, never on the path of a call. Any process of this
user can read the key, and so sign with it.
"""

import os
from hashlib import sha256

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

from subluminal.config.private_files import link_new, read_bounded, write_aside
from subluminal.errors import SubluminalError

_ECDSA = ec.ECDSA(hashes.SHA256())
_MAX_BYTES = 4_096
_READABLE_BY_OTHERS = 0o007


class HomeKeyUnusable(SubluminalError):
    """The home's key cannot be read or made."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(
            f"the key of this home, `{path}`, cannot be used: {reason}",
            hint="restore it from a backup; a new key cannot continue what the old one signed",
        )


class HomeKey:
    """The key of one home. A signature for one `purpose` is not valid for another."""

    def __init__(self, private: ec.EllipticCurvePrivateKey) -> None:
        self._private = private
        self.public = private.public_key().public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        """the public key: DER of its SubjectPublicKeyInfo"""
        self.key_id = key_id_of(self.public)

    def sign(self, purpose: str, data: bytes) -> bytes:
        """Signs data; returns DER."""
        return self._private.sign(_message(purpose, data), _ECDSA)

    def sign_token(self, signed: bytes) -> bytes:
        """Signs the two parts of a JWT; returns R and S, as ES256 has them (RFC 7518).

        A message with a purpose has a zero byte, which these parts cannot have.
        """
        if b"\0" in signed:
            raise ValueError("not the parts of a JWT")
        r, s = decode_dss_signature(self._private.sign(signed, _ECDSA))
        return r.to_bytes(32) + s.to_bytes(32)

    def has_signed(self, purpose: str, data: bytes, signature: bytes) -> bool:
        """Whether the signature is one of this key."""
        return is_signed(self.public, purpose, data, signature)


def key_path(state_dir: str) -> str:
    """Returns the path of the home's key."""
    return os.path.join(state_dir, "keys", "home.pem")


def home_key(state_dir: str) -> HomeKey:
    """Returns the home's key; makes it on first use. Raises HomeKeyUnusable."""
    path = key_path(state_dir)
    try:
        if not os.path.lexists(path):
            # Processes that race make several keys; the first link decides which one is used.
            link_new(write_aside(path, _made(), durable=True), path)
    except OSError as error:
        raise HomeKeyUnusable(path, (error.strerror or str(error)).lower()) from None
    return _read(path)


def existing_home_key(state_dir: str) -> HomeKey | None:
    """Returns the home's key, or None if there is none yet. Raises HomeKeyUnusable."""
    path = key_path(state_dir)
    return _read(path) if os.path.lexists(path) else None


def key_id_of(public: bytes) -> str:
    """Returns the id of a public key: the SHA-256 of its SubjectPublicKeyInfo, in hex."""
    return sha256(public).hexdigest()


def is_signed(public: bytes, purpose: str, data: bytes, signature: bytes) -> bool:
    """Whether the owner of a public key signed data for a purpose. False for a bad key."""
    try:
        key = serialization.load_der_public_key(public)
        if not isinstance(key, ec.EllipticCurvePublicKey):
            return False
        key.verify(signature, _message(purpose, data), _ECDSA)
    except (InvalidSignature, ValueError):
        return False
    return True


def _made() -> bytes:
    return ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def _read(path: str) -> HomeKey:
    try:
        if os.stat(path).st_mode & _READABLE_BY_OTHERS:
            raise HomeKeyUnusable(path, "other users may read it (`chmod 600` it)")
        key = serialization.load_pem_private_key(read_bounded(path, _MAX_BYTES), None)
    except OSError as error:
        raise HomeKeyUnusable(path, (error.strerror or str(error)).lower()) from None
    except (ValueError, TypeError):
        raise HomeKeyUnusable(path, "it is not a private key in PEM") from None
    if not isinstance(key, ec.EllipticCurvePrivateKey) or key.curve.name != "secp256r1":
        raise HomeKeyUnusable(path, "it is not a P-256 key")
    return HomeKey(key)


def _message(purpose: str, data: bytes) -> bytes:
    return purpose.encode() + b"\0" + data
