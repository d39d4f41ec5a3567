"""Policy, pure: text -> bundle -> snapshot -> evaluation (Pack section 2; rule-evaluation, linear-patterns, policy-layers).

No I/O, no clock, no logging: text, time and counters are arguments. `rules/` has one file a kind.
Import the module you need: the shim must not pay for the YAML loader.
"""
