"""Events straight from the journals: what was recorded, in order of time, and what comes next."""

import heapq
import json
import os
import time
from collections.abc import Iterator
from typing import Any

from subluminal.journal.reading import Follower, JournalFile, Lines, journal_files

Event = dict[str, Any]

_LOOK_S = 0.5
_PIECE_BYTES = 65_536
"""Read from one file at once, unless a line is longer."""


class Journals:
    """Follows every journal of a home."""

    def __init__(self, root: str, since_ms: int, *, run: str | None = None) -> None:
        self._root = root
        self._since_ns = since_ms * 1_000_000
        self._run = run
        """directory of the only run that is wanted"""
        self._known: list[JournalFile] = []
        self._look_at = 0.0
        self._offsets: dict[str, int] = {}

    def history(self) -> Iterator[Event]:
        """Everything so far, by time; `news` then goes on from there."""
        by_shim: dict[tuple[str, str], list[JournalFile]] = {}
        for file in self._files():
            by_shim.setdefault((file.run, file.shim), []).append(file)
        roads = [self._of_shim(files) for files in by_shim.values()]
        return heapq.merge(*roads, key=_moment)

    def news(self, *, look: bool = False) -> list[Event]:
        """What was added since the last time, by time; `look` is for new files at once."""
        if look:
            self._look_at = 0.0
        found: list[Event] = []
        for file in self._files():
            found += self._of_shim([file])
        return sorted(found, key=_moment)

    def _files(self) -> list[JournalFile]:
        """The journals that may hold something; new ones are looked for now and then."""
        if time.monotonic() >= self._look_at:
            self._look_at = time.monotonic() + _LOOK_S
            self._known = [file for file in journal_files(self._root) if self._is_wanted(file)]
        return self._known

    def _is_wanted(self, file: JournalFile) -> bool:
        if self._run not in (None, file.run):
            return False
        try:
            return os.stat(file.path).st_mtime_ns >= self._since_ns
        except FileNotFoundError:
            return False

    def _of_shim(self, files: list[JournalFile]) -> Iterator[Event]:
        for file in files:
            while piece := self._piece(file.path):
                yield from filter(None, map(event_of, piece))

    def _piece(self, path: str) -> list[bytes]:
        """The next lines of a file; none at its end. No file stays open: there may be thousands."""
        offset = self._offsets.get(path, 0)
        try:
            if os.stat(path).st_size == offset:
                return []
            follower = Follower(path, offset)
        except FileNotFoundError:
            return []  # removed meanwhile
        try:
            piece = follower.read(_PIECE_BYTES)
        finally:
            follower.close()
        if piece is None:
            return []
        self._offsets[path] = piece.next_offset
        # A line that is longer than any event is none; an empty one stands for it.
        return piece.lines if isinstance(piece, Lines) else [b""]


def event_of(line: bytes) -> Event | None:
    """A line as an event; None for one that is damaged, which `sub ledger verify` tells about."""
    try:
        event = json.loads(line)
    except ValueError:
        return None
    return event if isinstance(event, dict) and "ts" in event and "type" in event else None


def _moment(event: Event) -> tuple[str, int]:
    return str(event["ts"]), int(event.get("source", {}).get("n") or 0)
