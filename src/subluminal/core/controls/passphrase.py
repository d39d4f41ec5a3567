"""The optional passphrase of a home, asked before acts that only a person may do.

It makes misuse harder for an agent with a shell, but does not prevent it: anyone who can write to
the home can remove the file. See docs/concepts/agents-with-a-shell.md (local-is-not-trusted).
"""

import hashlib
import hmac
import json
import os

from subluminal.core.controls.sealed import SealBroken, seal_key, unseal, write_sealed
from subluminal.errors import SubluminalError

_PURPOSE = "passphrase"
_COST = {"n": 1 << 15, "r": 8, "p": 1}
"""The cost of scrypt: a tenth of a second and 32 MiB for each guess."""
_MAX_MEMORY = 1 << 27


def is_set(state_dir: str) -> bool:
    """Returns True if this home asks for a passphrase."""
    return os.path.lexists(_path(state_dir))


def set_passphrase(state_dir: str, passphrase: str) -> None:
    """Stores a hash of the passphrase, never the passphrase itself."""
    salt = os.urandom(16)
    kept = {"salt": salt.hex(), **_COST, "hash": _hash(passphrase, salt, **_COST).hex()}
    write_sealed(_path(state_dir), seal_key(state_dir), _PURPOSE, json.dumps(kept).encode())


def remove_passphrase(state_dir: str) -> None:
    """Removes the passphrase of this home."""
    os.unlink(_path(state_dir))


def matches(state_dir: str, passphrase: str) -> bool:
    """Returns True if the passphrase is right. Raises SubluminalError if the file is not usable."""
    try:
        kept = json.loads(unseal(_path(state_dir), seal_key(state_dir), _PURPOSE))
        salt, wanted = bytes.fromhex(kept["salt"]), bytes.fromhex(kept["hash"])
        given = _hash(passphrase, salt, n=kept["n"], r=kept["r"], p=kept["p"])
    except (OSError, SealBroken, ValueError, KeyError) as error:
        raise SubluminalError(
            f"the passphrase file `{_path(state_dir)}` cannot be trusted ({type(error).__name__})",
            hint="it was edited, or another home wrote it; remove it to work without a passphrase",
        ) from None
    return hmac.compare_digest(given, wanted)


def _hash(passphrase: str, salt: bytes, *, n: int, r: int, p: int) -> bytes:
    return hashlib.scrypt(
        passphrase.encode(), salt=salt, n=n, r=r, p=p, maxmem=_MAX_MEMORY, dklen=32
    )


def _path(state_dir: str) -> str:
    return os.path.join(state_dir, "passphrase")
