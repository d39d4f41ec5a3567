"""Versions of the Interface Pack: MAJOR.MINOR.PATCH (Pack 0.1)."""

from subluminal.contracts import PACK_VERSION

_MAJOR = int(PACK_VERSION.partition(".")[0])


def is_newer_major(version: str) -> bool:
    """Whether a version of the Pack has a higher MAJOR number than the one that we know."""
    major = version.partition(".")[0]
    return major.isdecimal() and len(major) < 10 and int(major) > _MAJOR
