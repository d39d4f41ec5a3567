"""Proves the checkpoints: numbered without a gap, chained, signed, and the ones in the note.

The newest signature covers all checkpoints before it, because each contains the digest of the one
before. So an older signature is only compared with its copy in the note.
"""

from collections.abc import Iterable, Iterator

import apsw
from msgspec import Struct

from subluminal.config.places import Places
from subluminal.ledger.proof.findings import Report
from subluminal.ledger.upkeep.anchors import Anchor
from subluminal.ledger.upkeep.checkpoints import (
    PURPOSE,
    Checkpoint,
    Head,
    digest_of,
    early_signature,
    load_early_key,
)
from subluminal.ledger.upkeep.note import Note, read_note
from subluminal.trust.home_key import HomeKey, existing_home_key

_TABLE = "checkpoints"


class Keys(Struct):
    """What signatures are checked with."""

    home: HomeKey | None
    early: bytes | None


def load_keys(places: Places) -> Keys:
    """The keys of a home, as far as they exist."""
    return Keys(existing_home_key(places.state), load_early_key(places))


def check_checkpoints(
    connection: apsw.Connection, places: Places, early_note: Note, keys: Keys, report: Report
) -> Iterator[Head]:
    """Yields the heads that checkpoints signed. Reports the first checkpoint that is wrong.

    `early_note` is the note as it was before the ledger was read: ledgerd may go on signing.
    """
    note = read_note(places)
    if note.problem is not None:
        place, message = note.problem
        report.add("note", f"line {place} of `ledger.checkpoints`", message)
    last = 0
    before: Checkpoint | None = None
    newest = next(connection.execute("SELECT max(id) FROM checkpoints"))[0]
    for row in connection.execute("SELECT * FROM checkpoints ORDER BY id"):
        made = Checkpoint(*row)
        if made.id != last + 1:
            message = f"it is missing: checkpoint {made.id} is in its place"
            report.add(_TABLE, f"checkpoint {last + 1}", message)
            if made.id - 1 not in note.lines:
                return
        heads = _heads(connection, made.id)
        problem = _problem(made, _digest_before(made, before, note), heads, note)
        if problem is None and not (made.id < newest and _is_as_noted(made, note)):
            problem = _signature_problem(made, keys)
        if problem is None and before is not None and before.key_id and made.key_id is None:
            problem = "an early version signed it, after a newer one"
        if problem is not None:
            report.add(_TABLE, f"checkpoint {made.id}", problem)
            return
        last, before = made.id, made
        report.checkpoints += 1
        yield from heads
    _compare_ends(last, early_note, note, report)


def check_anchors(
    connection: apsw.Connection, anchors: Iterable[Anchor], keys: Keys, report: Report
) -> None:
    """Holds the ledger to anchors: it must contain each, under the key that signed it."""
    for anchor in anchors:
        problem = _anchor_problem(connection, anchor, keys)
        report.anchors += 1
        if problem is not None:
            report.add("anchor", f"checkpoint {anchor.checkpoint}", problem)


def sealed_since(connection: apsw.Connection) -> int | None:
    """When a version that seals journals first signed this ledger, in milliseconds."""
    sql = "SELECT min(created_at) FROM checkpoints WHERE key_id IS NOT NULL"
    found = next(connection.execute(sql))[0]
    return None if found is None else int(found)


def _heads(connection: apsw.Connection, number: int) -> list[Head]:
    sql = "SELECT shim_id, n, head FROM checkpoint_heads WHERE checkpoint = ?"
    return [Head(*row) for row in connection.execute(sql, (number,))]


def _digest_before(made: Checkpoint, before: Checkpoint | None, note: Note) -> bytes:
    if before is not None and before.id == made.id - 1:
        return before.digest
    noted = note.lines.get(made.id - 1)
    return b"" if noted is None else noted.digest


def _problem(made: Checkpoint, before: bytes, heads: list[Head], note: Note) -> str | None:
    if digest_of(before, made, heads) != made.digest:
        return "its contents were changed"
    noted = note.lines.get(made.id)
    if noted is not None and noted.digest != made.digest:
        return "it is not the one in the file beside the key"
    return None


def _is_as_noted(made: Checkpoint, note: Note) -> bool:
    return note.lines.get(made.id) == made.noted()


def _signature_problem(made: Checkpoint, keys: Keys) -> str | None:
    if made.key_id is None:
        if keys.early is None:
            return "the key is gone, so its signature cannot be checked"
        is_ours = early_signature(keys.early, made.digest) == made.signature
    else:
        if keys.home is None:
            return "the key is gone, so its signature cannot be checked"
        is_ours = made.key_id == keys.home.key_id and keys.home.has_signed(
            PURPOSE, made.digest, made.signature
        )
    return None if is_ours else "its signature was not made with this key"


def _compare_ends(last: int, earlier: Note, later: Note, report: Report) -> None:
    """Reports a ledger that is behind the earlier note, or too far ahead of the later one."""
    noted = earlier.last
    # An early version noted first, and may have been killed before it wrote the checkpoint.
    allowed = last + 1 if noted is not None and noted.is_early else last
    if noted is not None and noted.number > allowed:
        message = "it is in the file beside the key, but gone from the ledger"
        report.add(_TABLE, f"checkpoint {last + 1}", message)
    end = 0 if later.last is None else later.last.number
    if end < last - 1:
        message = f"it ends with checkpoint {end}; the ledger has {last}, so lines were removed"
        report.add("note", "`ledger.checkpoints`", message)


def _anchor_problem(connection: apsw.Connection, anchor: Anchor, keys: Keys) -> str | None:
    if not anchor.is_genuine():
        return "the anchor was changed: its signature does not match"
    if keys.home is None:
        return "this home has no key, so it is not the home of the anchor, or its key is gone"
    if anchor.home != keys.home.key_id:
        return (
            f"the anchor is of another home: it was signed with key `{anchor.home[:16]}`, "
            f"and this home has key `{keys.home.key_id[:16]}`"
        )
    return _not_contained(connection, anchor)


def _not_contained(connection: apsw.Connection, anchor: Anchor) -> str | None:
    sql = "SELECT lower(hex(digest)) FROM checkpoints WHERE id = ?"
    row = connection.execute(sql, (anchor.checkpoint,)).fetchone()
    if row is None:
        last = next(connection.execute("SELECT ifnull(max(id), 0) FROM checkpoints"))[0]
        if last < anchor.checkpoint:
            return f"the ledger ends with checkpoint {last}: it was rewound, or made anew"
        return "the ledger no longer has it"
    if row[0] != anchor.digest:
        return "the ledger has another checkpoint of this number: it was rewritten"
    return None
