"""Which signals the warden ignores, and what the upstream gets."""

from subluminal.system.plain_signals import posix

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
