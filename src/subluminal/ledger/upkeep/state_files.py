"""Reads the files that the ledger keeps under `state`, where somebody may have put a pipe."""

from subluminal.config.private_files import read_bounded
from subluminal.ledger.store.database import LedgerUnavailable


def read_state_file(path: str, most: int) -> bytes | None:
    """Returns the first `most` bytes of a file; None if there is no file."""
    try:
        return read_bounded(path, most)
    except FileNotFoundError:
        return None
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise LedgerUnavailable(
            f"cannot read `{path}`: {reason}",
            hint="restore it from a backup, or move it away: `sub ledger verify` then says what is "
            "missing",
        ) from None
