"""Trust: who acts, how that is proven, and how far it is trusted.

`identity/` finds out who acts and where. `tokens`, `keys`, `proofs` and `levels` are pure: no I/O,
and the time is an argument. `home_key` has the key that signs for this home.
"""
