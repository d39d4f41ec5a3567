"""What the operating system offers: Linux's own calls, each with a plain POSIX way beside it.

Linux's calls are used on Linux, unless SUB_PLAIN_POSIX=1 turns them off. All other systems, such as
macOS, get the plain way. No other package makes such a call, and a test keeps that.

    for                        on Linux               plain POSIX                       module
    escaped processes          subreaper (prctl)      a mark in their environment (ps)  adoption
    death of a parent          parent-death signal    pipes; a look once a second       adoption
    table of processes         /proc                  ps(1)                             processes
    start of a process         ticks since boot       second of its start (ps)          processes
    blocks of a file           posix_fallocate        its bytes are written again       files
    a file without a name      memfd_create           a temporary file, unlinked        files
    two files exchanged        renameat2              one replaces the other            files
    extended attributes        getxattr, setxattr     not copied                        files
    size of a pipe             F_SETPIPE_SZ           as the system chose               pipes
    a long path of a socket    /proc/self/fd          a short symbolic link             sockets
    who sent a signal          sigwaitinfo            whether we are in the foreground  signals
"""

import os
import sys

PLAIN_POSIX = "SUB_PLAIN_POSIX"
"""The variable that turns Linux's calls off; `config.env` documents it."""
LINUX = sys.platform.startswith("linux") and os.environ.get(PLAIN_POSIX) != "1"
"""True if Linux's own calls are used."""
