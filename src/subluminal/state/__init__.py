"""The state of one run, shared by its shims through a memory-mapped file (shared-runs).

`run_state.RunState` is the door; the other modules are its parts. Nothing here decides: what a cell
means is known to `policy`, what a total or a status means to `core`.
Import the module you need; this package re-exports nothing, so that the shim loads little.
"""
