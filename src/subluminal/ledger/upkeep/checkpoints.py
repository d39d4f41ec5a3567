"""Signs the head of every chain, so that rewriting the ledger is noticed (provable-ledger).

Checkpoints are numbered, each contains the digest of the one before, and the home's key signs it.
A number is never used twice: a ledger that lost checkpoints continues after the last one in the
note (`note`), which then shows the loss. Early versions signed with HMAC and `ledger.key`.
"""

import hmac
import os
from hashlib import sha256
from typing import NamedTuple

import apsw

from subluminal.config.places import Places
from subluminal.errors import SubluminalError
from subluminal.ledger.upkeep.note import Noted, append_note, read_note
from subluminal.ledger.upkeep.state_files import read_state_file
from subluminal.trust.home_key import HomeKey

PURPOSE = "subluminal-ledger-checkpoint-v2"


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
    key_id: str | None
    """id of the home's key; None if an early version signed it"""

    def noted(self) -> Noted:
        """The line that notes it."""
        return Noted(self.id, self.digest, self.signature)


def early_key_path(places: Places) -> str:
    """The path of the key with which early versions signed."""
    return os.path.join(places.state, "ledger.key")


def load_early_key(places: Places) -> bytes | None:
    """The key with which early versions signed; None if there is none."""
    path = early_key_path(places)
    key = read_state_file(path, 33)
    if key is not None and len(key) != 32:
        raise SubluminalError(
            f"`{path}` is not a ledger key",
            hint="restore the file from a backup: it proves the oldest checkpoints",
        )
    return key


def digest_of(before: bytes, made: Checkpoint, heads: list[Head]) -> bytes:
    """The hash that a checkpoint signs: of the digest before it and every head changed since."""
    if made.key_id is None:
        digest = sha256(b"subluminal-checkpoint-v1\n" + before)
    else:
        digest = sha256(b"subluminal-checkpoint-v2\n" + before + made.key_id.encode() + b"\n")
    digest.update(f"{made.id}\n{made.created_at}\n{made.pos}\n".encode())
    for head in sorted(heads):
        digest.update(f"{head.shim_id}\0{head.n}\0{head.head.hex()}\n".encode())
    return digest.digest()


def early_signature(key: bytes, digest: bytes) -> bytes:
    """How early versions signed a checkpoint's digest."""
    return hmac.digest(key, digest, "sha256")


def write_checkpoint(
    connection: apsw.Connection, places: Places, key: HomeKey, created_at: int
) -> Checkpoint | None:
    """Signs the heads that changed since the last checkpoint; None if none did."""
    last = _note_last(connection, places)
    sql = "SELECT shim_id, last_n, head FROM shims WHERE head IS NOT anchored"
    heads = [Head(*row) for row in connection.execute(sql)]
    is_early = last is not None and last.is_early
    if not heads and not is_early:
        return None
    number, before = (1, b"") if last is None else (last.number + 1, last.digest)
    pos = next(connection.execute("SELECT sum(value) FROM counters WHERE name = 'events_total'"))[0]
    blank = Checkpoint(number, created_at, pos or 0, b"", b"", key.key_id)
    digest = digest_of(before, blank, heads)
    made = blank._replace(digest=digest, signature=key.sign(PURPOSE, digest))
    _insert(connection, made, heads)
    append_note(places, made.noted())
    return made


def last_checkpoint(connection: apsw.Connection) -> Checkpoint | None:
    """The newest checkpoint; None if there is none."""
    row = connection.execute("SELECT * FROM checkpoints ORDER BY id DESC LIMIT 1").fetchone()
    return None if row is None else Checkpoint(*row)


def _note_last(connection: apsw.Connection, places: Places) -> Noted | None:
    """Finds the last checkpoint, in the ledger or in the note, and notes it if a kill prevented it.

    The next one continues after it.
    """
    note, stored = read_note(places).last, last_checkpoint(connection)
    stored_id = 0 if stored is None else stored.id
    if note is not None and note.number > stored_id:
        # An early version noted first, and may have been killed before it wrote the checkpoint.
        is_unwritten = note.is_early and note.number == stored_id + 1
        if not is_unwritten:
            return note
    elif stored is not None and (note is None or note.number < stored_id):
        append_note(places, stored.noted())
    return None if stored is None else stored.noted()


def _insert(connection: apsw.Connection, made: Checkpoint, heads: list[Head]) -> None:
    # INVARIANT: on disk before it is noted, or a power failure would look like a deletion.
    connection.pragma("synchronous", "FULL")
    try:
        with connection:
            connection.execute("INSERT INTO checkpoints VALUES (?, ?, ?, ?, ?, ?)", made)
            connection.executemany(
                "INSERT INTO checkpoint_heads VALUES (?, ?, ?, ?)",
                [(made.id, *head) for head in heads],
            )
            connection.execute("UPDATE shims SET anchored = head WHERE head IS NOT anchored")
    finally:
        connection.pragma("synchronous", "NORMAL")
