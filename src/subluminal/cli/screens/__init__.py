"""What people see: tables, details and timelines as text. Knows no ledger and asks nobody.

Everything that came from tools and agents passes `output.shown` on its way (local-is-not-trusted). Standard library
only: commands print before anything heavier could load.
"""
