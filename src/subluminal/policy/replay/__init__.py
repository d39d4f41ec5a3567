"""What-if replay: recorded calls decided again by another policy, on the recorded clocks. Pure.

Reading the record is the ledger's affair (`ledger.query.replaying`); here is what follows from it.
"""
