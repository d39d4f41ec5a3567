"""What people see: tables, details and lines of events as text.

Screens are given their data. All text from tools and agents passes `output.shown` on its way to the
terminal (local-is-not-trusted).
"""
