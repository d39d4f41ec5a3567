"""Other guards for Python functions, with the same rules. Each module has `caller(rules, home)`.

A caller makes one call that is allowed, with a title of its own.
"""
