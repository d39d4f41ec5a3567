"""Notices processes that died without a word, and has their runs closed as FAILED (shared-runs).

Whoever looks first does it: a look costs a listing, and loads nothing unless someone is missing.
"""

import os

from subluminal.config.places import Places


def close_what_died(places: Places) -> int:
    """Closes the runs that dead processes left open; returns how many ended."""
    directory = os.path.join(places.state, "processes")
    try:
        names = os.listdir(directory)
    except OSError:
        return 0
    if all(os.path.exists(f"/proc/{name}/stat") for name in names):
        return 0
    from subluminal.core.runs.abandoned import close_dead

    return close_dead(places)
