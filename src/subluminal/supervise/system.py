"""System calls that Python offers only at a price: signals without `enum`, and prctl(2).

`_signal` is the C half of `signal`: the same names, without the 6 ms that its enums cost every
shim. `_ctypes` alone costs 0.7 ms, the `ctypes` package 5 ms more. Both private modules have the
public one as a fallback. Where prctl does not exist, its functions do nothing.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as posix
    from collections.abc import Callable

    Prctl = Callable[[int, int], int]
else:
    try:
        import _signal as posix
    except ImportError:  # an interpreter other than CPython
        import signal as posix

__all__ = [
    "SHIELDED",
    "become_subreaper",
    "die_with_parent",
    "ignored_now",
    "posix",
    "restore_defaults",
    "shield",
]

SHIELDED = (posix.SIGINT, posix.SIGTERM, posix.SIGHUP)
"""Signals that clients send to the shim or to its group. The warden ignores them to outlive it."""

_SET_PDEATHSIG = 1
_SET_CHILD_SUBREAPER = 36


def ignored_now() -> tuple[int, ...]:
    """The shielded signals that our parent set to ignored before it started us, as `nohup` does."""
    return tuple(number for number in SHIELDED if posix.getsignal(number) == posix.SIG_IGN)


def shield() -> None:
    """Makes this process ignore the signals that are meant for the shim."""
    for number in (*SHIELDED, posix.SIGPIPE):
        posix.signal(number, posix.SIG_IGN)


def restore_defaults(keep_ignored: tuple[int, ...]) -> None:
    """Gives the upstream the signal actions it would have had without us.

    Ignored signals stay ignored across exec. Python itself ignores SIGPIPE and SIGXFSZ.
    """
    for number in (*SHIELDED, posix.SIGPIPE, posix.SIGXFSZ):
        if number not in keep_ignored:
            posix.signal(number, posix.SIG_DFL)


def become_subreaper() -> bool:
    """Makes orphaned descendants children of this process. Returns False if the system cannot."""
    return _prctl(_SET_CHILD_SUBREAPER, 1)


def die_with_parent(signum: int, parent: int) -> None:
    """Asks for `signum` when the parent dies. Exits at once if the parent is already dead.

    The kernel watches the parent *thread*. The warden has only one, so its end is the warden's end.
    """
    _prctl(_SET_PDEATHSIG, signum)
    # If the parent died between the fork and this call, the signal will never come.
    if os.getppid() != parent:
        os._exit(0)


def _prctl(option: int, value: int) -> bool:
    return _call is not None and _call(option, value) == 0


def _find() -> "Prctl | None":
    if not sys.platform.startswith("linux"):
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


# Looked up once and before the fork, so that shim and warden share the memory of what it loads.
_call = _find()
