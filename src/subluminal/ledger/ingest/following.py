"""Follows every journal of a home into the intake, from where the ledger stopped reading.

Polling costs a few microseconds per file, and cannot miss a change as a file watcher can. Files
that have not grown for a while are polled less often.
"""

import os

from msgspec import Struct

from subluminal.clock import now
from subluminal.journal.files import part_path
from subluminal.journal.reading import Follower, JournalFile, Lines, files_in
from subluminal.ledger.ingest.intake import Intake
from subluminal.ledger.ingest.lookups import Lookups

COLD_MS = 30_000
"""A journal that has not grown for this long is cold, and polled every `COLD_POLL_MS`."""
COLD_POLL_MS = 1_000
MAX_OPEN = 256
"""The most journals that are kept open at once."""
RECENT_NS = 2_000_000_000
"""A directory that changed this recently is listed again: its timestamp may be too coarse to show
a later change."""


class Tracked(Struct):
    """One journal file, and how far it has been read."""

    path: str
    name: str
    """path below the journal directory; the key of its offset in the ledger"""
    offset: int
    seen: tuple[int, int] = (0, 0)
    """size in bytes and modification time in ns when the file was last read to its end"""
    follower: Follower | None = None
    before: "Tracked | None" = None
    """the file that the same shim wrote before this one; it must be read first"""
    is_drained: bool = False
    """whether the file was read to its end"""

    def close(self) -> None:
        if self.follower is not None:
            self.follower.close()
            self.follower = None


class Following:
    """All journals below one directory."""

    def __init__(self, root: str, lookups: Lookups) -> None:
        self._root = root
        self._lookups = lookups
        self._tracked: dict[str, Tracked] = {}
        self._directories: dict[str, int] = {}
        self._next_cold_ms = 0
        self._offsets: dict[str, int] = {}
        self.rewind()

    def rewind(self) -> None:
        """Goes back to the offsets that the ledger holds. Called after a commit failed."""
        self.close()
        self._offsets = self._lookups.journal_offsets()

    def close(self) -> None:
        """Closes every file."""
        for tracked in self._tracked.values():
            tracked.close()
        self._tracked = {}
        self._directories = {}

    def pump(self, intake: Intake) -> bool:
        """Reads new lines until the batch is full. Returns whether there may be more."""
        self._discover()
        at = now().wall_ms
        look_at_cold = at >= self._next_cold_ms
        if look_at_cold:
            self._next_cold_ms = at + COLD_POLL_MS
        must_wait = False
        for tracked in list(self._tracked.values()):
            is_cold = tracked.is_drained and at - tracked.seen[1] // 1_000_000 > COLD_MS
            if is_cold and not look_at_cold:
                continue
            if tracked.before is not None and not tracked.before.is_drained:
                must_wait = True
                continue
            self._read(tracked, intake)
            if intake.is_full:
                # Moved to the end, so that the next round begins with the other files.
                self._tracked[tracked.path] = self._tracked.pop(tracked.path)
                return True
        return must_wait

    def backlog_bytes(self) -> int:
        """How much of the journals has not been read yet, in bytes."""
        backlog = 0
        for tracked in self._tracked.values():
            try:
                backlog += max(0, os.stat(tracked.path).st_size - tracked.offset)
            except FileNotFoundError:
                continue
        return backlog

    def _read(self, tracked: Tracked, intake: Intake) -> None:
        try:
            found = os.stat(tracked.path)
        except FileNotFoundError:
            self._drop(tracked)
            return
        seen = (found.st_size, found.st_mtime_ns)
        if seen == tracked.seen:
            return
        follower = self._follower(tracked)
        if follower is None:
            return
        while not intake.is_full:
            piece = follower.read()
            if piece is None:
                tracked.seen = seen
                tracked.is_drained = True
                return
            if isinstance(piece, Lines):
                intake.take(piece.lines, tracked.name, piece.offset)
            else:
                intake.take_overlong(piece, tracked.name)
            intake.offsets[tracked.name] = tracked.offset = piece.next_offset

    def _follower(self, tracked: Tracked) -> Follower | None:
        if tracked.follower is None:
            try:
                tracked.follower = Follower(tracked.path, tracked.offset)
            except OSError:
                self._drop(tracked)
                return None
            self._close_some(tracked)
        return tracked.follower

    def _close_some(self, needed: Tracked) -> None:
        others = [
            each
            for each in self._tracked.values()
            if each.follower is not None and each is not needed
        ]
        for tracked in others[: max(0, len(others) + 1 - MAX_OPEN)]:
            tracked.close()

    def _drop(self, tracked: Tracked) -> None:
        tracked.close()
        tracked.is_drained = True
        self._tracked.pop(tracked.path, None)

    def _discover(self) -> None:
        """Looks for new files in the directories that changed."""
        self._look_into(self._root, "")
        try:
            with os.scandir(self._root) as entries:
                directories = [entry for entry in entries if entry.is_dir(follow_symlinks=False)]
        except FileNotFoundError:
            return
        for entry in directories:
            self._look_into(entry.path, entry.name)

    def _look_into(self, directory: str, run: str) -> None:
        try:
            changed_ns = os.stat(directory).st_mtime_ns
        except FileNotFoundError:
            self._directories.pop(directory, None)
            return
        if self._directories.get(directory) == changed_ns:
            return
        for file in sorted(files_in(directory, run)):
            self._track(file)
        is_settled = now().wall_ms * 1_000_000 - changed_ns > RECENT_NS
        self._directories[directory] = changed_ns if is_settled else 0

    def _track(self, file: JournalFile) -> None:
        if file.path not in self._tracked:
            name = os.path.relpath(file.path, self._root)
            before = None
            if file.part:
                directory = os.path.dirname(file.path)
                before = self._tracked.get(part_path(directory, file.shim, file.part - 1))
            offset = self._offsets.get(name, 0)
            self._tracked[file.path] = Tracked(file.path, name, offset, before=before)
