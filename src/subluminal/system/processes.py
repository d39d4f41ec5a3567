"""The table of processes: from /proc on Linux, from ps(1) elsewhere.

    process(pid)            one process, or None
    may_go_on(pid)          whether a process waits for a CPU or a disk only
    table()                 every visible process, by pid
    descendants(root)       every process below another one
    variables(name)         a variable's value in the processes of this user that have it
    command(pid)            the command line of one process
    commands()              the command lines of this user's processes
    born_at(entry)          when a process started, in seconds since 1970
    boot_id()               a name of this boot, where start times repeat after a boot

A process may be forked while a table is read: a caller that needs all of them repeats the call
until no new one appears.
"""

from subluminal.system import LINUX
from subluminal.system.process import Process

if LINUX:
    from subluminal.system import proc as source
else:
    from subluminal.system import ps as source  # type: ignore[no-redef]

__all__ = [
    "Process",
    "boot_id",
    "born_at",
    "command",
    "commands",
    "descendants",
    "may_go_on",
    "process",
    "table",
    "variables",
]

process = source.process
may_go_on = source.may_go_on
table = source.table
descendants = source.descendants
variables = source.variables
command = source.command
commands = source.commands
born_at = source.born_at
boot_id = source.boot_id
