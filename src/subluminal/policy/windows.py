"""Sliding windows in a cell of integers: exact up to 64 entries, in buckets above (shared-runs).

To know whether N entries are in a window, the times of the last N are enough. With a threshold
above 64, the window is divided into buckets of (index, count), of which 64 are kept. An entry
counts until its whole bucket has left the window: up to one bucket too long, never too short.

Windows are half-open: an entry at `t` counts while now is in [t, t + window). The end of a call is
timed before the lock is taken, so `t` may be slightly in the future: such an entry counts. An entry
a whole window in the future dates from before a restart of the machine: it does not count.
"""

from subluminal.contracts.counters import Cell
from subluminal.contracts.limits import MAX_WINDOW_ENTRIES


def record(cell: Cell, threshold: int, window_ms: int, now_ms: int) -> Cell:
    """Returns the cell with one more entry at `now_ms`."""
    if threshold > MAX_WINDOW_ENTRIES:
        return _record_bucket(cell, window_ms, now_ms)
    if not cell or now_ms - cell[-1] >= window_ms:
        return (now_ms,)
    kept = [at for at in cell if -window_ms < now_ms - at < window_ms]
    kept.append(now_ms)
    kept.sort()
    return tuple(kept[-threshold:])


def count(cell: Cell, threshold: int, window_ms: int, now_ms: int) -> int:
    """Returns the number of entries in the window. Beyond `threshold` the number may be too low."""
    if threshold > MAX_WINDOW_ENTRIES:
        pairs = _live_buckets(cell, window_ms, now_ms)
        return sum(number for _, number in pairs)
    live = 0
    for at in cell:
        if -window_ms < now_ms - at < window_ms:
            live += 1
    return live


def until_room(cell: Cell, threshold: int, window_ms: int, now_ms: int) -> int:
    """Returns the milliseconds until fewer than `threshold` entries are in a full window."""
    if threshold <= MAX_WINDOW_ENTRIES:
        return max(0, cell[-threshold] + window_ms - now_ms)
    newer, bucket = 0, width(window_ms)
    for index, number in reversed(_live_buckets(cell, window_ms, now_ms)):
        newer += number
        if newer >= threshold:
            return max(0, (index + MAX_WINDOW_ENTRIES) * bucket - now_ms)
    return 0


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
    """Returns the width of a bucket in milliseconds. A cell has a meaning for one width only."""
    # The window may start anywhere in the first of 64 buckets, so 63 of them must cover it.
    return -(-window_ms // (MAX_WINDOW_ENTRIES - 1))
