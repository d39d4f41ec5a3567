"""Events read straight from the journals: those recorded so far, and those that are added.

Works without ledgerd and without the ledger's libraries.
"""

import heapq
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

from subluminal.config.places import Places, encode_name
from subluminal.errors import SubluminalError
from subluminal.journal.reading import (
    Follower,
    JournalFile,
    Lines,
    files_in,
    journal_files,
    lines_of,
)

Event = dict[str, Any]
ShimLines = Callable[[], Iterable[bytes]]
"""Returns the lines of one shim from the first on. Can be called again to read them again."""

_LIST_S = 0.5
"""Seconds between two looks for new journal files."""
_READ_BYTES = 65_536
"""Most bytes read from one file at once, unless a line is longer."""
_COARSE_NS = 2_000_000_000
"""How far a file's modification time may lie behind the clock: some file systems count seconds."""
_MAX_TORN = 8
"""Files that are kept open at once, because they end in a line that has no end yet."""


class Journals:
    """Follows every journal of a home, or of one run."""

    def __init__(self, root: str, since_ms: int, *, run: str | None = None) -> None:
        self._root = root
        self._since_ns = since_ms * 1_000_000 - _COARSE_NS
        self._run = run
        """directory name of the run to follow; None for all runs"""
        self._known: list[JournalFile] = []
        self._list_at = 0.0
        self._offsets: dict[str, int] = {}
        self._torn: dict[str, Follower] = {}
        """readers of files that end in an unfinished line; they need not search it again"""

    def history(self) -> Iterator[Event]:
        """Yields the events recorded so far, ordered by time. `news` continues after them."""
        by_shim: dict[tuple[str, str], list[JournalFile]] = {}
        for file in self._files():
            by_shim.setdefault((file.run, file.shim), []).append(file)
        shims = [self._events(files) for files in by_shim.values()]
        return heapq.merge(*shims, key=_moment)

    def news(self, *, look: bool = False) -> list[Event]:
        """Returns events added since the last time, ordered by time.

        New files are looked for every half second; `look` does it now.
        """
        if look:
            self._list_at = 0.0
        found: list[Event] = []
        for file in self._files():
            found += self._events([file])
        return sorted(found, key=_moment)

    def _files(self) -> list[JournalFile]:
        if time.monotonic() >= self._list_at:
            self._list_at = time.monotonic() + _LIST_S
            self._known = [file for file in journal_files(self._root) if self._is_wanted(file)]
        return self._known

    def _is_wanted(self, file: JournalFile) -> bool:
        if self._run not in (None, file.run):
            return False
        try:
            return os.stat(file.path).st_mtime_ns >= self._since_ns
        except FileNotFoundError:
            return False

    def _events(self, files: list[JournalFile]) -> Iterator[Event]:
        for file in files:
            while lines := self._next_lines(file.path):
                yield from filter(None, map(event_of, lines))

    def _next_lines(self, path: str) -> list[bytes]:
        """Returns the next lines of a file, and nothing at its end.

        The file is closed after each read: there may be more files than a process can open.
        """
        follower = self._torn.pop(path, None)
        offset = self._offsets.get(path, 0)
        if follower is None:
            try:
                if os.stat(path).st_size == offset:
                    return []
                follower = Follower(path, offset)
            except FileNotFoundError:
                return []  # removed in the meantime
        piece = follower.read(_READ_BYTES)
        if piece is None and len(self._torn) < _MAX_TORN:
            self._torn[path] = follower
            return []
        follower.close()
        if piece is None:
            return []
        self._offsets[path] = piece.next_offset
        # A line longer than any event was skipped. The empty line in its place says "read on".
        return piece.lines if isinstance(piece, Lines) else [b""]


def event_of(line: bytes) -> Event | None:
    """Decodes a line; None if it is damaged, which `sub ledger verify` reports."""
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return event if isinstance(event, dict) and _has_envelope(event) else None


def _has_envelope(event: Event) -> bool:
    source = event.get("source", {})
    if not isinstance(source, dict) or not isinstance(source.get("n", 0), int):
        return False
    return isinstance(event.get("ts"), str) and isinstance(event.get("type"), str)


def _moment(event: Event) -> tuple[str, int]:
    return str(event["ts"]), int(event.get("source", {}).get("n") or 0)


def find_journals(places: Places, name: str) -> str:
    """Returns the journal directory of the run with this id, or with an id that ends in it."""
    from subluminal.core.runs.names import journal_dir

    exact = journal_dir(places, name)
    if os.path.isdir(exact):
        return exact
    found = [each for each in _listed(places.journal) if each.endswith(encode_name(name))]
    if len(found) == 1:
        return os.path.join(places.journal, found[0])
    if found:
        from subluminal.ledger.client.finding import several

        raise several(name, sorted(found))
    raise SubluminalError(
        f"there is no run `{name}`", hint=f"the journals in `{places.journal}` do not have it"
    )


def _listed(directory: str) -> list[str]:
    try:
        return os.listdir(directory)
    except FileNotFoundError:
        return []


def lines_by_shim(directory: str) -> list[ShimLines]:
    """Returns one reader for each shim of the run whose journals are in this directory."""
    by_shim: dict[str, list[JournalFile]] = {}
    for file in sorted(files_in(directory, "")):
        by_shim.setdefault(file.shim, []).append(file)
    return [partial(lines_of, files) for _, files in sorted(by_shim.items())]
