"""Signs where every chain stands, so that the ledger cannot be rewritten from the start (provable-ledger).

The key is local: HMAC-SHA256 with a secret that only this user can read. Each checkpoint also goes
to a file beside the key, so that the newest ones cannot simply be deleted from the ledger.
"""

import hmac
import os
from hashlib import sha256
from typing import NamedTuple

import apsw

from subluminal.config.places import Places, make_private_dir
from subluminal.errors import SubluminalError


class Head(NamedTuple):
    """Where one shim's chain stood."""

    shim_id: str
    n: int
    head: bytes


class Checkpoint(NamedTuple):
    """A row of `checkpoints`."""

    id: int
    created_at: int
    pos: int
    digest: bytes
    signature: bytes


def key_path(places: Places) -> str:
    """Where the signing key is."""
    return os.path.join(places.state, "ledger.key")


def anchor_path(places: Places) -> str:
    """Where checkpoints are noted outside of the ledger."""
    return os.path.join(places.state, "ledger.checkpoints")


def load_key(places: Places, *, create: bool = False) -> bytes | None:
    """The signing key; None if there is none and it must not be created."""
    path = key_path(places)
    try:
        with open(path, "rb") as file:
            key = file.read()
    except FileNotFoundError:
        if not create:
            return None
        make_private_dir(places.state)
        key = os.urandom(32)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with open(handle, "wb") as file:
            file.write(key)
    if len(key) != 32:
        raise SubluminalError(
            f"`{path}` is no ledger key", hint="restore it, or remove it to begin with a new one"
        )
    return key


def digest_of(before: bytes, number: int, created_at: int, pos: int, heads: list[Head]) -> bytes:
    """What a checkpoint commits to: the one before it, and every chain that moved since."""
    digest = sha256(b"subluminal-checkpoint-v1\n" + before)
    digest.update(f"{number}\n{created_at}\n{pos}\n".encode())
    for head in sorted(heads):
        digest.update(f"{head.shim_id}\0{head.n}\0{head.head.hex()}\n".encode())
    return digest.digest()


def sign(key: bytes, digest: bytes) -> bytes:
    """The signature of a checkpoint's digest."""
    return hmac.digest(key, digest, "sha256")


def write_checkpoint(
    connection: apsw.Connection, places: Places, key: bytes, created_at: int
) -> Checkpoint | None:
    """Signs what moved since the last checkpoint; None if nothing did."""
    sql = "SELECT shim_id, last_n, head FROM shims WHERE head IS NOT anchored"
    heads = [Head(*row) for row in connection.execute(sql)]
    if not heads:
        return None
    last = last_checkpoint(connection)
    number = last.id + 1 if last else 1
    pos = next(connection.execute("SELECT sum(value) FROM counters WHERE name = 'events_total'"))[0]
    before = last.digest if last else b""
    digest = digest_of(before, number, created_at, pos, heads)
    made = Checkpoint(number, created_at, pos, digest, sign(key, digest))
    # Noted outside first: a checkpoint that only the file knows is retried under the same number.
    _note(anchor_path(places), made)
    with connection:
        connection.execute("INSERT INTO checkpoints VALUES (?, ?, ?, ?, ?)", made)
        connection.executemany(
            "INSERT INTO checkpoint_heads VALUES (?, ?, ?, ?)", [(number, *head) for head in heads]
        )
        connection.execute("UPDATE shims SET anchored = head WHERE head IS NOT anchored")
    return made


def last_checkpoint(connection: apsw.Connection) -> Checkpoint | None:
    """The newest checkpoint."""
    row = connection.execute("SELECT * FROM checkpoints ORDER BY id DESC LIMIT 1").fetchone()
    return None if row is None else Checkpoint(*row)


def _note(path: str, made: Checkpoint) -> None:
    line = f"{made.id} {made.digest.hex()} {made.signature.hex()}\n".encode()
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        os.write(handle, line)
    finally:
        os.close(handle)


def noted(places: Places) -> dict[int, set[str]]:
    """The digests noted outside of the ledger, by checkpoint number."""
    found: dict[int, set[str]] = {}
    try:
        with open(anchor_path(places), encoding="ascii", errors="replace") as file:
            for line in file:
                words = line.split()
                if len(words) == 3 and words[0].isdigit():
                    found.setdefault(int(words[0]), set()).add(words[1])
    except FileNotFoundError:
        pass
    return found
