"""Opens the ledger of a home for writing, with what its migrations need of the home."""

import apsw

from subluminal.config.places import Places
from subluminal.ledger.store.database import open_writer
from subluminal.ledger.store.drops import PURPOSE
from subluminal.ledger.upkeep.note import read_note
from subluminal.trust.home_key import HomeKey


def open_ledger_writer(places: Places, key: HomeKey) -> apsw.Connection:
    """Opens the ledger for its one writer. Creates or migrates it first."""
    last = read_note(places).last
    is_first_time = last is None or last.is_early

    def sign(statement: bytes) -> bytes | None:
        # A ledger that this version signed before is not an early one: somebody put it back.
        return key.sign(PURPOSE, statement) if is_first_time else None

    return open_writer(places.ledger, sign)
