"""Calls of unknown outcome: forwarded, and never ended."""

from subluminal.contracts.vocabulary import Action
from subluminal.ledger.client.ledger import Row
from subluminal.ledger.filter.fields import UNKNOWN


def told(row: Row) -> Row:
    """A row that says so where nobody knows how its call ended."""
    if row["status"] is None and row["decision"] == Action.ALLOW:
        return {**row, "status": UNKNOWN}
    return row
