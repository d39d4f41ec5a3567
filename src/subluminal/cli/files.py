"""Files that a person names on the command line: `-` for stdin, and `-o FILE`."""

import os
import stat
import sys
from collections.abc import Iterable

from subluminal.contracts.limits import MAX_BUNDLE_BYTES
from subluminal.errors import SubluminalError
from subluminal.operator import policies
from subluminal.operator.policies import Policy
from subluminal.policy.terms import Terms

STDIN = "-"


def read_file(path: str, most: int = MAX_BUNDLE_BYTES) -> bytes:
    """Reads a file, or stdin for `-`; at most one byte more than it may have."""
    if path != STDIN:
        return policies.read_file(path, most)
    try:
        return sys.stdin.buffer.read(most + 1)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise SubluminalError(f"cannot read stdin: {reason}") from None


def display_name(path: str) -> str:
    """Returns the name of a file in messages."""
    return "<stdin>" if path == STDIN else path


def load_policy(path: str, terms: Terms) -> Policy:
    """Loads and compiles a bundle, or loads a snapshot. Raises InvalidInput or SubluminalError."""
    return policies.parse_policy(read_file(path), display_name(path), terms)


def write_output(path: str, pieces: Iterable[bytes], mode: int) -> None:
    """Replaces a file as a whole: a reader sees either the old content or the new.

    A device, pipe or link is written to, never replaced: root must not lose `/dev/null`.
    """
    from subluminal.export.files import write_whole

    try:
        if _is_replaceable(path):
            write_whole(path, pieces, mode)
        else:
            with open(path, "wb") as file:
                file.writelines(pieces)
    except OSError as error:
        raise cannot_write(path, error) from None


def cannot_write(path: str, error: OSError) -> SubluminalError:
    """Returns the error for a file or directory that cannot be written."""
    return SubluminalError(f"cannot write `{path}`: {(error.strerror or str(error)).lower()}")


def _is_replaceable(path: str) -> bool:
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except FileNotFoundError:
        return True
