"""Swaps two files in one step (Linux), so that what was replaced can still be looked at.

Between "is it still what I read?" and "replace it" another program may write. After a swap its
bytes are in our hands, and can be swapped back.
"""

import ctypes
import os

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2


def exchange(one: str, other: str) -> bool:
    """Swaps two paths; False where the system or the file system cannot."""
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        return False
    done = rename(
        _AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), ctypes.c_uint(_RENAME_EXCHANGE)
    )
    return bool(done == 0)
