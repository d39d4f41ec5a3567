"""What-if replay: decides recorded calls again by another policy, the candidate. Pure.

Calls are decided in their recorded order, with the recorded clocks, ends and approvals. Reading the
record is the ledger's task (`ledger.query.replaying`).
"""
