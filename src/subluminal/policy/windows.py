"""Sliding windows in a cell of integers: exact up to 64 entries, bucketed above (shared-runs).

To know whether N things happened in a window, the times of the last N are enough. Above 64 the
window is cut into buckets of (index, count), 64 of them kept; an entry counts until its whole
bucket has left the window, so up to one bucket too long and never too short.

Windows are half-open: what happened at `t` counts while now is in [t, t + window). A call's end is
learnt by the clock of when it came, before the lock, so `t` may be a moment ahead: that counts too.
What is a whole window ahead was seen before the machine restarted, and does not.
"""

from subluminal.contracts.counters import Cell
from subluminal.contracts.limits import MAX_WINDOW_ENTRIES


def record(cell: Cell, threshold: int, window_ms: int, now_ms: int) -> Cell:
    """Returns the cell with one more entry, at `now_ms`."""
    if threshold > MAX_WINDOW_ENTRIES:
        return _record_bucket(cell, window_ms, now_ms)
    if not cell or now_ms - cell[-1] >= window_ms:
        return (now_ms,)
    kept = [at for at in cell if -window_ms < now_ms - at < window_ms]
    kept.append(now_ms)
    kept.sort()
    return tuple(kept[-threshold:])


def count(cell: Cell, threshold: int, window_ms: int, now_ms: int) -> int:
    """Returns how many entries are in the window; a count past `threshold` may stop there."""
    if threshold > MAX_WINDOW_ENTRIES:
        pairs = _live_buckets(cell, window_ms, now_ms)
        return sum(number for _, number in pairs)
    live = 0
    for at in cell:
        if -window_ms < now_ms - at < window_ms:
            live += 1
    return live


def _record_bucket(cell: Cell, window_ms: int, now_ms: int) -> Cell:
    current = now_ms // width(window_ms)
    counts = dict(_live_buckets(cell, window_ms, now_ms))
    counts[current] = counts.get(current, 0) + 1
    newest = sorted(counts.items())[-MAX_WINDOW_ENTRIES:]
    return tuple(number for pair in newest for number in pair)


def _live_buckets(cell: Cell, window_ms: int, now_ms: int) -> list[tuple[int, int]]:
    current = now_ms // width(window_ms)
    pairs = zip(cell[::2], cell[1::2], strict=True)
    return [pair for pair in pairs if abs(current - pair[0]) < MAX_WINDOW_ENTRIES]


def width(window_ms: int) -> int:
    """How long one bucket of a window is. Buckets of another width cannot be read as these."""
    # 64 buckets cover a window that starts anywhere in the first only if 63 are as long as it.
    return -(-window_ms // (MAX_WINDOW_ENTRIES - 1))
