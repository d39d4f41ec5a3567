"""Makes this Python look like one on another system: what only Linux has is missing, or told.

A test puts this directory on PYTHONPATH. Names that Python has on Linux alone are removed, so that
their use fails. Uses of /proc and of C functions are noted in the file that NOT_LINUX names.
"""

import fcntl
import os
import signal
import sys
import time
import traceback

MISSING = {
    os: (
        *("memfd_create", "MFD_CLOEXEC", "posix_fallocate", "pidfd_open", "O_PATH", "O_TMPFILE"),
        *("listxattr", "getxattr", "setxattr", "eventfd", "splice", "copy_file_range"),
        *("sched_getaffinity", "sched_setaffinity", "posix_fadvise", "waitid", "getresuid"),
    ),
    fcntl: ("F_SETPIPE_SZ", "F_GETPIPE_SZ", "F_OFD_SETLK", "F_OFD_GETLK"),
    signal: ("sigwaitinfo", "sigtimedwait"),
    time: ("CLOCK_BOOTTIME",),
}
FUNCTIONS = ("prctl", "renameat2")
_SYSTEM = os.sep + os.path.join("subluminal", "")
_stat = os.stat


def note(what: str) -> None:
    """Notes a use that our own code makes; other packages may know what system they are on."""
    frames = [f for f in traceback.extract_stack()[:-1] if f.filename != __file__]
    ours = [f for f in frames[-3:] if _SYSTEM in f.filename]
    if ours:
        with open(os.environ["NOT_LINUX"], "a") as file:
            file.write(f"{what} at {ours[-1].filename}:{ours[-1].lineno}\n")


def hook(event: str, args: tuple[object, ...]) -> None:
    """Takes Python's audit events."""
    if event in ("open", "os.listdir", "os.scandir") and str(args[0]).startswith("/proc"):
        note(f"{event} {args[0]}")
    elif event.startswith("ctypes.dlsym") and args[-1] in FUNCTIONS:
        note(f"{event} {args[-1]}")


def stat(path: object, *args: object, **options: object) -> object:
    """`os.stat` has no audit event, and `os.path.exists` uses it."""
    if isinstance(path, str) and path.startswith("/proc"):
        note(f"os.stat {path}")
    return _stat(path, *args, **options)  # type: ignore[call-overload]


if "NOT_LINUX" in os.environ:
    for module, names in MISSING.items():
        for name in names:
            if hasattr(module, name):
                delattr(module, name)
    os.stat = stat  # type: ignore[assignment]
    sys.addaudithook(hook)
