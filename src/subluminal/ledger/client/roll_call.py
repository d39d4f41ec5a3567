"""Closes, as FAILED, the runs of processes that died without ending them (shared-runs).

ledgerd does this while it runs. Commands do it too, because ledgerd may not be running.
"""

import os

from subluminal.config.places import Places
from subluminal.system.process import exists


def close_what_died(places: Places) -> int:
    """Closes the runs that dead processes left open; returns how many runs ended.

    Costs one directory listing, and imports nothing unless a process is missing.
    """
    directory = os.path.join(places.state, "processes")
    try:
        names = os.listdir(directory)
    except OSError:
        return 0
    # A host's file is `PID` or `PID-OWNER`.
    pids = [name.partition("-")[0] for name in names]
    if all(pid.isdecimal() and exists(int(pid)) for pid in pids):
        return 0
    from subluminal.core.runs.abandoned import close_dead

    return close_dead(places)
