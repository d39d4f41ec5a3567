"""The file that a person names with `-o`."""

import os
import stat
from collections.abc import Iterable

from subluminal.errors import SubluminalError
from subluminal.export.files import write_whole


def write_output(path: str, pieces: Iterable[bytes], mode: int) -> None:
    """Puts a file in its place as a whole: who reads it meanwhile sees the old or the new.

    A device, a pipe or a link is written to, never replaced: root has a `/dev/null` to lose.
    """
    try:
        if _is_replaceable(path):
            write_whole(path, pieces, mode)
        else:
            with open(path, "wb") as file:
                file.writelines(pieces)
    except OSError as error:
        raise cannot_write(path, error) from None


def cannot_write(path: str, error: OSError) -> SubluminalError:
    """What is told of a place that does not take it."""
    return SubluminalError(f"cannot write `{path}`: {(error.strerror or str(error)).lower()}")


def _is_replaceable(path: str) -> bool:
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except FileNotFoundError:
        return True
