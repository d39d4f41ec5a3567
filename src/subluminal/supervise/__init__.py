"""The upstream's process tree: started, watched and ended, whatever happens to the shim (no-orphans).

The shim forks a warden, the warden starts the upstream, and the warden ends the whole tree when the
shim says so or dies. The data pipes run from shim to upstream directly: the warden is never in
the data path. This package knows no MCP, no events and no settings, and it is loaded before
anything else in the shim (fast-start), so it imports only C modules and `os`: no `typing`, no `enum`,
no `signal` (which pulls `enum`). `orphans` is for `sub doctor` and is loaded only by it.
"""

from subluminal.supervise.handle import SHIM_ID, Warden
from subluminal.supervise.prctl import become_subreaper
from subluminal.supervise.tree import sweep_descendants
from subluminal.supervise.wire import EXITED, FAILED, GONE, KILLED, SPAWNED, Report

__all__ = [
    "EXITED",
    "FAILED",
    "GONE",
    "KILLED",
    "SHIM_ID",
    "SPAWNED",
    "Report",
    "Warden",
    "become_subreaper",
    "sweep_descendants",
]
