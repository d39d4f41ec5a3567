"""Checks for the libraries of the ledger, which are an extra."""

from importlib.util import find_spec

from subluminal.errors import SubluminalError

_LIBRARIES = ("apsw", "starlette", "uvicorn")


def need_daemon_extra() -> None:
    """Raises SubluminalError if the ledger's libraries are not installed."""
    missing = [name for name in _LIBRARIES if find_spec(name) is None]
    if missing:
        raise SubluminalError(
            f"the ledger needs {', '.join(f'`{name}`' for name in missing)}",
            hint="install `subluminal[daemon]`",
        )
