"""The C half of `signal`: the same names, without the 6 ms that its enums cost every shim."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as posix
else:
    try:
        import _signal as posix
    except ImportError:  # a private module: another interpreter may not have it
        import signal as posix

__all__ = ["SHIELDED", "posix", "restore_defaults"]

SHIELDED = (posix.SIGINT, posix.SIGTERM, posix.SIGHUP)
"""What clients send to the shim, or to its group. The warden outlives them to do its work."""


def ignored_now() -> tuple[int, ...]:
    """The shielded signals that whoever started us chose to ignore, as `nohup` does."""
    return tuple(number for number in SHIELDED if posix.getsignal(number) == posix.SIG_IGN)


def shield() -> None:
    """Makes this process deaf to the signals that are meant for the shim."""
    for number in (*SHIELDED, posix.SIGPIPE):
        posix.signal(number, posix.SIG_IGN)


def restore_defaults(keep_ignored: tuple[int, ...]) -> None:
    """Gives an upstream the signal actions it would have had without us.

    Ignored signals stay ignored across exec. SIGPIPE and SIGXFSZ are Python's own doing.
    """
    for number in (*SHIELDED, posix.SIGPIPE, posix.SIGXFSZ):
        if number not in keep_ignored:
            posix.signal(number, posix.SIG_DFL)
