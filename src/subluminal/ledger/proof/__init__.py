"""Proves the ledger (provable-ledger): finds any edit, deletion, insertion or reorder.

`verify_ledger` is the whole proof, and the other modules are its parts. It reads only. First it
proves the chains of events. Then it derives every row again from the events, with the same code as
ingest, and compares.
"""

from subluminal.ledger.proof.findings import Finding, Report
from subluminal.ledger.proof.verifying import verify_ledger

__all__ = ["Finding", "Report", "verify_ledger"]
