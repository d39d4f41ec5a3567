"""A passphrase in front of what only a person may do (local-is-not-trusted). Optional; one for each
home.

It raises the price for an agent with a shell, no more: whoever may write the home can remove the
file. docs/concepts/agents-with-a-shell.md says so.
"""

import hashlib
import hmac
import json
import os

from subluminal.core.controls.sealed import SealBroken, seal_key, unseal, write_sealed
from subluminal.errors import SubluminalError

_PURPOSE = "passphrase"
_COST = {"n": 1 << 15, "r": 8, "p": 1}
"""A tenth of a second and 32 MiB for each guess."""
_MAX_MEMORY = 1 << 27


def is_set(state_dir: str) -> bool:
    """Whether this home asks for one."""
    return os.path.lexists(_path(state_dir))


def set_passphrase(state_dir: str, passphrase: str) -> None:
    """Keeps what is needed to recognise it, not itself."""
    salt = os.urandom(16)
    kept = {"salt": salt.hex(), **_COST, "hash": _hash(passphrase, salt, **_COST).hex()}
    write_sealed(_path(state_dir), seal_key(state_dir), _PURPOSE, json.dumps(kept).encode())


def remove_passphrase(state_dir: str) -> None:
    """Asks for none any more."""
    os.unlink(_path(state_dir))


def matches(state_dir: str, passphrase: str) -> bool:
    """Whether it is the one. Raises where that cannot be told: nothing is then done."""
    try:
        kept = json.loads(unseal(_path(state_dir), seal_key(state_dir), _PURPOSE))
        salt, wanted = bytes.fromhex(kept["salt"]), bytes.fromhex(kept["hash"])
        given = _hash(passphrase, salt, n=kept["n"], r=kept["r"], p=kept["p"])
    except (OSError, SealBroken, ValueError, KeyError) as error:
        raise SubluminalError(
            f"`{_path(state_dir)}` cannot be believed ({type(error).__name__})",
            hint="it was edited, or another home wrote it; remove it to ask for none",
        ) from None
    return hmac.compare_digest(given, wanted)


def _hash(passphrase: str, salt: bytes, *, n: int, r: int, p: int) -> bytes:
    return hashlib.scrypt(
        passphrase.encode(), salt=salt, n=n, r=r, p=p, maxmem=_MAX_MEMORY, dklen=32
    )


def _path(state_dir: str) -> str:
    return os.path.join(state_dir, "passphrase")
