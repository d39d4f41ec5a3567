"""Proves the checkpoints: signed with the local key, chained, none missing."""

from collections.abc import Iterator

import apsw

from subluminal.config.places import Places
from subluminal.ledger.proof.findings import Report
from subluminal.ledger.upkeep.checkpoints import Checkpoint, Head, digest_of, load_key, noted, sign


def check_checkpoints(
    connection: apsw.Connection, places: Places, report: Report
) -> Iterator[Head]:
    """Yields what every checkpoint signed, while finding those that do not hold."""
    key = load_key(places)
    outside = noted(places)
    before, number = b"", 0
    for row in connection.execute("SELECT * FROM checkpoints ORDER BY id"):
        made = Checkpoint(*row)
        number += 1
        heads = _heads(connection, made.id)
        message = _problem(made, number, before, heads, key)
        if message is None and made.digest.hex() not in outside.get(made.id, {made.digest.hex()}):
            message = "it is not the one that was noted beside the key"
        if message is not None:
            report.add("checkpoints", f"checkpoint {number}", message)
            return
        before = made.digest
        report.checkpoints += 1
        yield from heads
    if outside and max(outside) > number + 1:
        report.add("checkpoints", f"checkpoint {number + 1}", "it was noted, and it is gone")


def _heads(connection: apsw.Connection, number: int) -> list[Head]:
    sql = "SELECT shim_id, n, head FROM checkpoint_heads WHERE checkpoint = ?"
    return [Head(*row) for row in connection.execute(sql, (number,))]


def _problem(
    made: Checkpoint, number: int, before: bytes, heads: list[Head], key: bytes | None
) -> str | None:
    if made.id != number:
        return f"it is missing: checkpoint {made.id} stands in its place"
    if key is None:
        return "its key is gone, so its signature cannot be checked"
    if digest_of(before, made.id, made.created_at, made.pos, heads) != made.digest:
        return "what it commits to was changed"
    if sign(key, made.digest) != made.signature:
        return "its signature is not of this key"
    return None
