"""Whether ledgerd's home and ledger are still the ones that it opened.

A home may be deleted, renamed or replaced by another at the same path. A ledgerd that stayed would
write where nobody reads, or into a home that is not its own.
"""

import os


class Belongings:
    """Remembers which files some paths named when this was created."""

    def __init__(self, *paths: str) -> None:
        self._known = {path: _identity(path) for path in paths}

    def are_ours(self) -> bool:
        """Whether every path still names the same file."""
        return all(_identity(path) == known for path, known in self._known.items())


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino
