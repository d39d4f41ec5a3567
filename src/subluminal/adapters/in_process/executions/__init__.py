"""Execution ledgers that outlive a process: one SQLite file, or a PostgreSQL server for a fleet.

Start with `open_executions`. `keeping` has what both engines share. An engine is loaded when it is
opened, so what is not used costs nothing.
"""

from subluminal.adapters.in_process.executions.keeping import (
    KEEP_DAYS,
    ExecutionsUnavailable,
    Holder,
    KeptExecutions,
    KeptRow,
)
from subluminal.adapters.in_process.executions.opening import existing_executions, open_executions

__all__ = [
    "KEEP_DAYS",
    "ExecutionsUnavailable",
    "Holder",
    "KeptExecutions",
    "KeptRow",
    "existing_executions",
    "open_executions",
]
