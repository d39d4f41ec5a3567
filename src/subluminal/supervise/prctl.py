"""The two Linux calls that tie a process tree together; elsewhere they say no, and nothing breaks.

`_ctypes` alone costs 0.7 ms, the `ctypes` package 5 ms more; it is the fallback.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Prctl = Callable[[int, int], int]

_SET_PDEATHSIG = 1
_SET_CHILD_SUBREAPER = 36


def become_subreaper() -> bool:
    """Makes orphaned descendants children of this process; False where the system cannot."""
    return _prctl(_SET_CHILD_SUBREAPER, 1)


def resign_as_subreaper() -> bool:
    """Undoes `become_subreaper`; what was adopted stays."""
    return _prctl(_SET_CHILD_SUBREAPER, 0)


def die_with_parent(signum: int, parent: int) -> None:
    """Asks for `signum` when the parent dies; exits at once when it is dead already.

    The kernel means the parent *thread*. The warden has one thread, so here it is the process.
    """
    _prctl(_SET_PDEATHSIG, signum)
    # The parent may have died between fork and the call: then no signal will ever come.
    if os.getppid() != parent:
        os._exit(0)


def _prctl(option: int, value: int) -> bool:
    return _call is not None and _call(option, value) == 0


def _find() -> "Prctl | None":
    if not sys.platform.startswith("linux"):
        return None
    try:
        import _ctypes

        # None is the running program, which typeshed does not know.
        address = _ctypes.dlsym(_ctypes.dlopen(None, 0), "prctl")  # type: ignore[arg-type]
        call_function = _ctypes.call_function
    except OSError:
        return None  # a libc without prctl
    except (ImportError, AttributeError, TypeError):
        return _find_by_ctypes()
    return lambda option, value: call_function(address, (option, value, 0, 0, 0))


def _find_by_ctypes() -> "Prctl | None":
    """The public road, for an interpreter whose `_ctypes` looks different."""
    try:
        import ctypes

        prctl = ctypes.CDLL(None).prctl
    except (ImportError, AttributeError, OSError):
        return None
    return lambda option, value: int(prctl(option, value, 0, 0, 0))


# Looked up once, and before the fork: what is loaded here is shared by shim and warden.
_call = _find()
