"""Signals without `enum`: which of them the warden ignores, and what the upstream gets.

`_signal` is the C half of `signal`: the same names, without the 6 ms that its enums cost every
shim. The public module is the fallback.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as posix
else:
    try:
        import _signal as posix
    except ImportError:  # an interpreter other than CPython
        import signal as posix

__all__ = ["SHIELDED", "ignored_now", "posix", "restore_defaults", "shield"]

SHIELDED = (posix.SIGINT, posix.SIGTERM, posix.SIGHUP)
"""Signals that clients send to the shim or its group. Deputy and warden ignore them: they outlive
the shim."""


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
