"""What a process may ask of the kernel about its family: prctl(2) and pidfd_open(2).

Without Linux's calls, each of these functions does nothing and says so. `_ctypes` alone costs
0.7 ms, the `ctypes` package 5 ms more; the public package is the fallback.
"""

import os

from subluminal.system import LINUX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Prctl = Callable[[int, int], int]

_SET_PDEATHSIG = 1
_SET_CHILD_SUBREAPER = 36
_COMM = "/proc/self/comm"


def become_subreaper() -> bool:
    """Makes orphaned descendants children of this process. Returns False if the system cannot."""
    return _prctl(_SET_CHILD_SUBREAPER, 1)


def signal_at_parents_death(signum: int) -> bool:
    """Asks the kernel for a signal when the parent dies. Returns False if the system cannot.

    The kernel watches the parent *thread*, and forgets the request at the next fork.
    """
    return _prctl(_SET_PDEATHSIG, signum)


def die_with_parent(signum: int, parent: int) -> None:
    """Asks for `signum` when the parent dies. Exits at once if the parent is already dead."""
    signal_at_parents_death(signum)
    # If the parent died between the fork and this call, the signal will never come.
    if os.getppid() != parent:
        os._exit(0)


def maybe_watch(pid: int) -> int | None:
    """Returns a descriptor that becomes readable when the process dies; None if not supported."""
    if not LINUX:
        return None
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None


def set_name(name: bytes) -> None:
    """Sets the name of this process in `ps`: at most 15 bytes, and only on Linux."""
    if not LINUX:
        return
    try:
        fd = os.open(_COMM, os.O_WRONLY)
    except OSError:
        return
    os.write(fd, name)
    os.close(fd)


def _prctl(option: int, value: int) -> bool:
    return _call is not None and _call(option, value) == 0


def _find() -> "Prctl | None":
    if not LINUX:
        return None
    try:
        import _ctypes

        # None means the running program; typeshed does not allow it.
        address = _ctypes.dlsym(_ctypes.dlopen(None, 0), "prctl")  # type: ignore[arg-type]
        call_function = _ctypes.call_function
    except OSError:
        return None  # a libc without prctl
    except (ImportError, AttributeError, TypeError):
        return _find_by_ctypes()
    return lambda option, value: call_function(address, (option, value, 0, 0, 0))


def _find_by_ctypes() -> "Prctl | None":
    """Finds prctl by the public module, for an interpreter whose `_ctypes` is different."""
    try:
        import ctypes

        prctl = ctypes.CDLL(None).prctl
    except (ImportError, AttributeError, OSError):
        return None
    return lambda option, value: int(prctl(option, value, 0, 0, 0))


# Looked up once and before the fork, so that shim, deputy and warden share what it loads.
_call = _find()
