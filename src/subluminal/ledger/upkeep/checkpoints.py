"""Signs the head of every chain, so that rewriting the ledger is noticed (provable-ledger).

The signature is HMAC-SHA256 with a local key that only this user can read. Each checkpoint is also
noted in a file beside the key, so that deleting the newest ones from the ledger is noticed.
"""

import hmac
import os
from hashlib import sha256
from typing import NamedTuple

import apsw

from subluminal.config.places import Places, make_private_dir
from subluminal.errors import SubluminalError


class Head(NamedTuple):
    """The head of one shim's chain after event `n`."""

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
    """The path of the signing key."""
    return os.path.join(places.state, "ledger.key")


def anchor_path(places: Places) -> str:
    """The path of the file that notes checkpoints outside of the ledger."""
    return os.path.join(places.state, "ledger.checkpoints")


def load_key(places: Places, *, create: bool = False) -> bytes | None:
    """The signing key. Without `create`, None if there is no key yet."""
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
            f"`{path}` is not a ledger key",
            hint="restore the file from a backup, or remove it: ledgerd then creates a new key",
        )
    return key


def digest_of(before: bytes, number: int, created_at: int, pos: int, heads: list[Head]) -> bytes:
    """The hash that a checkpoint signs: of the previous digest and every head changed since."""
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
    """Signs the heads that changed since the last checkpoint; None if none did."""
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
    # Noted in the file first. If we die in between, the next checkpoint takes the same number.
    _note(anchor_path(places), made)
    with connection:
        connection.execute("INSERT INTO checkpoints VALUES (?, ?, ?, ?, ?)", made)
        connection.executemany(
            "INSERT INTO checkpoint_heads VALUES (?, ?, ?, ?)", [(number, *head) for head in heads]
        )
        connection.execute("UPDATE shims SET anchored = head WHERE head IS NOT anchored")
    return made


def last_checkpoint(connection: apsw.Connection) -> Checkpoint | None:
    """The newest checkpoint; None if there is none."""
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
    """The digests that are noted outside of the ledger, by checkpoint number."""
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
