"""Proves the ledger (provable-ledger): finds any edit, deletion, insertion or reorder, and names the first.

Reads only. `verify_ledger` is the whole proof; the other modules are its parts.
"""

from subluminal.ledger.proof.findings import Finding, Report
from subluminal.ledger.proof.verifying import verify_ledger

__all__ = ["Finding", "Report", "verify_ledger"]
