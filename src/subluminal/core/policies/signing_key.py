"""The key that bundles of Agent-SPM are signed with, read from its file."""

import os

from subluminal.errors import SubluminalError
from subluminal.secrets.private_files import read_private


def read_signing_key(path: str) -> bytes:
    """Returns the key in a file that only its owner can read. Raises SubluminalError.

    One line end at the end of the file does not belong to the key: editors and `echo` write it.
    """
    found = read_private(os.path.expanduser(path))
    if found is None:
        raise SubluminalError(
            f"there is no key file `{path}`",
            hint="make one with `umask 077; openssl rand -hex 32 > FILE`",
        )
    key = found.removesuffix(b"\n").removesuffix(b"\r")
    if not key:
        raise SubluminalError(f"the key file `{path}` is empty")
    return key
