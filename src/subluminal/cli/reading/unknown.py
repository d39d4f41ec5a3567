"""Calls of unknown outcome: forwarded, and never ended."""

from subluminal.cli.reading.ledger import Row
from subluminal.contracts.vocabulary import Action
from subluminal.ledger.filter_fields import UNKNOWN


def told(row: Row) -> Row:
    """A row that says so where nobody knows how its call ended."""
    if row["status"] is None and row["decision"] == Action.ALLOW:
        return {**row, "status": UNKNOWN}
    return row
