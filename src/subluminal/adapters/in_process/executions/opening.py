"""Opens the ledger that `[kernel] executions` names."""

import os

from subluminal.adapters.in_process.executions.keeping import ExecutionsUnavailable, KeptExecutions
from subluminal.config.places import Places
from subluminal.config.settings import POSTGRES_SCHEMES
from subluminal.errors import SubluminalError


def open_executions(setting: str, places: Places) -> KeptExecutions | None:
    """Opens the ledger of a setting; None for `off`.

    Raises ExecutionsUnavailable if it is out of reach, SubluminalError if there is no such ledger.
    """
    if setting == "off":
        return None
    if setting == "sqlite":
        from subluminal.adapters.in_process.executions.sqlite import SqliteExecutions

        return SqliteExecutions(places.executions)
    if setting.startswith(POSTGRES_SCHEMES):
        return _open_postgres(setting)
    # The setting is not repeated: a misspelt URL may contain a password.
    raise SubluminalError(
        "`[kernel] executions` names no ledger that exists",
        hint="write `sqlite`, `postgresql://HOST/DATABASE` or `off`",
    )


def existing_executions(setting: str, places: Places) -> KeptExecutions | None:
    """Opens the ledger of a setting as `open_executions` does, but creates no file for it."""
    if setting == "sqlite" and not os.path.lexists(places.executions):
        return None
    return open_executions(setting, places)


def _open_postgres(url: str) -> KeptExecutions:
    try:
        from subluminal.adapters.in_process.executions.postgres import PostgresExecutions
    except ImportError as error:
        raise ExecutionsUnavailable(
            f"executions in PostgreSQL need psycopg, which cannot be loaded: {error}",
            hint="run `pip install 'subluminal[postgres]'`",
        ) from None
    return PostgresExecutions(url)
