"""Removes the state files of runs that have not been used for a long time."""

import os
from collections.abc import Collection

from subluminal import clock
from subluminal.state import layout, storage
from subluminal.state.errors import StateBusy, StateUnusable
from subluminal.state.lock import ThreadedRunLock
from subluminal.state.shims import ShimTable

_UNFINISHED_FOR_MS = 3_600_000
"""Age after which the creator of an unfinished file must be dead. Creation takes milliseconds."""


def prune(state_dir: str, older_than_ms: int, keep: Collection[str] = ()) -> int:
    """Removes the runs that have no living shim and were not used for `older_than_ms`.

    Files whose name is in `keep` stay, and so does a damaged file, so that a person can look at it.
    Returns the number of removed files.
    """
    try:
        names = os.listdir(storage.runs_dir(state_dir))
    except FileNotFoundError:
        return 0
    before_ms = clock.now().wall_ms - older_than_ms
    paths = [os.path.join(storage.runs_dir(state_dir), name) for name in names if name not in keep]
    return sum(_prune_one(path, before_ms) for path in paths)


def _prune_one(path: str, before_ms: int) -> bool:
    try:
        changed_ms = os.lstat(path).st_mtime_ns // 1_000_000
        if os.path.basename(path).startswith(storage.UNFINISHED):
            return _remove_unfinished(path, changed_ms, before_ms)
        # A store into the mapping updates the file's time, though some seconds late.
        if changed_ms > before_ms:
            return False
        file = storage.StateFile(path)
    except (FileNotFoundError, StateUnusable):
        return False
    try:
        return _remove_if_stale(file, before_ms)
    except (StateBusy, StateUnusable):
        return False
    finally:
        file.close()


def _remove_if_stale(file: storage.StateFile, before_ms: int) -> bool:
    # INVARIANT: checked and removed under the lock. A shim that opens the run marks it as used, and
    # checks that the file still exists, under the same lock.
    with ThreadedRunLock(file):
        if file.words[layout.W_LAST_USED_MS] > before_ms or ShimTable(file).live():
            return False
        os.unlink(file.path)
        return True


def _remove_unfinished(path: str, changed_ms: int, before_ms: int) -> bool:
    if changed_ms > min(before_ms, clock.now().wall_ms - _UNFINISHED_FOR_MS):
        return False
    os.unlink(path)
    return True
