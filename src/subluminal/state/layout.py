"""The place of each field in a state file. Only numbers: the modules that use a field explain it.

The unit is a word: 8 bytes, aligned, in the machine's own byte order. A store of one word is the
only store that a kill cannot interrupt. VERSION rises with every change, unless it only gives a
name to words that were zero so far, and zero means what older files mean.

    header | shims | bucket heads and stamps | slots | spill        (4 KiB aligned; 12 MiB, sparse)

Everything before the slots has disk blocks from the start (124 KiB). Slots and spill blocks get
theirs when they are first used.
"""

from typing import NamedTuple

from subluminal.contracts.counters import PAIR_INTS, WINDOW_INTS
from subluminal.contracts.limits import MAX_COUNTERS, MAX_RECENT_KEYS

MAGIC = int.from_bytes(b"SUBSTATE", "little")
VERSION = 1

WORD_BYTES = 8
PAGE_WORDS = 512

MAX_WINDOWS = 1_024
"""Error and latency windows per run: one per rule and tool, enough for 16 rules on 64 tools."""

# Words of the header. Words without a name are zero.
W_MAGIC = 0
W_VERSION = 1
W_LAST_USED_MS = 2
W_WANTED = 3
W_SEQ = 8
W_STARTED_MONO_MS = 9
W_STARTED_WALL_MS = 10
W_ENDED = 11
W_FAILURE = 12
W_TERMINATED = 13
W_INCARNATION = 14
W_TOTALS = 16
W_TAINT_MARKS = 22
W_WORKED = 24
W_LOST = 25
W_REASON = 26
W_SERVER_FAILURE = 27
W_TAINT = 28
W_TAINT_SOURCES = 29
W_TABLES = 32
TABLE_WORDS = 4
W_TERMINATION = 128
TERMINATION_BYTES = 1_024

# Texts of `latch`, after the reason for the termination.
REASON_TEXT = W_TERMINATION + TERMINATION_BYTES // WORD_BYTES
REASON_BYTES = 512
SERVER_FAILURE_TEXT = REASON_TEXT + REASON_BYTES // WORD_BYTES
SERVER_FAILURE_BYTES = 512
TAINT_SOURCES = SERVER_FAILURE_TEXT + SERVER_FAILURE_BYTES // WORD_BYTES
TAINT_SOURCE_BYTES = 480
"""Two texts: why the run is TRUSTED, and why it is UNTRUSTED."""

HEADER_WORDS = PAGE_WORDS

MAX_SHIMS = 256
SHIM_ID_BYTES = 104
SHIM_PIDS = HEADER_WORDS
SHIM_STARTS = SHIM_PIDS + MAX_SHIMS
SHIM_IDS = SHIM_STARTS + MAX_SHIMS
SHIMS_END = SHIM_IDS + MAX_SHIMS * SHIM_ID_BYTES // WORD_BYTES


class Shape(NamedTuple):
    """The size of one table of cells."""

    key_bytes: int
    capacity: int
    buckets: int
    """number of buckets: a power of two, at most 65,536, chosen by two bytes of the key"""
    inline_ints: int
    """most integers of a cell that is stored in its slot; a longer one is in the spill block"""
    max_ints: int
    evicts: bool
    """True if a full table drops the least recently written cell; otherwise it refuses new keys"""

    @property
    def slot_words(self) -> int:
        """Size of a slot in words: commit, next, key and two buffers."""
        return 2 + self.key_bytes // WORD_BYTES + 2 * self.inline_ints

    @property
    def spill_words(self) -> int:
        """Size of a spill block in words: two buffers of the longest cell; 0 if slots suffice."""
        return 2 * self.max_ints if self.max_ints > self.inline_ints else 0


class Place(NamedTuple):
    """The place of one table. All numbers are word numbers in the file."""

    shape: Shape
    used: int
    """counter of the slots handed out"""
    backed: int
    """counter of the slots that have disk blocks"""
    clock: int
    """counter of writes, for the stamps (`eviction`)"""
    heads: int
    stamps: int
    slots: int
    spill: int


def place_tables(shapes: tuple[Shape, ...], start: int) -> tuple[tuple[Place, ...], int, int]:
    """Lays out tables from word `start` on.

    Returns their places, the end of the words that always have disk blocks, and the file's end.
    """
    heads = start
    marks = []
    for shape in shapes:
        stamps = heads + shape.buckets
        marks.append((heads, stamps))
        heads = stamps + (shape.capacity if shape.evicts else 0)
    always = at = _page_up(heads)
    places = []
    for number, (shape, (head, stamps)) in enumerate(zip(shapes, marks, strict=True)):
        spill = _page_up(at + shape.capacity * shape.slot_words)
        words = W_TABLES + number * TABLE_WORDS
        places.append(Place(shape, words, words + 1, words + 2, head, stamps, at, spill))
        at = _page_up(spill + shape.capacity * shape.spill_words)
    return tuple(places), always, at


def _page_up(words: int) -> int:
    return -(-words // PAGE_WORDS) * PAGE_WORDS


# The slot of a pair has 64 bytes, one cache line; the others have 256 bytes. Their 13 or 14
# integers hold every dedupe cell, and the windows of usual thresholds.
PAIR = Shape(16, MAX_COUNTERS, 2_048, PAIR_INTS, PAIR_INTS, evicts=False)
WINDOW = Shape(16, MAX_WINDOWS, 1_024, 14, WINDOW_INTS, evicts=False)
RECENT = Shape(32, MAX_RECENT_KEYS, 4_096, 13, WINDOW_INTS, evicts=True)

TABLES, ALWAYS_BACKED_WORDS, FILE_WORDS = place_tables((PAIR, WINDOW, RECENT), SHIMS_END)
"""Places of the tables, in the order of `CellKind`."""

SHIM_EVENTS = ALWAYS_BACKED_WORDS - MAX_SHIMS
"""One word per shim, in room that the first layout left free before the slots: processes of earlier
versions share the file, and leave these words alone. A test keeps the tables out of them."""
EVENTS_BITS = 40
"""Lower bits of such a word: the number of events. The upper ones tell whose number it is."""
