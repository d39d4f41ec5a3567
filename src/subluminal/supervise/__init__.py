"""Starts, watches and ends the upstream's process tree, whatever happens to the shim (no-orphans).

    client --- shim --- deputy --- warden --- upstream --- processes that the upstream starts
                 |                               |
                 +--------- stdin/out/err -------+

The shim forks the deputy before it imports anything else, and the deputy forks the warden. The
warden makes itself a subreaper, starts the upstream in a session of its own and waits. The
upstream's three standard pipes lead straight to the shim, so the warden is never in the data path.
Two more pipes connect shim and warden: orders go down, reports come up (`wire`). The deputy waits
for the case that the warden cannot do its work.

    who dies    who notices, and how                 what follows
    client      shim: end of its input               the shim orders `Stop`
    upstream    warden: SIGCHLD                      `exited` is reported; processes that the
                                                     upstream left behind live until `Stop`
    shim        warden: end of the order pipe, or    the warden ends the tree without grace, then
                the shim's pidfd                     runs `after_death` unless `Stop` was ordered
    warden      shim: the report pipe ends before    the upstream gets SIGKILL from the kernel; the
                `gone`                               shim, a subreaper too, kills the rest (`sweep`)
    deputy      warden: end of a pipe                the warden ends the tree without grace
    shim and    deputy: end of a pipe                the upstream gets SIGKILL from the kernel; the
    warden                                           deputy, a subreaper too, kills the rest
    shim and    warden                               as for the shim alone
    deputy
    all three   nobody                               the upstream gets SIGKILL from the kernel;
                                                     `sub doctor` finds the rest (`orphans`)

    who is stopped (SIGSTOP), then          what follows
    warden; the shim stops the tree         3 s after the grace the shim kills warden and tree
    warden; the shim dies                   the deputy lets it go on; 3 s later it kills the tree,
                                            however often somebody stops the warden again

Without Linux's calls (`system`) nobody adopts the upstream's orphans, and the kernel kills nothing.
Shim, deputy and warden then find the tree by process group and by a mark in its environment.

The shim imports this package before anything else (fast-start). It therefore imports only C
modules, `os` and `system`: no `typing`, no `enum`, no `signal` (which imports `enum`). `orphans` is
for `sub doctor` and `sub kill`, and only they import it. Nothing here knows about MCP, events or
settings.
"""

from subluminal.supervise.handle import WardenHandle
from subluminal.supervise.tree import SHIM_ID, sweep_descendants
from subluminal.supervise.wire import EXITED, FAILED, GONE, KILLED, SPAWNED, Report
from subluminal.system.adoption import become_subreaper

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
