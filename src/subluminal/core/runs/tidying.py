"""Removes old files from the home: state, pins and approvals of old runs, handovers, caches.

ledgerd does this from time to time. It does not touch records: the ledger has its own retention.
"""

import os
import shutil
import time

from subluminal.config.places import Places
from subluminal.core.handovers import Handovers
from subluminal.core.runs.attendance import attendances, attending
from subluminal.journal.reading import journal_files
from subluminal.state.pruning import prune
from subluminal.state.storage import runs_dir

KEEP_MS = 30 * 86_400_000
"""Longer than any grant lives, and longer than a client is left suspended."""

_OF_RUNS = ("pins", "approvals")
"""Directories below the state directory with one entry per run, named like the run's state."""


def tidy(places: Places, keep_ms: int = KEEP_MS) -> None:
    """Removes files that were not used for `keep_ms`.

    A run that still has journals keeps its state: without it the run would count as one whose state
    was removed (`lost_state`).
    """
    prune(places.state, keep_ms, {file.run for file in journal_files(places.journal)})
    living = frozenset(_names(runs_dir(places.state)))
    for kind in _OF_RUNS:
        directory = os.path.join(places.state, kind)
        for name in _names(directory):
            if name not in living:
                _remove_if_old(os.path.join(directory, name), keep_ms)
    Handovers(places).tidy(
        {each.source.shim_id for pid in attending(places) for each in attendances(places, pid)}
    )
    for kind in ("policies", "attestations"):
        directory = os.path.join(places.cache, kind)
        for name in _names(directory):
            _remove_if_old(os.path.join(directory, name), keep_ms)


def _names(directory: str) -> list[str]:
    try:
        return os.listdir(directory)
    except FileNotFoundError:
        return []


def _remove_if_old(path: str, keep_ms: int) -> None:
    try:
        if time.time() * 1000 - os.lstat(path).st_mtime_ns / 1_000_000 <= keep_ms:
            return
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        else:
            os.unlink(path)
    except FileNotFoundError:
        return  # another process removed it
