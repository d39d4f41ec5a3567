"""Starts, watches and ends the upstream's process tree, whatever happens to the shim (no-orphans).

    client --- shim --- warden --- upstream --- processes that the upstream starts
                 |                    |
                 +--- stdin/out/err --+

The shim forks the warden before it imports anything else. The warden makes itself a subreaper,
starts the upstream in a session of its own and waits. The upstream's three standard pipes lead
straight to the shim, so the warden is never in the data path. Two more pipes connect shim and
warden: orders go down, reports come up (`wire`).

    who dies    who notices, and how                 what follows
    client      shim: end of its input               the shim orders `Stop`
    upstream    warden: SIGCHLD                      `exited` is reported; processes that the
                                                     upstream left behind live until `Stop`
    shim        warden: end of the order pipe, or    the warden ends the tree without grace, then
                the shim's pidfd                     runs `after_death` unless `Stop` was ordered
    warden      shim: the report pipe ends before    the upstream gets SIGKILL from the kernel; the
                `gone`                               shim, a subreaper too, kills the rest
                                                     (`sweep_descendants`)
    shim and    nobody                               the upstream gets SIGKILL from the kernel;
    warden                                           `sub doctor` finds the rest (`orphans`)

The shim imports this package before anything else (fast-start). It therefore imports only C
modules and `os`: no `typing`, no `enum`, no `signal` (which imports `enum`). `orphans` is for
`sub doctor` and `sub kill`, and only they import it. Nothing here knows about MCP, events or
settings.
"""

from subluminal.supervise.handle import SHIM_ID, WardenHandle
from subluminal.supervise.system import become_subreaper
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
    "WardenHandle",
    "become_subreaper",
    "sweep_descendants",
]
